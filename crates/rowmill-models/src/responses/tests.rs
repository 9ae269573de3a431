use rowmill_types::{CallFailure, FinishReason};
use serde_json::{Value, json};

use super::wire::{RequestCarrier, ResponsesWire};
use crate::test_support::{assemble, error, plain_body, repair_body, setup, text_and_finish, tokens};
use crate::wire_protocol::{StreamStep, WireProtocol};

fn wire(model: &str, instruction: Option<&str>, schema: Option<Value>) -> ResponsesWire {
    ResponsesWire::new(&setup(model, instruction, schema), RequestCarrier::Whole)
}

#[test]
fn bodies_hold_the_input_and_what_was_set_and_nothing_else() {
    for (model, instruction, expected) in [
        (
            "gpt-5",
            None,
            r#"{"model":"gpt-5","input":[{"role":"user","content":"Hi \"there\"\n"}],"store":false}"#,
        ),
        (
            "gpt-5",
            Some("Be kind"),
            r#"{"model":"gpt-5","instructions":"Be kind","input":[{"role":"user","content":"Hi \"there\"\n"}],"store":false}"#,
        ),
        (
            "gpt-5?temperature=1&top_p=0.5&max_tokens=9&service_tier=flex&reasoning=high&verbosity=med",
            None,
            r#"{"model":"gpt-5","input":[{"role":"user","content":"Hi \"there\"\n"}],"store":false,"temperature":1.0,"top_p":0.5,"max_output_tokens":9,"service_tier":"flex","reasoning":{"effort":"high"},"text":{"verbosity":"medium"}}"#,
        ),
    ] {
        assert_eq!(plain_body(&wire(model, instruction, None)), expected, "{model}");
    }
    assert_eq!(
        repair_body(&wire("gpt-5", None, None)),
        r#"{"model":"gpt-5","input":[{"role":"user","content":"q"},{"role":"assistant","content":"{}"},{"role":"user","content":"fix it"}],"store":false}"#
    );
}

#[test]
fn a_schema_is_the_format_of_the_text() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    assert_eq!(
        plain_body(&wire("gpt-5?verbosity=low", None, Some(schema))),
        r#"{"model":"gpt-5","input":[{"role":"user","content":"Hi \"there\"\n"}],"store":false,"text":{"verbosity":"low","format":{"type":"json_schema","name":"structured_output","strict":true,"schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}}"#
    );
}

#[test]
fn the_carrier_changes_what_stands_round_the_fields() {
    let setup = setup("gpt-5", None, None);
    let input = r#""input":[{"role":"user","content":"Hi \"there\"\n"}],"store":false"#;
    assert_eq!(
        plain_body(&ResponsesWire::new(&setup, RequestCarrier::Stream)),
        format!(r#"{{"model":"gpt-5",{input},"stream":true}}"#)
    );
    assert_eq!(
        plain_body(&ResponsesWire::new(&setup, RequestCarrier::Socket)),
        format!(r#"{{"type":"response.create","model":"gpt-5",{input}}}"#)
    );
}

#[test]
fn answers_are_read_in_every_shape() {
    let wire = wire("gpt-5", None, None);
    for (body, expected) in [
        (
            r#"{"status":"completed","error":null,"incomplete_details":null,"output":[{"type":"reasoning","summary":[]},{"type":"message","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"output_text","text":"b"}]}]}"#,
            ("ab", FinishReason::Complete),
        ),
        (
            r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}"#,
            ("a", FinishReason::Length),
        ),
        (
            r#"{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}"#,
            ("", FinishReason::Filtered),
        ),
        (
            r#"{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"I cannot"}]}]}"#,
            ("I cannot", FinishReason::Refused),
        ),
    ] {
        assert_eq!(text_and_finish(&wire.read(body.as_bytes()).unwrap()), expected, "{body}");
    }
}

#[test]
fn usage_model_and_tier_are_kept() {
    let body = r#"{"model":"gpt-5-x","service_tier":"default","status":"completed","output":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":16}}"#;
    let reading = wire("gpt-5", None, None).read(body.as_bytes()).unwrap();
    assert_eq!(reading.usage, tokens([10, 4, 0, 6, 5]));
    assert!(reading.raw_usage.unwrap().get().contains(r#""total_tokens":16"#));
    assert_eq!(
        (reading.model.as_deref(), reading.service_tier.as_deref()),
        (Some("gpt-5-x"), Some("default"))
    );
}

#[test]
fn what_is_no_answer_is_an_error() {
    let wire = wire("gpt-5", None, None);
    for (body, failure) in [
        (
            r#"{"status":"failed","error":{"code":"server_error","message":"boom"},"output":[]}"#,
            CallFailure::Server,
        ),
        (
            r#"{"status":"failed","error":{"code":"rate_limit_exceeded","message":"m"}}"#,
            CallFailure::RateLimited,
        ),
        (r#"{"status":"failed","error":{"code":"invalid_prompt","message":"m"}}"#, CallFailure::Refused),
        (r#"{"status":"cancelled","output":[]}"#, CallFailure::Server),
        (r#"{"status":"completed"}"#, CallFailure::Malformed),
        (r#"{"status":"comp"#, CallFailure::Malformed),
    ] {
        assert_eq!(error(wire.read(body.as_bytes()).unwrap_err()).failure, failure, "{body}");
    }
}

#[test]
fn a_stream_is_put_together() {
    let (steps, reading) = assemble(
        &wire("gpt-5", None, None),
        &[
            r#"{"type":"response.created","response":{"id":"r"}}"#,
            r#"{"type":"response.output_text.delta","delta":"He"}"#,
            r#"{"type":"response.output_text.delta","delta":"llo"}"#,
            r#"{"type":"response.completed","response":{"status":"completed","model":"m","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}],"usage":{"input_tokens":1,"output_tokens":2}}}"#,
        ],
    )
    .unwrap();
    assert_eq!(steps, [StreamStep::NoContent, StreamStep::Content, StreamStep::Content, StreamStep::Done]);
    let reading = reading.unwrap();
    assert_eq!(text_and_finish(&reading), ("Hello", FinishReason::Complete));
    assert_eq!(reading.usage, tokens([1, 0, 0, 2, 0]));
}

#[test]
fn the_pieces_are_used_where_the_last_event_lacks_the_text() {
    let events = [
        r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
        r#"{"type":"response.incomplete","response":{"status":"incomplete","output":[]}}"#,
    ];
    let (_, reading) = assemble(&wire("gpt-5", None, None), &events).unwrap();
    assert_eq!(text_and_finish(&reading.unwrap()), ("Hi", FinishReason::Length));
}

#[test]
fn errors_in_a_stream_are_errors_of_the_call() {
    for (event, failure, code) in [
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"boom"}}}"#,
            CallFailure::Server,
            "server_error",
        ),
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null}"#,
            CallFailure::RateLimited,
            "rate_limit_exceeded",
        ),
        (
            r#"{"type":"error","status":400,"error":{"type":"invalid_request_error","code":"model_not_found","message":"m"}}"#,
            CallFailure::UnknownModel,
            "model_not_found",
        ),
    ] {
        let failed = error(assemble(&wire("gpt-5", None, None), &[event]).unwrap_err());
        assert_eq!((failed.failure, failed.code.as_deref()), (failure, Some(code)), "{event}");
    }
}
