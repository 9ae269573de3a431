use rowmill_types::{CallFailure, FinishReason};
use serde_json::{Value, json};

use super::wire::AnthropicWire;
use crate::http_model::AnswerDelivery;
use crate::test_support::{assemble, error, plain_body, repair_body, setup, text_and_finish, tokens};
use crate::wire_protocol::{StreamStep, WireProtocol};

fn wire(model: &str, instruction: Option<&str>, schema: Option<Value>) -> AnthropicWire {
    AnthropicWire::new(&setup(model, instruction, schema), AnswerDelivery::Whole).unwrap()
}

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

#[test]
fn bodies_hold_the_messages_and_what_was_set_and_nothing_else() {
    for (model, instruction, expected) in [
        (
            "claude-x",
            None,
            r#"{"model":"claude-x","max_tokens":4096,"messages":[{"role":"user","content":"Hi \"there\"\n"}]}"#,
        ),
        (
            "claude-x?max_tokens=9",
            Some("Be kind"),
            r#"{"model":"claude-x","max_tokens":9,"system":[{"type":"text","text":"Be kind","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"Hi \"there\"\n"}]}"#,
        ),
        (
            "claude-x?temp=0.5&top_p=0.5&top_k=4&stop=[\"a\",\"b\"]&service_tier=standard_only",
            None,
            r#"{"model":"claude-x","max_tokens":4096,"messages":[{"role":"user","content":"Hi \"there\"\n"}],"temperature":0.5,"top_p":0.5,"top_k":4,"stop_sequences":["a","b"],"service_tier":"standard_only"}"#,
        ),
    ] {
        assert_eq!(plain_body(&wire(model, instruction, None)), expected, "{model}");
    }
    assert_eq!(
        repair_body(&wire("claude-x", None, None)),
        r#"{"model":"claude-x","max_tokens":4096,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"{}"},{"role":"user","content":"fix it"}]}"#
    );
}

#[test]
fn thinking_is_asked_for_as_the_model_takes_it() {
    for (model, thinking, effort, max_tokens) in [
        ("claude-opus-5?reasoning=auto", json!({"type": "adaptive"}), Value::Null, 4096),
        ("claude-opus-5?reasoning=on", json!({"type": "adaptive"}), Value::Null, 4096),
        ("claude-opus-5?reasoning=max", json!({"type": "adaptive"}), json!("max"), 4096),
        ("claude-opus-5?reasoning=none", json!({"type": "disabled"}), Value::Null, 4096),
        (
            "claude-opus-5?reasoning=2000",
            json!({"type": "enabled", "budget_tokens": 2000}),
            Value::Null,
            6096,
        ),
        (
            "claude-sonnet-4-5?reasoning=low",
            json!({"type": "enabled", "budget_tokens": 2048}),
            Value::Null,
            6144,
        ),
        (
            "claude-3-7-sonnet?reasoning=medium&max_tokens=9000",
            json!({"type": "enabled", "budget_tokens": 8192}),
            Value::Null,
            9000,
        ),
    ] {
        let body: Value = serde_json::from_str(&plain_body(&wire(model, None, None))).unwrap();
        assert_eq!(body["thinking"], thinking, "{model}");
        assert_eq!(body["output_config"]["effort"], effort, "{model}");
        assert_eq!(body["max_tokens"], max_tokens, "{model}");
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let schema = Some(person());
    for (model, message, hint) in [
        (
            "claude-x?reasoning=2000&max_tokens=2000",
            "`max_tokens` must be more than the 2000 tokens that `reasoning` may use",
            "use `max_tokens=2001` or more",
        ),
        ("claude-x?reasoning=100", "a budget of 100 tokens", "use `reasoning=1024` or more"),
        ("claude-x?reasoning=high&structured=tool_use", "forces a tool call", "omit one of them"),
    ] {
        let problem =
            AnthropicWire::new(&setup(model, None, schema.clone()), AnswerDelivery::Whole).unwrap_err();
        assert!(problem.message.contains(message), "{}", problem.message);
        assert!(problem.hint.unwrap().starts_with(hint), "{model}");
    }
}

#[test]
fn a_schema_forces_a_tool_unless_the_model_thinks() {
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}"#;
    assert_eq!(
        plain_body(&wire("claude-x", None, Some(person()))),
        format!(
            r#"{{"model":"claude-x","max_tokens":4096,"messages":[{{"role":"user","content":"Hi \"there\"\n"}}],"tools":[{{"name":"structured_output","description":"Gives the answer.","input_schema":{schema}}}],"tool_choice":{{"type":"tool","name":"structured_output"}}}}"#
        )
    );
    for model in ["claude-x?structured=json", "claude-x?reasoning=low"] {
        let body: Value = serde_json::from_str(&plain_body(&wire(model, None, Some(person())))).unwrap();
        assert_eq!(body["output_config"]["format"]["type"], "json_schema", "{model}");
        assert_eq!(body["output_config"]["format"]["schema"].to_string(), schema, "{model}");
        assert_eq!(body["tool_choice"], Value::Null, "{model}");
    }
}

