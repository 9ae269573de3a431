use proptest::prelude::*;
use rowmill_types::{FinishReason, Message};
use serde_json::{Value, json};

use super::wire::AnthropicWire;
use crate::ModelSetup;
use crate::files::UploadedFiles;
use crate::http_model::AnswerDelivery;
use crate::test_support::{
    assemble, assemble_bytes, body_of, conversation, conversation_with_native, file, hosted_use, pieces,
    setup, text_finish_and_calls, tool_call, with_tools,
};
use crate::wire_protocol::{ReadAnswer, WireProtocol};

fn wire(setup: &ModelSetup) -> AnthropicWire {
    AnthropicWire::new(setup, AnswerDelivery::Whole).unwrap()
}

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

#[test]
fn calls_and_results_are_blocks_and_results_share_a_message() {
    let setup = ModelSetup { parallel_tool_calls: Some(false), ..with_tools("claude-x", None) };
    let bytes = wire(&setup).body(&conversation(), &UploadedFiles::NONE, None);
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        r#"{"model":"claude-x","max_tokens":4096,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"a1","name":"weather","input":{"city":"Ü\"x\""}},{"type":"tool_use","id":"b2","name":"now","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a1","content":"12 \"C\""},{"type":"tool_result","tool_use_id":"b2","content":"broken","is_error":true}]}],"tools":[{"name":"weather","description":"Tells it.","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}},{"name":"now","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}"#
    );
    let instructed = ModelSetup { instruction: Some("I".to_owned()), ..with_tools("claude-x", None) };
    let body = body_of(&wire(&instructed), &conversation());
    assert_eq!(body["tools"][1].get("cache_control"), None, "the mark of the instruction covers the tools");
    assert_eq!(body.get("tool_choice"), None);
}

#[test]
fn files_stand_inside_their_result_and_odd_ids_and_arguments_are_mended() {
    let call = tool_call("functions.now:0", "now", "{broken");
    let mut result = Message::tool(&call, rowmill_types::ToolOutput::default());
    result.attachments = vec![file("a.png", "image/png", b"\x89PNG")];
    let messages = [Message { calls: vec![call], ..Message::assistant("") }, result];
    let body = body_of(&wire(&with_tools("claude-x", None)), &messages);
    assert_eq!(
        body["messages"],
        json!([
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "functions_now_0", "name": "now", "input": {}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "functions_now_0", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
            ]}]},
        ])
    );
}

const THOUGHT: &str = r#"{"type":"thinking","thinking":"hm \"so\"","signature":"EqQB"}"#;
const HIDDEN: &str = r#"{"type":"redacted_thinking","data":"EmwK"}"#;
const SPOKEN: &str = r#"{"type":"text","text":"I look."}"#;
const CALL: &str = r#"{"type":"tool_use","id":"t1","name":"weather","input":{"city":"A b","n":1.50}}"#;
const OTHER: &str = r#"{"type":"tool_use","id":"t2","name":"now","input":{}}"#;

