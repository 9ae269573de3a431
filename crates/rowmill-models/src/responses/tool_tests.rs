use proptest::prelude::*;
use rowmill_types::{FinishReason, Message};
use serde_json::{Value, json};

use super::wire::{RequestCarrier, ResponsesWire, check_settings};
use crate::ModelSetup;
use crate::files::UploadedFiles;
use crate::test_support::{
    assemble, assemble_bytes, body_of, conversation, conversation_with_native, file, hosted_use, pieces,
    setup, text_finish_and_calls, with_tools,
};
use crate::wire_protocol::{StreamStep, WireProtocol};

fn wire(setup: &ModelSetup) -> ResponsesWire {
    ResponsesWire::new(setup, RequestCarrier::Whole)
}

const TOOLS: &str = r#""tools":[{"type":"function","name":"weather","description":"Tells it.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"strict":false},{"type":"function","name":"now","parameters":{"type":"object","properties":{}},"strict":false}]"#;

const INPUT: &str = r#""input":[{"role":"user","content":"q"},{"role":"assistant","content":"Let me see."},{"type":"function_call","call_id":"a1","name":"weather","arguments":"{\"city\":\"Ü\\\"x\\\"\"}"},{"type":"function_call","call_id":"b2","name":"now","arguments":"{}"},{"type":"function_call_output","call_id":"a1","output":"12 \"C\""},{"type":"function_call_output","call_id":"b2","output":"broken"}],"store":false"#;

#[test]
fn calls_and_results_are_items_and_thoughts_are_asked_for() {
    let setup = ModelSetup { parallel_tool_calls: Some(true), ..with_tools("gpt-5", None) };
    let bytes = wire(&setup).body(&conversation(), &UploadedFiles::NONE, None);
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        format!(
            r#"{{"model":"gpt-5",{INPUT},{TOOLS},"parallel_tool_calls":true,"include":["reasoning.encrypted_content"]}}"#
        )
    );
    let socket = ResponsesWire::new(&with_tools("gpt-4.1", None), RequestCarrier::Socket);
    let bytes = socket.body(&conversation(), &UploadedFiles::NONE, None);
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        format!(r#"{{"type":"response.create","model":"gpt-4.1",{INPUT},{TOOLS}}}"#),
        "a model that does not think refuses to be asked for thoughts"
    );
}

#[test]
fn files_stand_inside_their_result() {
    let mut messages = conversation();
    messages[1].text.clear();
    messages[2].attachments =
        vec![file("a.png", "image/png", b"\x89PNG"), file("n.txt", "text/plain", b"note")];
    let body = body_of(&wire(&with_tools("gpt-5", None)), &messages);
    assert_eq!(body["input"][1]["type"], "function_call");
    assert_eq!(
        body["input"][3]["output"],
        json!([
            {"type": "input_text", "text": "12 \"C\""},
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw=="},
            {"type": "input_text", "text": "File: n.txt\n\nnote"},
        ])
    );
}

const THOUGHT: &str = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}"#;
const NAMED: &str = r#"{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":null}"#;
const SPOKEN: &str = r#"{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"hm","annotations":[]}]}"#;
const CALL: &str = r#"{"type":"function_call","id":"fc_1","call_id":"x","name":"weather","arguments":"{\"city\": \"A\"}","status":"completed"}"#;
const OTHER: &str = r#"{"type":"function_call","id":"fc_2","call_id":"y","name":"now","arguments":"{}"}"#;

