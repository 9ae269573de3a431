//! Limits on the work of a row: turns, money, tokens, time, and concurrency.

use crate::support;

use crate::agents_support::{
    call_texts, results, row_error, ruled, run_cards, script, write_cards, write_prompt,
};
use crate::support::{Place, scripted};
use rowmill_testkit::{SimulatorScript, parse_flags};
use serde_json::{Value, json};

/// A model that never stops calling `find`.
fn endless() -> Value {
    json!([{"when": {"tool": "find"}, "then": {"text": "once more {{turn}}", "calls": [{"name": "find", "arguments": {"q": "{{turn}}"}}]}}])
}

#[test]
fn a_row_has_no_more_turns_than_flag_and_card_allow() {
    let in_all = |most: &str| format!("no result after {most} (`--turns`)");
    let of_card = |most: u32| format!("`solo` has no result after {most} model calls (`max_iterations`)");
    for (card, flags, message, calls) in [
        ("", &["--turns", "3"][..], in_all("3 model calls"), 3),
        ("\nrequest_params: {max_iterations: 2}", &[], of_card(2), 2),
        ("\nrequest_params: {max_iterations: 2}", &["--turns", "1"], in_all("1 model call"), 1),
        ("", &[], of_card(50), 50),
    ] {
        let (simulator, place) = ruled(&endless());
        write_cards(&place, &[("solo", &format!("model: generic.m{card}"), "Look.")]);
        write_prompt(&place, "x");
        run_cards(&place, &[&["--stub", "find=text:found", "--telemetry-output", "t.jsonl"], flags].concat())
            .code(3);
        assert_eq!(row_error(&place), ("TurnLimit".to_owned(), message));
        assert_eq!(simulator.calls().len(), calls);
        assert_eq!(place.json("out.jsonl")[0]["error"]["raw_text"], format!("once more {calls}"));
        // The results of calls in the last turn would reach no model.
        let made = place.json("t.jsonl")[0]["tool_calls"].as_array().map_or(0, Vec::len);
        assert!(made < calls, "{made} of {calls}");
    }
}

#[test]
fn turns_count_those_of_all_members_together() {
    let (simulator, place) = ruled(&json!([]));
    let only = "tool_only: true";
    write_cards(
        &place,
        &[
            ("a", only, "A."),
            ("b", only, "B."),
            ("c", only, "C."),
            ("line", "type: chain\nsequence: [a, b, c]", ""),
        ],
    );
    write_prompt(&place, "x");
    run_cards(&place, &["-m", "generic.m", "--turns", "2"]).code(3);
    let message = "`c`: no result after 2 model calls (`--turns`)";
    assert_eq!(row_error(&place), ("TurnLimit".to_owned(), message.to_owned()));
    run_cards(&place, &["-m", "generic.m", "--turns", "3", "--overwrite"]).ok();
    assert_eq!(simulator.calls().len(), 5);
}

/// A priced provider, and a card for it with a limit on answers.
fn priced(script: SimulatorScript) -> (rowmill_testkit::Simulator, Place) {
    let (simulator, place) = scripted(script.price(parse_flags::parse_price("input=1,output=4").unwrap()));
    place.write("rowmill.toml", "[prices.\"generic.m\"]\ninput = 1.0\noutput = 4.0\n");
    (simulator, place)
}

#[test]
fn no_call_is_made_that_could_pass_what_a_row_may_spend() {
    for flags in [
        &["--max-row-cost", "0.01"][..],
        &["--max-row-tokens", "6000"],
        &["--max-row-cost", "0.02", "--max-row-tokens", "9000"],
    ] {
        let (simulator, place) = priced(script(&endless()));
        write_cards(&place, &[("solo", "model: generic.m?max_tokens=500", "Look.")]);
        write_prompt(&place, "x");
        let found = format!("find=text:{}", "found ".repeat(400));
        run_cards(&place, &[&["--stub", &found], flags].concat()).code(3);
        let (kind, message) = row_error(&place);
        assert_eq!(kind, "RowLimit", "{message}");
        assert!(message.starts_with("the next call could exceed the limits of the row: "), "{message}");
        let stats = simulator.stats();
        assert!(stats.answers >= 2, "{stats:?}");
        let tokens = stats.input_tokens + stats.output_tokens;
        let cost = stats.cost_usd.unwrap().pico();
        let bound = |flag: &str| {
            let at = flags.iter().position(|given| *given == flag);
            at.map(|at| flags[at + 1].parse::<f64>().unwrap())
        };
        if let Some(most) = bound("--max-row-cost") {
            assert!(cost as f64 <= most * 1e12, "{cost} of {most}");
        }
        if let Some(most) = bound("--max-row-tokens") {
            assert!(tokens as f64 <= most, "{tokens} of {most}");
        }
    }
}

