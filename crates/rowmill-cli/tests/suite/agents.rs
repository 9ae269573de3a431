//! Which cards are loaded, which model each agent uses, and how instructions are filled in.

use crate::support;

use crate::agents_support::{
    call_texts, results, ruled, run_cards, script, sorted_call_texts, write_cards, write_prompt,
};
use crate::support::scripted;
use rowmill_testkit::Simulator;
use serde_json::json;

const A: (&str, &str, &str) = ("a", "tool_only: true", "You are a.");

#[test]
fn model_replaces_that_of_the_worker_and_children_keep_theirs() {
    let rules = json!([{"when": {"system": "You lead.", "turn": 1}, "then": {"calls": [
        {"name": "own", "arguments": {"message": "x"}}, {"name": "none", "arguments": {"message": "x"}}]}}]);
    // The card's model, `--model`, the model of the configuration; the models of the worker, `own` and
    // `none`.
    for (card, flag, config, asked) in [
        ("generic.w", None, None, ["w", "c", "w"]),
        ("generic.w", Some("generic.x"), None, ["x", "c", "x"]),
        ("generic.w", None, Some("generic.d"), ["w", "c", "d"]),
        ("", None, Some("generic.d"), ["d", "c", "d"]),
        ("", Some("generic.x"), Some("generic.d"), ["x", "c", "x"]),
    ] {
        let (simulator, place) = ruled(&rules);
        let model = if card.is_empty() { String::new() } else { format!("\nmodel: {card}") };
        write_cards(
            &place,
            &[
                ("own", "tool_only: true\nmodel: generic.c", "You own."),
                ("none", "tool_only: true", "You have none."),
                ("lead", &format!("agents: [own, none]{model}"), "You lead."),
            ],
        );
        write_prompt(&place, "hello");
        if let Some(config) = config {
            place.write("rowmill.toml", format!("[run]\nmodel = \"{config}\"\n"));
        }
        let flags: Vec<&str> = flag.into_iter().flat_map(|flag| ["-m", flag]).collect();
        run_cards(&place, &flags).ok();
        let of = |system: &str| {
            let calls = simulator.calls();
            calls.iter().find(|call| call.system == system).map(|call| call.model.clone()).unwrap_or_default()
        };
        assert_eq!(
            [of("You lead."), of("You own."), of("You have none.")],
            asked,
            "{card} {flag:?} {config:?}"
        );
    }
}

#[test]
fn settings_of_a_card_go_into_its_calls_and_the_model_string_wins() {
    let (simulator, place) = ruled(&json!([]));
    let front = "model: generic.m?top_p=0.5&temperature=0.75\nrequest_params: {temperature: 0.5, max_tokens: 9, top_k: 4}";
    write_cards(&place, &[("solo", front, "You are a.")]);
    write_prompt(&place, "hello");
    run_cards(&place, &[]).ok();
    let body = simulator.requests().pop().map(|request| request.json()).unwrap_or_default();
    assert_eq!(
        [&body["temperature"], &body["top_p"], &body["max_tokens"], &body["top_k"]],
        [&json!(0.75), &json!(0.5), &json!(9), &json!(4)]
    );
}

#[test]
fn variables_fill_instructions_and_flags_go_before_the_card() {
    let (simulator, place) = ruled(&json!([]));
    place.write("cards/style.txt", "In {{tone}} words.");
    write_cards(
        &place,
        &[(
            "solo",
            "model: generic.m\nvariables: {language: English, tone: plain}",
            "Speak {{language}} as {{agentName}}, \\{{kept\\}}. {{file:style.txt}}{{file_silent:none.txt}}",
        )],
    );
    write_prompt(&place, "hello");
    run_cards(&place, &["--var", "language=French", "--var", "idle=1"]).ok().says("idle");
    assert_eq!(call_texts(&simulator), ["[Speak French as solo, {{kept}}. In plain words.]\nuser: hello"]);
}

#[test]
fn a_variable_that_nobody_gave_is_an_error_before_the_first_row() {
    let (simulator, place) = ruled(&json!([]));
    write_cards(
        &place,
        &[("solo", "model: generic.m\nvariables: {tone: plain}", "Speak {{lnaguage}} {{tone}}.")],
    );
    write_prompt(&place, "hello");
    run_cards(&place, &[]).code(1).says("lnaguage");
    assert_eq!(simulator.calls().len(), 0);
}