fn both() -> (&'static str, FinishReason, Vec<(&'static str, &'static str, &'static str)>) {
    ("hm", FinishReason::Complete, vec![("x", "weather", r#"{"city": "A"}"#), ("y", "now", "{}")])
}

#[test]
fn calls_are_read_and_what_was_thought_is_sent_back() {
    let setup = with_tools("gpt-5", None);
    let body = format!(r#"{{"status":"completed","output":[{THOUGHT},{NAMED},{SPOKEN},{CALL},{OTHER}]}}"#);
    let reading = wire(&setup).read(body.as_bytes()).unwrap();
    assert_eq!(text_finish_and_calls(&reading), both());
    let echo = reading.echo.unwrap();
    assert_eq!(echo.format, "responses.responses");
    assert_eq!(
        echo.content,
        format!("[{THOUGHT},{SPOKEN},{CALL},{OTHER}]"),
        "a thought that only has a name stays"
    );
    let sent = body_of(&wire(&setup), &conversation_with_native("responses.responses", &echo.content));
    let items = sent["input"].as_array().unwrap();
    assert_eq!(items[1], serde_json::from_str::<Value>(THOUGHT).unwrap());
    assert_eq!((items.len(), &items[5]["call_id"]), (6, &json!("a1")));
    let foreign = body_of(&wire(&setup), &conversation_with_native("responses.xai", &echo.content));
    assert_eq!(foreign["input"][1], json!({"role": "assistant", "content": "Let me see."}));
    let plain = format!(r#"{{"status":"completed","output":[{SPOKEN},{CALL}]}}"#);
    assert!(wire(&setup).read(plain.as_bytes()).unwrap().echo.is_none(), "text and calls say it all");
    let cut = format!(r#"{{"status":"incomplete","output":[{THOUGHT},{SPOKEN},{CALL}]}}"#);
    let cut = wire(&setup).read(cut.as_bytes()).unwrap();
    assert_eq!((text_finish_and_calls(&cut), &cut.echo), (("hm", FinishReason::Length, vec![]), &None));
}

#[test]
fn a_stream_gives_the_same_with_and_without_its_items_at_the_end() {
    let setup = with_tools("gpt-5", None);
    for output in [format!("[{THOUGHT},{SPOKEN},{CALL},{OTHER}]"), "[]".to_owned()] {
        let items = [THOUGHT, SPOKEN, CALL, OTHER];
        let mut events = vec![r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#.to_owned()];
        events.extend(items.map(|item| format!(r#"{{"type":"response.output_item.done","item":{item}}}"#)));
        events.push(format!(
            r#"{{"type":"response.completed","response":{{"status":"completed","output":{output}}}}}"#
        ));
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let (steps, reading) = assemble(&wire(&setup), &events).unwrap();
        assert_eq!(steps[0], StreamStep::Content);
        let reading = reading.unwrap();
        assert_eq!(text_finish_and_calls(&reading), both(), "{output}");
        assert_eq!(reading.echo.unwrap().content, format!("[{THOUGHT},{SPOKEN},{CALL},{OTHER}]"));
    }
}

#[test]
fn a_schema_is_the_format_of_the_text_also_beside_tools() {
    let schema = json!({"type": "array", "items": {"type": "integer"}});
    let wire = wire(&with_tools("gpt-5?web_search=true", Some(schema)));
    let body = body_of(&wire, &[Message::user("q")]);
    assert_eq!(body["text"]["format"]["type"], "json_schema");
    assert_eq!(body["tools"].as_array().unwrap().len(), 3);
    let done = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"{\"value\":[1]}"}]}]}"#;
    assert_eq!(
        text_finish_and_calls(&wire.read(done.as_bytes()).unwrap()),
        ("[1]", FinishReason::Complete, vec![])
    );
}

#[test]
fn searches_are_asked_for_and_reported() {
    let setup = setup("gpt-5?web_search=true", None, None);
    assert_eq!(body_of(&wire(&setup), &[Message::user("q")])["tools"], json!([{"type": "web_search"}]));
    let body = r#"{"status":"completed","output":[{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}},{"type":"web_search_call","id":"ws_2"},{"type":"message","content":[{"type":"output_text","text":"x","annotations":[{"type":"url_citation","start_index":0,"end_index":1,"url":"https://a.example","title":"A"}]}]}]}"#;
    let reading = wire(&setup).read(body.as_bytes()).unwrap();
    assert_eq!(hosted_use(&reading), (vec![("https://a.example", "A", "-")], vec![("web_search", 2)]));
    assert!(reading.echo.is_none());
}

#[test]
fn xai_is_asked_through_its_responses_api_where_its_tools_are_wanted() {
    let setup = setup("grok-4?web_search=true&x_search=true&max_tokens=5", None, None);
    assert_eq!(setup.connection.protocol, crate::ProviderProtocol::Responses);
    let body = body_of(&wire(&setup), &[Message::user("q")]);
    assert_eq!(body["tools"], json!([{"type": "web_search"}, {"type": "x_search"}]));
    assert_eq!(body["max_output_tokens"], 5);
    check_settings(&setup).unwrap();
    let answer = r#"{"status":"completed","citations":["https://x.example/1"],"output":[{"type":"custom_tool_call","name":"x_keyword_search","call_id":"c"},{"type":"function_call","name":"x_user_search","call_id":"d","arguments":"{}"},{"type":"message","content":[{"type":"output_text","text":"t"}]}]}"#;
    let reading = wire(&setup).read(answer.as_bytes()).unwrap();
    assert_eq!(text_finish_and_calls(&reading), ("t", FinishReason::Complete, vec![]));
    assert_eq!(hosted_use(&reading), (vec![("https://x.example/1", "-", "-")], vec![("x_search", 2)]));
    let plain = crate::test_support::setup("grok-4", None, None);
    assert_eq!(plain.connection.protocol, crate::ProviderProtocol::Chat);
    let odd = crate::test_support::setup("grok-4?x_search=true&seed=1", None, None);
    let problem = check_settings(&odd).unwrap_err();
    assert!(problem.message.ends_with("`seed` cannot be set together with `x_search`"), "{problem}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_split_of_a_stream_gives_the_same_calls(
        arguments in r#"[a-zé🦀" \\{}]{1,12}"#,
        sizes in prop::collection::vec(1_usize..5, 1..4),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let item = json!({"type": "function_call", "call_id": "x", "name": "now", "arguments": arguments});
        let mut stream = String::new();
        let mut event = |event: Value| stream.push_str(&format!("data: {event}\n\n"));
        for piece in pieces(&arguments, &sizes) {
            event(json!({"type": "response.function_call_arguments.delta", "delta": piece}));
        }
        event(json!({"type": "response.output_item.done", "item": item}));
        event(json!({"type": "response.completed", "response": {"status": "completed", "output": [item]}}));
        let reading = assemble_bytes(&wire(&with_tools("gpt-5", None)), &stream, &cuts);
        let expected = if arguments.trim().is_empty() { "{}" } else { arguments.as_str() };
        prop_assert_eq!(text_finish_and_calls(&reading), ("", FinishReason::Complete, vec![("x", "now", expected)]));
    }
}
