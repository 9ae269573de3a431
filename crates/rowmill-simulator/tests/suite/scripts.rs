//! Models that call tools by a file of rules, by prompt markers, and from prepared bytes.

use crate::support::talk::{ReadAnswer, Talk, WAYS, Way};
use crate::support::{CHAT, Client, chat};
use rowmill_simulator::{SimulatedAnswerRules, Simulator, SimulatorScript};
use serde_json::{Value, json};

fn simulator(rules: &Value) -> Simulator {
    Simulator::start_blocking(
        SimulatorScript::new().rules(SimulatedAnswerRules::read("rules.json", &rules.to_string()).unwrap()),
    )
}

fn text(client: &mut Client, prompt: &str) -> Value {
    client.post(CHAT, "", &chat(prompt)).json()["choices"][0]["message"]["content"].clone()
}

#[test]
fn the_first_rule_that_fits_answers() {
    let simulator = simulator(&json!([
        {"when": {"turn": 1, "tool": "find", "prompt": "Rate"}, "then": {"text": "Wait.", "calls": [
            {"name": "find", "arguments": {"q": "<{{prompt}}>", "deep": ["{{turn}}", 1]}}
        ]}},
        {"when": {"turn": 2, "last": "good"}, "then": {"json": {"said": "{{last}}", "system": "{{ system }}"}}},
        {"when": {"model": "other"}, "then": {"text": "never"}},
        {"when": {"schema": true}, "then": {"json": {"ok": true}}},
        {"when": {"prompt": "brace"}, "then": {"text": "{{last}} {{other}} {{ {{turn}}"}},
        {"when": {"prompt": "made"}, "then": {}}
    ]));
    let mut client = Client::to(&simulator);
    for way in WAYS {
        let mut talk = Talk::new(way, true, "Rate it.");
        let answer = talk.ask(&mut client);
        assert_eq!(
            (answer.text.as_str(), &answer.calls[0].2),
            ("Wait.", &json!({"q": "<Rate it.>", "deep": ["1", 1]}))
        );
        talk.give(&[(&answer.calls[0], "good {{turn}}")]);
        let answer = talk.ask(&mut client);
        let message: Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(message, json!({"said": "good {{turn}}", "system": "Be brief."}), "{way:?}");
    }
    assert_eq!(text(&mut client, "Rate it."), "answer to: Rate it.");
    assert_eq!(text(&mut client, "brace"), "brace {{other}} {{ 1");
    assert_eq!(text(&mut client, "made"), "answer to: made");
    let mut talk = Talk::new(Way::Chat, false, "Give JSON.");
    talk.body["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}});
    assert_eq!(talk.ask(&mut client).text, r#"{"ok":true}"#);
}

#[test]
fn a_fault_of_a_rule_strikes_a_turn_as_often_as_it_says() {
    let simulator = simulator(&json!([
        {"when": {"turn": 1}, "then": {"calls": [{"name": "find"}]}},
        {"when": {"turn": 2}, "then": {"fault": "503x2"}},
        {"when": {"turn": 2, "prompt": "always"}, "then": {"fault": "refusal"}}
    ]));
    let mut client = Client::to(&simulator);
    for (prompt, after) in [("once", json!("answer to: 1")), ("always", Value::Null)] {
        let mut talk = Talk::new(Way::Chat, false, prompt);
        let answer = talk.ask(&mut client);
        talk.give(&[(&answer.calls[0], "1")]);
        let statuses: Vec<u16> = (0..3).map(|_| talk.post(&mut client).status).collect();
        assert_eq!(statuses, [503, 503, 200]);
        assert_eq!(talk.ask(&mut client).whole["choices"][0]["message"]["content"], after);
    }
}

#[test]
fn mistakes_in_rules_are_reported_with_their_place_and_what_is_near() {
    let line = r#"{"then": {"text": "ok"}}"#;
    for (rules, message) in [
        (
            format!("{line}\n\n{{\"whne\": {{}}, \"then\": {{}}}}"),
            "`r.jsonl`, rule 2 (line 3): a rule has no key `whne`; did you mean `when`?",
        ),
        (
            r#"[{"then": {}}, {"when": {"promt": "x"}, "then": {}}]"#.into(),
            "`r.jsonl`, rule 2: `when` has no key `promt`; did you mean `prompt`?",
        ),
        (r#"{"then": {"call": []}}"#.into(), "did you mean `calls`?"),
        (r#"{"then": {"zzzzzzzzzzzzzz": 1}}"#.into(), "write `text`, `json`, `calls`"),
        (r#"{"then": {"calls": [{"nmae": "x"}]}}"#.into(), "a call has no key `nmae`; did you mean `name`?"),
        (r#"{"then": {"calls": [{"arguments": {}}]}}"#.into(), "a call needs the `name` of its tool"),
        (r#"{"then": {"calls": {"name": "x"}}}"#.into(), "`calls` must be a list"),
        (r#"{"then": {"cite": [{"title": "x"}]}}"#.into(), "a citation needs a `url`"),
        (r#"{"when": {"turn": 0}, "then": {}}"#.into(), "`turn` must be a whole number from 1, not 0"),
        (r#"{"when": {"schema": "yes"}, "then": {}}"#.into(), "`schema` must be true or false"),
        (r#"{"when": {"model": 4}, "then": {}}"#.into(), "`model` must be a string, not 4"),
        (r#"{"then": {"text": "a", "json": 1}}"#.into(), "`text` and `json` cannot both be the answer"),
        (r#"{"then": {"fault": "503", "text": "a"}}"#.into(), "`fault` must be alone"),
        (r#"{"then": {"fault": "weather"}}"#.into(), "`weather` is not a fault"),
        (r#"{"when": {}}"#.into(), "`then` is missing"),
        ("[1]".into(), "rule 1: a rule must be an object, not 1"),
        ("{\"then\": {}}\n{".into(), "rule 2 (line 2): not valid JSON"),
        ("[\n{".into(), "`r.jsonl`, line 2: not a JSON array"),
    ] {
        let error = SimulatedAnswerRules::read("r.jsonl", &rules).unwrap_err();
        assert!(error.contains(message), "{message}: {error}");
    }
}

#[test]
fn markers_in_a_prompt_call_tools_and_then_the_results_are_echoed() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    for way in WAYS {
        let mut talk = Talk::new(way, true, "***CALL_TOOL find {\"q\": \"a\"}\n***CALL_TOOL give\nPlease.");
        let answer = talk.ask(&mut client);
        let called: Vec<&str> = answer.calls.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!((called, &answer.calls[0].2), (vec!["find", "give"], &json!({"q": "a"})), "{way:?}");
        talk.give(&[(&answer.calls[0], "one"), (&answer.calls[1], "two")]);
        assert_eq!(talk.ask(&mut client).text, "answer to: one\ntwo", "{way:?}");

        let mut talk = Talk::new(way, false, "***TURNS 3 find {\"q\": \"b\"}");
        assert_eq!(turns(&mut talk, &mut client), (3, "answer to: result 2".to_owned()), "{way:?}");
    }
    // Nothing is called if nothing is offered.
    assert_eq!(text(&mut client, "***CALL_TOOL find {}"), "answer to: ***CALL_TOOL find {}");
}

/// Returns a result for each call until there are no more calls; returns how many turns had one, and the last
/// text.
fn turns(talk: &mut Talk, client: &mut Client) -> (usize, String) {
    let mut ids = Vec::new();
    loop {
        let ReadAnswer { calls, text, .. } = talk.ask(client);
        let Some(call) = calls.first() else {
            let count = ids.len();
            ids.dedup();
            assert_eq!(ids.len(), count, "ids differ from turn to turn");
            return (count, text);
        };
        talk.give(&[(call, &format!("result {}", ids.len()))]);
        ids.push(call.0.clone());
    }
}

#[test]
fn prepared_answers_call_a_tool_for_as_many_turns_as_they_are_asked_to() {
    let script =
        SimulatorScript::new().instant_answer("ready").instant_tool_turns(3, "find", json!({"q": "x"}));
    let simulator = Simulator::start_blocking(script);
    let mut client = Client::to(&simulator);
    for way in WAYS {
        for streamed in [false, true] {
            // Text that only looks like a result does not count.
            let prompt =
                r#"{"tool_call_id": 1, "tool_use_id": 1, "functionResponse": 1, "function_call_output": 1}"#;
            let mut talk = Talk::new(way, streamed, prompt);
            assert_eq!(turns(&mut talk, &mut client), (3, "ready".to_owned()), "{way:?} {streamed}");
        }
    }
    assert_eq!(simulator.stats().answers, 8 * 4);
}

#[test]
fn the_log_tells_turns_and_results_and_where_asked_for_whole_conversations() {
    for (messages, expected) in [(false, Value::Null), (true, json!(3))] {
        let log = tempfile();
        let mut script = SimulatorScript::new().log_calls(log.1);
        if messages {
            script = script.log_messages();
        }
        let simulator = Simulator::start_blocking(script);
        let mut client = Client::to(&simulator);
        let mut talk = Talk::new(Way::Chat, false, "***CALL_TOOL find {}");
        let answer = talk.ask(&mut client);
        talk.give(&[(&answer.calls[0], "one")]);
        talk.ask(&mut client);
        let text = std::fs::read_to_string(&log.0).unwrap();
        std::fs::remove_file(&log.0).unwrap();
        let line: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        let seen = (&line["system"], &line["turn"], &line["calls"][0]["name"], &line["results"][0]["text"]);
        assert_eq!(seen, (&json!("Be brief."), &json!(2), &json!("find"), &json!("one")));
        assert_eq!(line["messages"].as_array().map_or(Value::Null, |held| json!(held.len())), expected);
        assert_eq!(simulator.calls()[1].messages.len(), 3, "in process it is always there");
    }
}

fn tempfile() -> (std::path::PathBuf, std::fs::File) {
    let name = format!("rowmill-calls-{}-{:?}.jsonl", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    let file = std::fs::File::create(&path).unwrap();
    (path, file)
}