#[test]
fn members_that_work_at_once_wait_for_what_the_others_leave_of_the_row() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let (simulator, place) = priced(SimulatorScript::new());
    for name in names {
        write_cards(&place, &[(name, "tool_only: true", "Answer.")]);
    }
    write_cards(&place, &[("all", &format!("type: parallel\nfan_out: [{}]", names.join(", ")), "")]);
    write_prompt(&place, "x");
    // One worst case fits in addition to what all answers really use, and two do not.
    run_cards(&place, &["-m", "generic.m?max_tokens=500", "--max-row-tokens", "1200"]).ok();
    assert_eq!(simulator.stats().answers, 6);
}

#[test]
fn a_bound_on_rows_needs_what_it_is_counted_by() {
    let (simulator, place) = ruled(&json!([]));
    write_cards(&place, &[("solo", "model: generic.m", "Look.")]);
    write_prompt(&place, "x");
    run_cards(&place, &["--max-row-cost", "1"])
        .code(1)
        .says("`--max-row-cost` needs the price of `generic.m`, which is not known");
    run_cards(&place, &["--max-row-tokens", "10"]).code(1).says("a budget needs a limit on answer length");
    assert_eq!(simulator.calls().len(), 0);
}

#[test]
fn a_child_that_takes_too_long_is_reported_to_its_parent() {
    let (simulator, place) = ruled(&json!([
        {"when": {"system": "Lead.", "turn": 1}, "then": {"calls": [
            {"name": "slow", "arguments": {"message": "x"}}, {"name": "quick", "arguments": {"message": "y"}}]}},
        {"when": {"system": "Slow."}, "then": {"fault": "hang"}},
        {"when": {"system": "Quick."}, "then": {"text": "here"}},
        {"when": {"turn": 2}, "then": {"text": "{{last}}"}}
    ]));
    let only = "tool_only: true";
    write_cards(
        &place,
        &[
            ("slow", only, "Slow."),
            ("quick", only, "Quick."),
            ("lead", "agents: [slow, quick]\nchild_timeout_sec: 0.5", "Lead."),
        ],
    );
    write_prompt(&place, "x");
    let late = "the agent failed: no answer within 0.5 s";
    // If only one call may run at once, the second one waits for the first, and then everything
    // continues.
    for (parallel, quick) in [("4", "here"), ("1", late)] {
        run_cards(&place, &["-m", "generic.m", "--overwrite", "--parallel", parallel]).ok();
        let events = call_texts(&simulator).pop().unwrap_or_default();
        assert!(events.ends_with(&format!("slow: {late}\nquick: {quick}")), "{parallel}: {events}");
    }
}

#[test]
fn a_child_that_fails_is_reported_to_its_parent() {
    let (simulator, place) = ruled(&json!([
        {"when": {"system": "Lead.", "turn": 1}, "then": {"calls": [{"name": "slow", "arguments": {"message": "x"}}]}},
        {"when": {"system": "Slow."}, "then": {"fault": "400"}},
        {"when": {"turn": 2}, "then": {"text": "never mind"}}
    ]));
    write_cards(&place, &[("slow", "tool_only: true", "Slow."), ("lead", "agents: [slow]", "Lead.")]);
    write_prompt(&place, "x");
    run_cards(&place, &["-m", "generic.m"]).ok();
    assert_eq!(results(&place), [json!("never mind")]);
    let events = call_texts(&simulator).pop().unwrap_or_default();
    assert!(events.contains("slow: the agent failed: "), "{events}");
}

#[test]
fn only_so_many_children_work_at_once() {
    let calls: Vec<Value> =
        (0..6).map(|n| json!({"name": "child", "arguments": {"message": n.to_string()}})).collect();
    for (bound, most) in [
        ("max_parallel: 2", 2),
        ("max_parallel: 1", 1),
        ("request_params: {parallel_tool_calls: false}", 1),
        ("", 6),
    ] {
        let rules = json!([
            {"when": {"system": "Lead.", "turn": 1}, "then": {"calls": calls}},
            {"when": {"system": "Lead."}, "then": {"text": "done"}}
        ]);
        // The first answer is sent at once; those of children are held until as many as may work are
        // there.
        let (simulator, place) = scripted(script(&rules).hold_after(1));
        write_cards(
            &place,
            &[("child", "tool_only: true", "Help."), ("lead", &format!("agents: [child]\n{bound}"), "Lead.")],
        );
        write_prompt(&place, "x");
        let child =
            place.start_rows(&["--agent-card", "cards", "-p", "{{p}}", "-m", "generic.m", "--parallel", "8"]);
        simulator.wait_until_blocking(|stats| stats.in_flight == most);
        simulator.release();
        support::finish(child).ok();
        assert_eq!(simulator.stats().max_in_flight, most, "{bound}");
        assert_eq!(simulator.stats().answers, 8, "{bound}");
    }
}