#[test]
fn answers_are_read_in_every_shape() {
    let wire = wire("claude-x", None, None);
    for (body, expected) in [
        (
            r#"{"type":"message","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"stop_reason":"end_turn"}"#,
            ("ab", FinishReason::Complete),
        ),
        (
            r#"{"content":[{"type":"text","text":"a"}],"stop_reason":"max_tokens"}"#,
            ("a", FinishReason::Length),
        ),
        (
            r#"{"content":[{"type":"text","text":"no"}],"stop_reason":"refusal"}"#,
            ("no", FinishReason::Refused),
        ),
        (
            r#"{"content":[{"type":"tool_use","id":"t","name":"structured_output","input":{"b": 1, "a": 2}}],"stop_reason":"tool_use"}"#,
            // A call of a tool that was not offered is not an answer.
            ("", FinishReason::Complete),
        ),
        (r#"{"content":[],"stop_reason":"end_turn","usage":null}"#, ("", FinishReason::Complete)),
    ] {
        assert_eq!(text_and_finish(&wire.read(body.as_bytes()).unwrap()), expected, "{body}");
    }
    let by_tool = r#"{"content":[{"type":"tool_use","id":"t","name":"structured_output","input":{"b": 1, "a": 2}}],"stop_reason":"tool_use"}"#;
    let reading = self::wire("claude-x", None, Some(person())).read(by_tool.as_bytes()).unwrap();
    assert_eq!(text_and_finish(&reading), (r#"{"b": 1, "a": 2}"#, FinishReason::Complete));
}

#[test]
fn cached_tokens_are_a_part_of_the_input() {
    let body = r#"{"model":"claude-x-1","content":[],"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":5,"service_tier":"standard"}}"#;
    let reading = wire("claude-x", None, None).read(body.as_bytes()).unwrap();
    assert_eq!(reading.usage, tokens([60, 30, 20, 5, 0]));
    assert!(reading.raw_usage.is_some());
    assert_eq!(
        (reading.model.as_deref(), reading.service_tier.as_deref()),
        (Some("claude-x-1"), Some("standard"))
    );
}

#[test]
fn a_value_that_is_no_object_comes_back_without_its_wrapping() {
    let wire = wire("claude-x", None, Some(json!({"enum": ["a", "b"]})));
    let body = r#"{"content":[{"type":"tool_use","input":{"value":"a"}}],"stop_reason":"tool_use"}"#;
    assert_eq!(text_and_finish(&wire.read(body.as_bytes()).unwrap()), (r#""a""#, FinishReason::Complete));
}

#[test]
fn what_is_no_answer_is_an_error() {
    let wire = wire("claude-x", None, None);
    for (body, failure) in [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            CallFailure::Server,
        ),
        (r#"{"type":"message"}"#, CallFailure::Malformed),
        ("", CallFailure::Malformed),
    ] {
        assert_eq!(error(wire.read(body.as_bytes()).unwrap_err()).failure, failure, "{body}");
    }
}

#[test]
fn a_stream_is_put_together() {
    let (steps, reading) = assemble(
        &wire("claude-x", None, None),
        &[
            r#"{"type":"message_start","message":{"model":"claude-x-1","content":[],"usage":{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":1,"service_tier":"standard"}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":15}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    )
    .unwrap();
    assert_eq!(steps.iter().position(|step| *step == StreamStep::Content), Some(4));
    let reading = reading.unwrap();
    assert_eq!(text_and_finish(&reading), ("Hello", FinishReason::Length));
    assert_eq!(reading.usage, tokens([10, 3, 0, 15, 0]));
    assert_eq!(
        (reading.model.as_deref(), reading.service_tier.as_deref()),
        (Some("claude-x-1"), Some("standard"))
    );
}

#[test]
fn streamed_tool_input_is_put_together_and_errors_count() {
    let wire = wire("claude-x", None, Some(person()));
    let events = [
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"name\":"}}"#,
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"\"A\"}"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let (_, reading) = assemble(&wire, &events).unwrap();
    assert_eq!(text_and_finish(&reading.unwrap()), (r#"{"name":"A"}"#, FinishReason::Complete));
    let event = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    assert_eq!(error(assemble(&wire, &[event]).unwrap_err()).failure, CallFailure::RateLimited);
}
