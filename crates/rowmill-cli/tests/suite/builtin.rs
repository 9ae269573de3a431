//! The built-in models, which need no key and no network.

use crate::support::{Place, each};
use serde_json::{Value, json};

/// The results of a run over `rows`.
fn results(model: &str, rows: &str, flags: &[&str]) -> Vec<Value> {
    let place = Place::new();
    place.write("rows.jsonl", rows);
    place.write("schema.json", r#"{"type":"object","properties":{"label":{"enum":["x","y"]},"n":{"type":"integer","minimum":3,"maximum":5}},"required":["label","n"]}"#);
    place.run_rows(&[&["-m", model, "-p", "{{t}}", "--parallel", "1"], flags].concat()).ok();
    each(&place.json("out.jsonl"), "/result")
}

const ROWS: &str = "{\"t\":\"a\"}\n{\"t\":\"b\"}\n{\"t\":\"c\"}\n{\"t\":\"a\"}\n";

#[test]
fn passthrough_echoes_the_prompt_until_an_answer_is_fixed() {
    assert_eq!(results("passthrough", ROWS, &[]), [json!("a"), json!("b"), json!("c"), json!("a")]);
    let rows = "{\"t\":\"a\"}\n{\"t\":\"***FIXED_RESPONSE same\"}\n{\"t\":\"c\"}\n";
    assert_eq!(results("passthrough", rows, &[]), [json!("a"), json!("same"), json!("same")]);
}

#[test]
fn playback_replays_and_slow_waits() {
    let played = results("playback", ROWS, &["--limit", "2"]);
    assert_eq!(
        played,
        [json!("HISTORY LOADED (1) messages"), json!("MESSAGES EXHAUSTED (list size 1) (1 overage)")]
    );
    assert_eq!(results("slow?delay=1ms", ROWS, &["--limit", "1"]), [json!("a")]);
}

#[test]
fn silent_answers_with_nothing_which_is_a_failure() {
    let place = Place::new();
    place.write("rows.jsonl", ROWS);
    place.run_rows(&["-m", "silent"]).code(3);
    assert_eq!(each(&place.json("out.jsonl"), "/error/type"), vec![json!("EmptyAnswer"); 4]);
}

#[test]
fn simulated_invents_the_same_valid_answer_for_the_same_row() {
    let schema = ["--json-schema", "schema.json"];
    let first = results("simulated", ROWS, &schema);
    for result in &first {
        assert!(["x", "y"].contains(&result["label"].as_str().unwrap_or("?")), "{result}");
        assert!((3..=5).contains(&result["n"].as_i64().unwrap_or(0)), "{result}");
    }
    assert_eq!(first[0], first[3]);
    assert_eq!(results("simulated", ROWS, &schema), first);
    let texts = results("simulated", ROWS, &[]);
    assert!(texts.iter().all(|text| text.as_str().is_some_and(|text| !text.is_empty())));
    assert_ne!(texts, results("simulated?seed=5", ROWS, &[]));
}

#[test]
fn simulated_fails_a_row_whose_schema_asks_for_more_than_it_makes() {
    let huge = 4_000_000_000u64;
    for (schema, what) in [
        (json!({"type": "string", "minLength": huge}), "bytes of text in one answer"),
        (json!({"type": "array", "minItems": huge}), "values in one answer"),
        (json!({"type": "object", "minProperties": huge}), "values in one answer"),
    ] {
        let place = Place::new();
        place.write("rows.jsonl", "{\"t\":\"a\"}\n");
        place.write("schema.json", schema.to_string());
        place.run_rows(&["-m", "simulated", "-p", "{{t}}", "--json-schema", "schema.json"]).code(3);
        let envelopes = place.json("out.jsonl");
        let error = &envelopes[0]["error"];
        assert_eq!(error["type"], "BadRequest", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.starts_with("the schema asks for more than the built-in model can generate: "),
            "{message}"
        );
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn simulated_fails_as_often_as_it_is_asked_to() {
    let place = Place::new();
    place.write_rows(40);
    place.run_rows(&["-m", "simulated?failure_rate=1", "--retries", "1", "--retry-wait", "1ms"]).code(3);
    let error = json!({"type": "ServerError", "message": "a simulated failure", "status": 503, "code": "simulated", "attempts": 2});
    assert_eq!(each(&place.json("out.jsonl"), "/error"), vec![error; 40]);
    let flags = ["--retries", "30", "--retry-wait", "1ms", "--overwrite"];
    let ended = place
        .run_rows(&[&["-m", "simulated?failure_rate=0.5&latency=1ms&jitter=0.5"], &flags[..]].concat())
        .ok();
    assert!(ended.summary()["calls"]["failed"]["ServerError"].as_u64() > Some(0));
}