#[test]
fn messages_of_a_card_stand_before_every_request() {
    let (simulator, place) = ruled(&json!([]));
    place.write("cards/shots.txt", "---USER\ntwo\n---ASSISTANT\n2\n");
    place.write(
        "cards/more.json",
        r#"{"messages": [{"role": "user", "content": "three"}, {"role": "assistant", "content": "3"}]}"#,
    );
    write_cards(&place, &[("solo", "model: generic.m\nmessages: [shots.txt, more.json]", "Digits.")]);
    place.write("rows.jsonl", "{\"p\":\"four\"}\n{\"p\":\"five\"}\n");
    run_cards(&place, &[]).ok();
    let shots = "[Digits.]\nuser: two\nassistant: 2\nuser: three\nassistant: 3\nuser: ";
    assert_eq!(call_texts(&simulator), [format!("{shots}four"), format!("{shots}five")]);
}

#[test]
fn agent_says_which_card_works_on_rows() {
    let (simulator, place) = ruled(&json!([]));
    write_cards(&place, &[("b", "", "You are b."), ("c", "default: true", "You are c."), A]);
    write_prompt(&place, "hello");
    for (flags, system) in [(&[][..], "You are c."), (&["--agent", "b"], "You are b.")] {
        run_cards(&place, &[&["-m", "generic.m", "--overwrite"], flags].concat()).ok();
        assert_eq!(simulator.calls().pop().map(|call| call.system), Some(system.to_owned()));
    }
    let before = simulator.calls().len();
    run_cards(&place, &["-m", "generic.m", "--overwrite", "--agent", "bb"])
        .code(1)
        .says("no agent card has the name given to `--agent`: `bb`")
        .says("`b`");
    run_cards(&place, &["-m", "generic.m", "--overwrite", "--agent", "a"])
        .code(1)
        .says("the agent given to `--agent` is `tool_only`: `a`");
    place.write("cards/c.md", "---\n---\nYou are c.\n");
    run_cards(&place, &["-m", "generic.m", "--overwrite"])
        .code(1)
        .says("several agents could process the rows: `b`, `c`")
        .says("choose one with `--agent`");
    assert_eq!(simulator.calls().len(), before);
}

#[test]
fn cards_come_from_files_folders_and_addresses() {
    let script = script(&json!([])).serve_text("far.md", "---\ntype: chain\nsequence: [a]\n---\n");
    let (simulator, place) = scripted(script);
    write_cards(&place, &[A]);
    place.write("cards/README.md", "No card.\n");
    place.write("cards/inner/z.md", "---\nnonsense: true\n---\n");
    write_prompt(&place, "hello");
    let far = format!("{}/text/far.md", simulator.url());
    let flags = ["-m", "generic.m", "-p", "{{p}}", "--overwrite"];
    for sources in [["cards", far.as_str()], [far.as_str(), "cards/a.md"], [far.as_str(), "./cards"]] {
        let cards: Vec<&str> = sources.iter().flat_map(|source| ["--agent-card", source]).collect();
        place.run_rows(&[&flags[..], &cards].concat()).ok();
    }
    assert_eq!(sorted_call_texts(&simulator), vec!["[You are a.]\nuser: hello"; 3]);
    assert_eq!(results(&place), [json!("answer to: hello")]);
}

#[test]
fn a_card_from_elsewhere_may_not_read_files() {
    for (card, message) in [
        ("---\nmodel: generic.m\n---\n{{file:/etc/hostname}}", "file"),
        ("---\nmodel: generic.m\nfunction_tools: [x.py:f]\n---\nHi.", "function_tools"),
        ("---\nmodel: ${HOME}\n---\nHi.", "${HOME}"),
    ] {
        let (simulator, place) = scripted(script(&json!([])).serve_text("far.md", card));
        write_prompt(&place, "hello");
        let far = format!("{}/text/far.md", simulator.url());
        place.run_rows(&["--agent-card", &far, "-p", "{{p}}"]).code(1).says(message);
        assert_eq!(simulator.calls().len(), 0);
    }
}