fn both() -> (&'static str, FinishReason, Vec<(&'static str, &'static str, &'static str)>) {
    let calls = vec![("t1", "weather", r#"{"city":"A b","n":1.50}"#), ("t2", "now", "{}")];
    ("I look.", FinishReason::Complete, calls)
}

#[test]
fn calls_are_read_and_signed_thoughts_are_sent_back() {
    let setup = with_tools("claude-x", None);
    let read = |content: &str| -> ReadAnswer {
        let body = format!(r#"{{"content":[{content}],"stop_reason":"tool_use"}}"#);
        wire(&setup).read(body.as_bytes()).unwrap()
    };
    let spaced = CALL.replace(r#"{"city":"A b","#, r#"{ "city" : "A b", "#);
    let reading =
        read(&format!(r#"{THOUGHT},{HIDDEN},{{"type":"text","text":""}},{SPOKEN},{spaced},{OTHER}"#));
    assert_eq!(text_finish_and_calls(&reading), both());
    let echo = reading.echo.unwrap();
    assert_eq!(echo.format, "anthropic.anthropic");
    assert_eq!(echo.content, format!("[{THOUGHT},{HIDDEN},{SPOKEN},{spaced},{OTHER}]"));
    let sent = wire(&setup).body(
        &conversation_with_native("anthropic.anthropic", &echo.content),
        &UploadedFiles::NONE,
        None,
    );
    let sent = String::from_utf8(sent).unwrap();
    assert!(
        sent.contains(&format!(r#"{{"role":"assistant","content":{}}},{{"role":"user""#, echo.content)),
        "{sent}"
    );
    let foreign = body_of(&wire(&setup), &conversation_with_native("google.google", &echo.content));
    assert_eq!(foreign["messages"][1]["content"][0]["text"], "Let me see.");
    assert!(read(&format!("{SPOKEN},{CALL}")).echo.is_none(), "text and calls say it all");
    let cut = format!(r#"{{"content":[{THOUGHT},{SPOKEN},{CALL}],"stop_reason":"max_tokens"}}"#);
    let cut = wire(&setup).read(cut.as_bytes()).unwrap();
    assert_eq!((text_finish_and_calls(&cut), &cut.echo), (("I look.", FinishReason::Length, vec![]), &None));
}

/// The events of a stream of blocks whose texts are split into pieces of these sizes.
fn stream(blocks: &[&str], stop: &str, sizes: &[usize]) -> Vec<Value> {
    let mut events =
        vec![json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}})];
    for (index, block) in blocks.iter().enumerate() {
        let whole: Value = serde_json::from_str(block).unwrap();
        let mut start = whole.clone();
        let mut deltas = Vec::new();
        let mut grow = |field: &str, text: &str, kind: &str, name: &str| {
            deltas.extend(pieces(text, sizes).into_iter().map(|piece| json!({"type": kind, name: piece})));
            start[field] = json!("");
        };
        match whole["type"].as_str().unwrap() {
            "text" => grow("text", whole["text"].as_str().unwrap(), "text_delta", "text"),
            "thinking" => {
                grow("thinking", whole["thinking"].as_str().unwrap(), "thinking_delta", "thinking");
                grow("signature", whole["signature"].as_str().unwrap(), "signature_delta", "signature");
            }
            "tool_use" | "server_tool_use" => {
                let input = block.rsplit_once(r#""input":"#).unwrap().1.strip_suffix('}').unwrap();
                if input != "{}" {
                    grow("input", input, "input_json_delta", "partial_json");
                }
                start["input"] = json!({});
            }
            _ => {}
        }
        for citation in start
            .as_object_mut()
            .unwrap()
            .shift_remove("citations")
            .iter()
            .flat_map(|all| all.as_array().unwrap())
        {
            deltas.push(json!({"type": "citations_delta", "citation": citation}));
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.extend(
            deltas
                .into_iter()
                .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5, "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 1}}}));
    events.push(json!({"type": "message_stop"}));
    events
}

#[test]
fn a_schema_stands_beside_tools_or_is_one_of_them() {
    let wire = wire(&with_tools("claude-x", Some(person())));
    let body = body_of(&wire, &[Message::user("q")]);
    assert_eq!(body["tools"][2]["name"], "structured_output");
    assert_eq!(body["tool_choice"], json!({"type": "any"}));
    let read = |content: &str| {
        wire.read(format!(r#"{{"content":[{content}],"stop_reason":"tool_use"}}"#).as_bytes()).unwrap()
    };
    let answer = r#"{"type":"tool_use","id":"z","name":"structured_output","input":{"name": "A"}}"#;
    assert_eq!(text_finish_and_calls(&read(answer)), (r#"{"name":"A"}"#, FinishReason::Complete, vec![]));
    let mixed = read(&format!("{HIDDEN},{answer},{OTHER}"));
    assert_eq!(text_finish_and_calls(&mixed), ("", FinishReason::Complete, vec![("t2", "now", "{}")]));
    assert_eq!(mixed.echo.unwrap().content, format!("[{HIDDEN},{OTHER}]"), "nobody answers the answer");
    let json =
        AnthropicWire::new(&with_tools("claude-x?reasoning=low", Some(person())), AnswerDelivery::Whole)
            .unwrap();
    let body = body_of(&json, &[Message::user("q")]);
    assert_eq!(body["output_config"]["format"]["type"], "json_schema");
    assert_eq!((body["tools"].as_array().unwrap().len(), body.get("tool_choice")), (2, None));
}

const SEARCH: &str = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}"#;
const FOUND: &str = r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://a.example","title":"A","encrypted_content":"x"}]}"#;
const READ: &str = r#"{"type":"web_fetch_tool_result","tool_use_id":"s2","content":{"type":"web_fetch_result","url":"https://b.example","content":{"type":"document","title":"B","source":{"type":"text","data":"d"}}}}"#;
const CITED: &str = r#"{"type":"text","text":"I look.","citations":[{"type":"web_search_result_location","cited_text":"c","url":"https://a.example","title":"A","encrypted_index":"i"},{"type":"char_location","cited_text":"d","document_index":0,"document_title":"B","start_char_index":0,"end_char_index":1}]}"#;

#[test]
fn tools_that_run_at_the_provider_are_asked_for_and_reported() {
    let setup = setup("claude-x?web_search=true&web_fetch=true", None, None);
    assert_eq!(
        body_of(&wire(&setup), &[Message::user("q")])["tools"],
        json!([
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "web_fetch_20250910", "name": "web_fetch", "citations": {"enabled": true}},
        ])
    );
    let expected = (
        vec![("https://a.example", "A", "c"), ("https://b.example", "B", "d")],
        vec![("web_search", 1), ("web_fetch", 1)],
    );
    let content = [SEARCH, FOUND, READ, CITED].join(",");
    let body = format!(
        r#"{{"content":[{content}],"stop_reason":"end_turn","usage":{{"input_tokens":1,"server_tool_use":{{"web_search_requests":1,"web_fetch_requests":1}}}}}}"#
    );
    let reading = wire(&setup).read(body.as_bytes()).unwrap();
    assert_eq!(text_finish_and_calls(&reading), ("I look.", FinishReason::Complete, vec![]));
    assert_eq!((hosted_use(&reading), &reading.echo), (expected.clone(), &None));
    let events: Vec<String> =
        stream(&[SEARCH, FOUND, READ, CITED], "end_turn", &[2]).iter().map(Value::to_string).collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let streamed = assemble(&wire(&setup), &events).unwrap().1.unwrap();
    assert_eq!(
        (text_finish_and_calls(&streamed), hosted_use(&streamed)),
        (("I look.", FinishReason::Complete, vec![]), expected)
    );
}

#[test]
fn a_turn_that_was_paused_goes_on_when_it_is_sent_back() {
    let setup = setup("claude-x?web_search=true", None, None);
    let body = format!(r#"{{"content":[{SEARCH},{FOUND}],"stop_reason":"pause_turn"}}"#);
    let events: Vec<String> =
        stream(&[SEARCH, FOUND], "pause_turn", &[3]).iter().map(Value::to_string).collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let streamed = assemble(&wire(&setup), &events).unwrap().1.unwrap();
    for reading in [wire(&setup).read(body.as_bytes()).unwrap(), streamed] {
        assert_eq!(text_finish_and_calls(&reading), ("", FinishReason::Paused, vec![]));
        assert_eq!(reading.echo.as_ref().unwrap().content, format!("[{SEARCH},{FOUND}]"));
        let again = Message { native: reading.echo, ..Message::assistant("") };
        let body = body_of(&wire(&setup), &[Message::user("q"), again]);
        assert_eq!(body["messages"][1]["content"][1]["type"], "web_search_tool_result");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_split_of_a_stream_gives_the_same_as_the_whole(
        sizes in prop::collection::vec(1_usize..9, 1..4),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let blocks = [THOUGHT, HIDDEN, SPOKEN, CALL, OTHER];
        let events = stream(&blocks, "tool_use", &sizes);
        let stream: String = events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect();
        let reading = assemble_bytes(&wire(&with_tools("claude-x", None)), &stream, &cuts);
        prop_assert_eq!(text_finish_and_calls(&reading), both());
        prop_assert_eq!(reading.echo.unwrap().content, format!("[{}]", blocks.join(",")));
    }
}
