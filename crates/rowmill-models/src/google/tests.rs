use rowmill_types::{CallFailure, FinishReason};
use serde_json::{Value, json};

use super::wire::GoogleWire;
use crate::test_support::{assemble, error, plain_body, repair_body, setup, text_and_finish, tokens};
use crate::wire_protocol::{StreamStep, WireProtocol};

fn wire(model: &str, instruction: Option<&str>, schema: Option<Value>) -> GoogleWire {
    GoogleWire::new(&setup(model, instruction, schema)).unwrap()
}

#[test]
fn bodies_hold_the_contents_and_what_was_set_and_nothing_else() {
    for (model, instruction, expected) in [
        ("gemini-3-pro", None, r#"{"contents":[{"role":"user","parts":[{"text":"Hi \"there\"\n"}]}]}"#),
        (
            "gemini-3-pro",
            Some("Be kind"),
            r#"{"systemInstruction":{"parts":[{"text":"Be kind"}]},"contents":[{"role":"user","parts":[{"text":"Hi \"there\"\n"}]}]}"#,
        ),
        (
            "gemini-3-pro?temp=0&top_p=0.5&top_k=4&presence_penalty=1&frequency_penalty=1&max_tokens=9&seed=7&stop=END&reasoning=low",
            None,
            r#"{"contents":[{"role":"user","parts":[{"text":"Hi \"there\"\n"}]}],"generationConfig":{"temperature":0.0,"topP":0.5,"topK":4,"presencePenalty":1.0,"frequencyPenalty":1.0,"maxOutputTokens":9,"seed":7,"stopSequences":["END"],"thinkingConfig":{"thinkingLevel":"low"}}}"#,
        ),
    ] {
        assert_eq!(plain_body(&wire(model, instruction, None)), expected, "{model}");
    }
    assert_eq!(
        repair_body(&wire("gemini-3-pro", None, None)),
        r#"{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"{}"}]},{"role":"user","parts":[{"text":"fix it"}]}]}"#
    );
}

#[test]
fn a_schema_is_sent_as_it_is() {
    let schema = json!({"type": "array", "items": {"type": "string"}});
    assert_eq!(
        plain_body(&wire("gemini-3-pro", None, Some(schema))),
        r#"{"contents":[{"role":"user","parts":[{"text":"Hi \"there\"\n"}]}],"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"array","items":{"type":"string"}}}}"#
    );
}

#[test]
fn thinking_is_asked_for_as_the_model_takes_it() {
    for (model, expected) in [
        ("gemini-2.5-flash?reasoning=none", json!({"thinkingBudget": 0})),
        ("gemini-2.5-flash?reasoning=auto", json!({"thinkingBudget": -1})),
        ("gemini-2.5-flash?reasoning=high", json!({"thinkingBudget": 24576})),
        ("gemini-2.5-flash?reasoning=512", json!({"thinkingBudget": 512})),
        ("gemini-3-pro?reasoning=high", json!({"thinkingLevel": "high"})),
    ] {
        let body: Value = serde_json::from_str(&plain_body(&wire(model, None, None))).unwrap();
        assert_eq!(body["generationConfig"]["thinkingConfig"], expected, "{model}");
    }
}

#[test]
fn answers_are_read_in_every_shape() {
    let wire = wire("gemini-3-pro", None, None);
    for (body, expected) in [
        (
            r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"a"},{"text":"b"}],"role":"model"},"finishReason":"STOP"}]}"#,
            ("ab", FinishReason::Complete),
        ),
        (
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS"}]}"#,
            ("a", FinishReason::Length),
        ),
        (r#"{"candidates":[{"content":{},"finishReason":"MAX_TOKENS"}]}"#, ("", FinishReason::Length)),
        (r#"{"candidates":[{"finishReason":"SAFETY"}]}"#, ("", FinishReason::Filtered)),
        (r#"{"candidates":[{"finishReason":"RECITATION"}]}"#, ("", FinishReason::Filtered)),
        (r#"{"candidates":[{"finishReason":"PROHIBITED_CONTENT"}]}"#, ("", FinishReason::Filtered)),
        (
            r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3}}"#,
            ("the prompt was blocked: SAFETY", FinishReason::Filtered),
        ),
    ] {
        assert_eq!(text_and_finish(&wire.read(body.as_bytes()).unwrap()), expected, "{body}");
    }
}

#[test]
fn thoughts_are_a_part_of_the_output() {
    let body = r#"{"candidates":[{"finishReason":"STOP"}],"modelVersion":"gemini-3-pro-1","usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":7,"totalTokenCount":22}}"#;
    let reading = wire("gemini-3-pro", None, None).read(body.as_bytes()).unwrap();
    assert_eq!(reading.usage, tokens([10, 4, 0, 12, 7]));
    assert!(reading.raw_usage.unwrap().get().contains(r#""totalTokenCount":22"#));
    assert_eq!(reading.model.as_deref(), Some("gemini-3-pro-1"));
}

#[test]
fn what_is_no_answer_is_an_error() {
    let wire = wire("gemini-3-pro", None, None);
    for (body, failure) in [
        (r#"{"candidates":[]}"#, CallFailure::Malformed),
        ("[", CallFailure::Malformed),
        (
            r#"{"candidates":[{"content":{"parts":[{"text":"half"}]},"finishReason":"OTHER"}]}"#,
            CallFailure::Server,
        ),
        (r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#, CallFailure::Server),
    ] {
        assert_eq!(error(wire.read(body.as_bytes()).unwrap_err()).failure, failure, "{body}");
    }
}

#[test]
fn a_stream_is_complete_once_it_gave_a_reason() {
    let wire = wire("gemini-3-pro", None, None);
    let first =
        r#"{"candidates":[{"content":{"parts":[{"text":"He"}]}}],"usageMetadata":{"promptTokenCount":3}}"#;
    let last = r#"{"candidates":[{"content":{"parts":[{"text":"llo"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}"#;
    let (steps, reading) = assemble(&wire, &[first, last]).unwrap();
    assert_eq!(steps, [StreamStep::Content, StreamStep::Content]);
    let reading = reading.unwrap();
    assert_eq!(text_and_finish(&reading), ("Hello", FinishReason::Complete));
    assert_eq!(reading.usage, tokens([3, 0, 0, 2, 0]));
    assert!(assemble(&wire, &[first]).unwrap().1.is_none());
}
