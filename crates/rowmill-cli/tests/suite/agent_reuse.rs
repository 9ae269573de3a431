//! Agents with cached answers, equal rows and resumed runs.

use crate::agents_support::{call_texts, results, ruled, run_cards, write_cards, write_prompt};
use crate::support::Place;
use rowmill_testkit::Simulator;
use serde_json::{Value, json};

/// Calls `find` with the prompt, then answers with the result.
fn finder() -> (Simulator, Place) {
    let (simulator, place) = ruled(&json!([
        {"when": {"turn": 1, "tool": "find"}, "then": {"calls": [{"name": "find", "arguments": {"q": "{{prompt}}"}}]}},
        {"when": {"turn": 2}, "then": {"text": "so: {{last}}"}}
    ]));
    write_cards(&place, &[("solo", "model: generic.m", "Look.")]);
    (simulator, place)
}

const STUB: [&str; 2] = ["--stub", "find=text:found"];

#[test]
fn equal_rows_are_worked_on_once_with_dedupe() {
    let (simulator, place) = finder();
    place.write("rows.jsonl", "{\"p\":\"a\"}\n{\"p\":\"b\"}\n{\"p\":\"a\"}\n{\"p\":\"a\"}\n");
    run_cards(&place, &[&STUB[..], &["--dedupe"]].concat()).ok();
    assert_eq!(results(&place), vec![json!("so: found"); 4]);
    assert_eq!(simulator.calls().len(), 4, "two rows with two turns each");
}

#[test]
fn kept_answers_are_used_again_until_a_card_or_a_tool_changes() {
    let (simulator, place) = finder();
    write_prompt(&place, "a");
    let run = |flags: &[&str]| {
        let before = simulator.calls().len();
        run_cards(&place, &[&["--cache", "kept", "--overwrite"], flags].concat()).ok();
        simulator.calls().len() - before
    };
    assert_eq!(run(&STUB), 2);
    assert_eq!(run(&STUB), 0);
    assert_eq!(results(&place), [json!("so: found")]);
    assert_eq!(run(&["--stub", "find=text:other"]), 2, "another answer of the tool");
    assert_eq!(results(&place), [json!("so: other")]);
    assert_eq!(run(&[&STUB[..], &["--deny", "find"]].concat()), 2, "another route");
    write_cards(&place, &[("solo", "model: generic.m", "Look well.")]);
    assert_eq!(run(&STUB), 2, "another instruction");
    assert_eq!(run(&STUB), 0);
}

#[test]
fn a_run_is_not_resumed_with_other_cards() {
    for (name, front, body) in [
        ("solo", "model: generic.m", "Look well."),
        ("solo", "model: generic.m\ntool_policy: {find: passthrough}", "Look."),
        ("solo", "model: generic.m\nrequest_params: {max_iterations: 3}", "Look."),
    ] {
        let (simulator, place) = finder();
        place.write("rows.jsonl", "{\"p\":\"a\"}\n{\"p\":\"b\"}\n");
        run_cards(&place, &[&STUB[..], &["--limit", "1"]].concat()).ok();
        assert_eq!(simulator.calls().len(), 2);
        write_cards(&place, &[(name, front, body)]);
        let ended = run_cards(&place, &[&STUB[..], &["--resume"]].concat()).code(1);
        assert!(ended.stderr.contains("started with different settings"), "{front}: {}", ended.stderr);
        assert!(ended.stderr.contains("\n  agent cards:\n    "), "{}", ended.stderr);
        let added = ended.stderr.lines().filter(|line| line.starts_with("    + ")).collect::<String>();
        let changed = if body == "Look." { front.rsplit(['{', ' ']).next().unwrap() } else { body };
        assert!(added.contains(changed.trim_end_matches('}')), "`{changed}` is not in: {}", ended.stderr);
        assert_eq!(simulator.calls().len(), 2);
        write_cards(&place, &[("solo", "model: generic.m", "Look.")]);
        run_cards(&place, &[&STUB[..], &["--resume"]].concat()).ok();
        assert_eq!(simulator.calls().len(), 4);
        assert_eq!(results(&place), vec![json!("so: found"); 2]);
    }
}

#[test]
fn rows_know_nothing_of_each_other() {
    let (simulator, place) = finder();
    let rows: String = (1..=20).map(|n| format!("{{\"p\":\"row {n}\"}}\n")).collect();
    place.write("rows.jsonl", rows);
    let answers: String =
        (1..=20).map(|n| format!("{{\"row\": {n}, \"result\": \"answer {n}\"}}\n")).collect();
    place.write("answers.jsonl", answers);
    run_cards(&place, &["--stub", "find=answers.jsonl", "--parallel", "16", "--telemetry-output", "t.jsonl"])
        .ok();
    let mut expected: Vec<String> = (1..=20)
        .flat_map(|n| {
            let first = format!("[Look.]\nuser: row {n}");
            let second = format!("{first}\nassistant: \ncall: find{{\"q\":\"row {n}\"}}\nfind: answer {n}");
            [first, second]
        })
        .collect();
    expected.sort();
    let mut heard = call_texts(&simulator);
    heard.sort();
    assert_eq!(heard, expected);
    let mut message: Vec<(u64, Value)> = place
        .json("out.jsonl")
        .iter()
        .map(|row| (row["row_number"].as_u64().unwrap_or_default(), row["result"].clone()))
        .collect();
    message.sort_by_key(|(number, _)| *number);
    assert!(message.iter().all(|(number, result)| *result == format!("so: answer {number}")), "{message:?}");
}
