//! Structured results of agents, in every protocol.

use crate::support;

use crate::agents_support::{call_texts, results, row_error, ruled, run_cards, write_cards, write_prompt};
use crate::faults_support::PROTOCOLS;
use crate::support::Place;
use rowmill_testkit::Simulator;
use serde_json::{Value, json};

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;

/// The first words of the system texts of calls that requested the run's schema.
fn asked_for_result(simulator: &Simulator) -> Vec<String> {
    let bodies = simulator.requests().into_iter().map(|request| request.json());
    let asked = bodies.filter(|body| body["response_format"].to_string().contains("\"n\""));
    let system = |body: Value| body["messages"][0]["content"].as_str().unwrap_or_default().to_owned();
    asked.map(|body| system(body).split('.').next().unwrap_or_default().to_owned()).collect()
}

fn members() -> [(&'static str, &'static str, &'static str); 2] {
    [("a", "tool_only: true", "You are a."), ("b", "tool_only: true", "You are b.")]
}

#[test]
fn the_member_that_gives_the_last_answer_gives_it_in_the_form_of_the_schema() {
    let opinion = |rating: &str| json!({"json": {"rating": rating, "feedback": "f", "needs_improvement": true, "focus_areas": []}});
    let step = json!({"description": "s", "tasks": [{"agent": "a", "description": "t"}]});
    let cases: [(&str, Value, &[&str]); 9] = [
        ("model: generic.m", json!([]), &["You are top"]),
        (
            "agents: [a]",
            json!([{"when": {"system": "You are top.", "turn": 1}, "then": {"calls": [{"name": "a", "arguments": {"message": "x"}}]}}]),
            &["You are top", "You are top"],
        ),
        ("type: chain\nsequence: [a, b]", json!([]), &["You are b"]),
        ("type: chain\nsequence: [a, b]\ncumulative: true", json!([]), &["You are b"]),
        ("type: parallel\nfan_out: [a]\nfan_in: b", json!([]), &["You are b"]),
        (
            "type: router\nagents: [a, b]",
            json!([{"when": {"system": "You pass"}, "then": {"json": {"agent": "a", "confidence": "low", "reasoning": "r"}}}]),
            &["You are a"],
        ),
        (
            "type: evaluator_optimizer\ngenerator: a\nevaluator: b\nmax_refinements: 1",
            json!([{"when": {"system": "You are b."}, "then": opinion("POOR")}]),
            &["You are a", "You are a"],
        ),
        (
            "type: orchestrator\nagents: [a]",
            json!([{"when": {"system": "You plan"}, "then": {"json": {"steps": [step], "is_complete": true}}}]),
            &["A team of agents has worked on a request by a plan of yours"],
        ),
        ("type: MAKER\nworker: a\nk: 2", json!([]), &["You are a", "You are a"]),
    ];
    for (front, mut rules, asked) in cases {
        if let Some(rules) = rules.as_array_mut() {
            rules.push(json!({"when": {"schema": true}, "then": {"json": {"n": 7}}}));
        }
        let (simulator, place) = ruled(&rules);
        let [a, b] = members();
        let own = if front.contains("chain") || front.contains("parallel") || front.contains("MAKER") {
            ""
        } else {
            "You are top."
        };
        write_cards(&place, &[a, b, ("top", front, own)]);
        write_prompt(&place, "hello");
        place.write("schema.json", SCHEMA);
        run_cards(&place, &["-m", "generic.m", "--json-schema", "schema.json"]).ok();
        assert_eq!(results(&place), [json!({"n": 7})], "{front}");
        assert_eq!(asked_for_result(&simulator), asked, "{front}");
    }
}

#[test]
fn a_parallel_agent_without_fan_in_cannot_give_a_schema() {
    let (simulator, place) = ruled(&json!([]));
    let [a, b] = members();
    write_cards(&place, &[a, b, ("top", "type: parallel\nfan_out: [a, b]", "")]);
    write_prompt(&place, "hello");
    place.write("schema.json", SCHEMA);
    run_cards(&place, &["-m", "generic.m", "--json-schema", "schema.json"])
        .code(1)
        .says(
            "the parallel agent `top` has no `fan_in`, so no agent can give an answer that matches a schema",
        )
        .says("add a `fan_in` agent");
    assert_eq!(simulator.calls().len(), 0);
    assert!(!place.exists("out.jsonl"));
}

/// An agent with a tool whose answers are recorded.
fn with_tool(place: &Place, model: &str, flags: &[&str]) -> support::Ended {
    write_cards(place, &[("top", "", "You look.")]);
    write_prompt(place, "hello");
    place.write("schema.json", SCHEMA);
    let flags = [&["-m", model, "--stub", "find=text:found", "--json-schema", "schema.json"], flags].concat();
    run_cards(place, &flags)
}

#[test]
fn tools_and_a_schema_go_together_in_every_protocol() {
    for model in PROTOCOLS {
        for setting in ["", "?stream=true"] {
            let (simulator, place) = ruled(&json!([
                {"when": {"turn": 1, "tool": "find"}, "then": {"text": "Looking.", "calls": [
                    {"name": "find", "arguments": {"q": "{{prompt}}"}}, {"name": "find", "arguments": {"q": 2}}]}},
                {"when": {"turn": 2, "tool": "find", "schema": true}, "then": {"json": {"n": "wrong"}}},
                {"when": {"turn": 3, "tool": "find", "schema": true}, "then": {"json": {"n": 7}}},
            ]));
            let name = format!("{model}{setting}");
            with_tool(&place, &name, &["--repairs", "1", "--telemetry-output", "t.jsonl"]).ok();
            assert_eq!(results(&place), [json!({"n": 7})], "{name}");
            let heard = call_texts(&simulator);
            assert_eq!(heard.len(), 3, "{name}");
            let second = "[You look.]\nuser: hello\nassistant: Looking.\ncall: find{\"q\":\"hello\"}\n\
                          call: find{\"q\":2}\nfind: found\nfind: found";
            assert_eq!(heard[1], second, "{name}");
            assert!(heard[2].starts_with(&format!("{second}\nassistant: ")), "{name}: {}", heard[2]);
            let tools = &place.json("t.jsonl")[0]["tool_calls"];
            let shown: Vec<_> = tools
                .as_array()
                .into_iter()
                .flatten()
                .map(|call| (&call["agent"], &call["tool"], &call["ok"]))
                .collect();
            let expected = (&json!("top"), &json!("find"), &json!(true));
            assert_eq!(shown, [expected, expected], "{name}");
        }
    }
}

#[test]
fn an_answer_that_breaks_the_schema_fails_the_row_with_its_text() {
    for model in PROTOCOLS {
        let (_simulator, place) =
            ruled(&json!([{"when": {"schema": true}, "then": {"json": {"n": "wrong"}}}]));
        with_tool(&place, model, &["--repairs", "0"]).code(3);
        let (kind, message) = row_error(&place);
        assert_eq!(kind, "StructuredOutputError", "{model}: {message}");
        assert_eq!(place.json("out.jsonl")[0]["error"]["raw_text"], r#"{"n":"wrong"}"#, "{model}");
    }
}

#[test]
fn a_card_may_ask_for_structured_answers_without_tools() {
    let (simulator, place) = ruled(&json!([{"when": {"schema": true}, "then": {"json": {"n": 7}}}]));
    write_cards(&place, &[("top", "request_params: {structured_tool_policy: no_tools}", "You look.")]);
    write_prompt(&place, "hello");
    place.write("schema.json", SCHEMA);
    run_cards(&place, &["-m", "generic.m", "--stub", "find=text:x", "--json-schema", "schema.json"]).ok();
    assert!(simulator.calls().iter().all(|call| call.tools.is_empty()));
    assert_eq!(results(&place), [json!({"n": 7})]);
}