#[test]
fn flags_that_make_no_sense_are_reported_before_anything_is_read() {
    let (simulator, place) = ruled(&json!([]));
    write_cards(&place, &[("solo", "model: generic.m", "You are a.")]);
    write_prompt(&place, "hello");
    for flags in [
        &["--agent", "a"][..],
        &["--stub", "a=b"],
        &["--passthrough", "a"],
        &["--deny", "a"],
        &["--record-tools", "d"],
        &["--tool-timeout", "1s"],
        &["--tool-result-limit", "10"],
        &["--shell"],
    ] {
        let message = format!("{} requires --agent-card", flags[0]);
        place.run_rows(&[&["-m", "generic.m", "-p", "{{p}}"], flags].concat()).code(2).says(&message);
    }
    for (flags, message) in [
        (&["--instruction", "x.md"][..], "--agent-card and --instruction cannot be used together"),
        (&["--retry-unknown"], "--retry-unknown requires --resume"),
        (&["--stub", "find"], "`--stub find` names no answers"),
        (&["--stub", "=text:x"], "`--stub =text:x` names no answers"),
        (&["--deny", "find"], "`--deny find` names a tool that no agent has"),
        (&["--deny", "find"], "the agents have no tools"),
        (
            &["--stub", "look=text:x", "--passthrough", "find"],
            "`--passthrough find` names a tool that no agent has",
        ),
        (&["--stub", "look=text:x", "--passthrough", "find"], "the agents have these tools: `look`"),
    ] {
        run_cards(&place, flags).code(2).says(message);
    }
    assert_eq!(simulator.calls().len(), 0);
    assert!(!place.exists("out.jsonl"));
}

#[test]
fn the_key_of_a_card_goes_to_the_provider_of_its_model_and_to_no_other() {
    let from = |simulator: &Simulator| {
        let seen = simulator.requests().pop();
        let header = |name: &str| seen.as_ref().and_then(|seen| seen.header(name).map(str::to_owned));
        header("authorization").or_else(|| header("x-api-key")).unwrap_or_default()
    };
    for (model, flags, key) in [
        ("generic.m", &[][..], "Bearer of-the-card"),
        ("generic.m", &["-m", "generic.other"], "Bearer of-the-card"),
        ("generic.m", &["-m", "anthropic.m"], support::KEY),
        ("generic.down", &["--fallback-model", "anthropic.m"], support::KEY),
    ] {
        let rules = json!([{"when": {"model": "down"}, "then": {"fault": "503"}}]);
        let (simulator, mut place) = ruled(&rules);
        place.set("CARD_KEY", "of-the-card");
        write_cards(&place, &[("solo", &format!("model: {model}\napi_key: ${{CARD_KEY}}"), "Hi.")]);
        write_prompt(&place, "hello");
        run_cards(&place, flags).ok();
        assert_eq!(from(&simulator), key, "{model} {flags:?}");
    }
}

#[test]
fn references_to_models_come_from_the_configuration_and_the_default_gives_way() {
    let references = "[model_references.system]\nfast = \"generic.f\"\n";
    let defined = format!("{references}default = \"generic.s\"\n");
    // The configuration, `--model`; the models of the worker with `$system.default` and its child with
    // `$system.fast`.
    for (config, flag, asked) in [
        (defined.clone(), None, ["s", "f"]),
        (defined, Some("generic.x"), ["x", "f"]),
        (format!("[run]\nmodel = \"generic.d\"\n{references}"), None, ["d", "f"]),
    ] {
        let rules = json!([{"when": {"system": "You lead.", "turn": 1},
            "then": {"calls": [{"name": "own", "arguments": {"message": "x"}}]}}]);
        let (simulator, place) = ruled(&rules);
        write_cards(
            &place,
            &[
                ("own", "tool_only: true\nmodel: $system.fast", "You own."),
                ("lead", "agents: [own]\nmodel: $system.default", "You lead."),
            ],
        );
        write_prompt(&place, "hello");
        place.write("rowmill.toml", &config);
        let flags: Vec<&str> = flag.into_iter().flat_map(|flag| ["-m", flag]).collect();
        run_cards(&place, &flags).ok();
        let calls = simulator.calls();
        let of = |system: &str| calls.iter().find(|call| call.system == system).unwrap().model.clone();
        assert_eq!([of("You lead."), of("You own.")], asked, "{config} {flag:?}");
    }
}

#[test]
fn a_reference_that_nobody_defines_names_the_card_the_line_and_what_to_add() {
    let (simulator, place) = ruled(&json!([]));
    write_cards(&place, &[("solo", "description: x\nmodel: $team.judge", "You are a.")]);
    write_prompt(&place, "hello");
    let ended = run_cards(&place, &[]).code(1);
    let ended = ended.says("solo.md`, line 3: the model reference `$team.judge` is not defined");
    ended.says("add `judge = \"provider.model\"` under `[model_references.team]` in `rowmill.toml`");
    assert_eq!(simulator.stats().requests, 0);
}
