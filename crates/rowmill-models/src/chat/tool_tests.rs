use proptest::prelude::*;
use rowmill_types::{CallTiming, FinishReason, Message, ToolOutput};
use serde_json::{Value, json};

use super::wire::ChatWire;
use crate::ModelSetup;
use crate::http_model::{AnswerDelivery, with_timing};
use crate::test_support::{
    assemble, assemble_bytes, body_of, conversation, conversation_with_native, file, hosted_use, pieces,
    setup, text_finish_and_calls, with_tools,
};
use crate::wire_protocol::{StreamStep, WireProtocol};

fn wire(setup: &ModelSetup) -> ChatWire {
    ChatWire::new(setup, AnswerDelivery::Whole)
}

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

const WEATHER: &str = r#"{"type":"function","function":{"name":"weather","description":"Tells it.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}"#;
const NOW: &str =
    r#"{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}"#;

#[test]
fn calls_and_results_are_sent_in_their_order_with_the_tools() {
    let setup = ModelSetup { parallel_tool_calls: Some(false), ..with_tools("generic.m", None) };
    let body =
        String::from_utf8(wire(&setup).body(&conversation(), &crate::files::UploadedFiles::NONE, None))
            .unwrap();
    assert_eq!(
        body,
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"q"}},{{"role":"assistant","content":"Let me see.","tool_calls":[{{"id":"a1","type":"function","function":{{"name":"weather","arguments":"{{\"city\":\"Ü\\\"x\\\"\"}}"}}}},{{"id":"b2","type":"function","function":{{"name":"now","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"a1","content":"12 \"C\""}},{{"role":"tool","tool_call_id":"b2","content":"broken"}}],"tools":[{WEATHER},{NOW}],"parallel_tool_calls":false}}"#
        )
    );
}

#[test]
fn pictures_of_a_result_follow_all_results() {
    let mut messages = conversation();
    messages[1].text.clear();
    messages[2].attachments =
        vec![file("a.png", "image/png", b"\x89PNG"), file("n.txt", "text/plain", b"note")];
    let body = body_of(&wire(&with_tools("generic.m", None)), &messages);
    assert_eq!(body["messages"][1]["content"], Value::Null);
    assert_eq!(body["messages"][2]["content"], "12 \"C\"\n\nFile: n.txt\n\nnote");
    assert_eq!(body["messages"][3]["role"], "tool");
    assert_eq!(
        body["messages"][4],
        json!({"role": "user", "content": [
            {"type": "text", "text": "Files that `weather` gave for the call `a1`:"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        ]})
    );
    assert_eq!(body["messages"].as_array().unwrap().len(), 5);
}

#[test]
fn calls_are_read_whole_and_an_id_that_lacks_is_made_up() {
    let wire = wire(&with_tools("generic.m", None));
    for (body, expected) in [
        (
            r#"{"choices":[{"message":{"content":"hm","tool_calls":[{"id":"x","type":"function","function":{"name":"weather","arguments":"{\"city\": 1"}},{"id":"y","function":{"name":"now","arguments":""}}]},"finish_reason":"tool_calls"}]}"#,
            ("hm", FinishReason::Complete, vec![("x", "weather", r#"{"city": 1"#), ("y", "now", "{}")]),
        ),
        (
            r#"{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"now","arguments":{"a": 1}}},{"id":"call_1","function":{"name":"now","arguments":null}},{"id":"call_1","function":{"name":"now"}}]},"finish_reason":"stop"}]}"#,
            (
                "",
                FinishReason::Complete,
                vec![("call_2", "now", r#"{"a": 1}"#), ("call_1", "now", "{}"), ("call_3", "now", "{}")],
            ),
        ),
        // A truncated call is not called.
        (
            r#"{"choices":[{"message":{"content":"hm","tool_calls":[{"id":"x","function":{"name":"now","arguments":"{"}}]},"finish_reason":"length"}]}"#,
            ("hm", FinishReason::Length, vec![]),
        ),
        (
            r#"{"choices":[{"message":{"refusal":"no","tool_calls":[{"id":"x","function":{"name":"now","arguments":"{}"}}]},"finish_reason":"stop"}]}"#,
            ("no", FinishReason::Refused, vec![]),
        ),
    ] {
        let reading = wire.read(body.as_bytes()).unwrap();
        assert_eq!(text_finish_and_calls(&reading), expected, "{body}");
        assert!(reading.echo.is_none() && reading.hosted.is_none());
    }
}

#[test]
fn servers_that_count_calls_in_their_own_way_are_understood() {
    let wire = wire(&with_tools("generic.m", None));
    let both = vec![("x", "weather", r#"{"city":"A"}"#), ("y", "now", "{}")];
    for chunks in [
        // Identified by index, with the parts of two calls interleaved.
        vec![
            r#"[{"index":0,"id":"x","function":{"name":"weather","arguments":""}}]"#,
            r#"[{"index":1,"id":"y","function":{"name":"now","arguments":"{"}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"city\":\"A\"}"}},{"index":1,"function":{"arguments":"}"}}]"#,
        ],
        // Id and name in every part.
        vec![
            r#"[{"index":0,"id":"x","function":{"name":"weather","arguments":"{\"city\":"}}]"#,
            r#"[{"index":0,"id":"x","function":{"name":"weather","arguments":"\"A\"}"}}]"#,
            r#"[{"index":1,"id":"y","function":{"name":"now","arguments":"{}"}}]"#,
        ],
        // Always the same index, or none.
        vec![
            r#"[{"index":0,"id":"x","function":{"name":"weather","arguments":"{\"city\":\"A\"}"}}]"#,
            r#"[{"index":0,"id":"y","function":{"name":"now","arguments":"{}"}}]"#,
        ],
        vec![
            r#"[{"id":"x","function":{"name":"weather","arguments":"{\"city\":"}},{"function":{"arguments":"\"A\"}"}}]"#,
            r#"[{"id":"y","function":{"name":"now"}}]"#,
        ],
    ] {
        let mut events: Vec<String> = chunks
            .iter()
            .map(|calls| format!(r#"{{"choices":[{{"delta":{{"tool_calls":{calls}}}}}]}}"#))
            .collect();
        events.push("[DONE]".to_owned());
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let (steps, reading) = assemble(&wire, &events).unwrap();
        assert_eq!(steps[0], StreamStep::Content);
        assert_eq!(
            text_finish_and_calls(&reading.unwrap()),
            ("", FinishReason::Complete, both.clone()),
            "{chunks:?}"
        );
    }
}

#[test]
fn thoughts_and_signatures_that_a_server_sent_with_calls_are_sent_back() {
    let setup = with_tools("deepseek.m", None);
    let calls = r#"[{"id":"x","type":"function","function":{"name":"now","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]"#;
    let body = format!(
        r#"{{"choices":[{{"message":{{"content":"","reasoning_content":"I \"think\"","reasoning_details":[{{"type":"reasoning.text","text":"t","signature":"z","index":0}}],"tool_calls":{calls}}}}}]}}"#
    );
    let expected = format!(
        r#"{{"role":"assistant","content":null,"reasoning_content":"I \"think\"","reasoning_details":[{{"type":"reasoning.text","text":"t","signature":"z","index":0}}],"tool_calls":{calls}}}"#
    );
    let whole = wire(&setup).read(body.as_bytes()).unwrap();
    let events = [
        r#"{"choices":[{"delta":{"reasoning_content":"I \"th","reasoning_details":[{"type":"reasoning.text","text":"","index":0}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"ink\"","reasoning_details":[{"type":"reasoning.text","text":"t","signature":null,"index":0}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","signature":"z","index":0}]}}]}"#,
        &format!(r#"{{"choices":[{{"delta":{{"tool_calls":{calls}}}}}]}}"#),
        "[DONE]",
    ];
    let streamed = assemble(&wire(&setup), &events).unwrap().1.unwrap();
    let echo = whole.echo.unwrap();
    assert_eq!((echo.format.as_str(), echo.content.as_str()), ("chat.deepseek", expected.as_str()));
    let streamed: Value = serde_json::from_str(&streamed.echo.unwrap().content).unwrap();
    assert_eq!(streamed, serde_json::from_str::<Value>(&expected).unwrap());
    let sent = body_of(&wire(&setup), &conversation_with_native("chat.deepseek", &echo.content));
    let completion = with_timing(wire(&setup).read(body.as_bytes()).unwrap(), CallTiming::default());
    assert_eq!((completion.calls.len(), completion.native), (1, Some(echo.clone())), "the caller gets both");
    assert_eq!(sent["messages"][1], serde_json::from_str::<Value>(&expected).unwrap());
    let foreign = body_of(
        &wire(&with_tools("mistral.m", None)),
        &conversation_with_native("chat.deepseek", &echo.content),
    );
    assert_eq!(foreign["messages"][1]["content"], "Let me see.");
    let plain = r#"{"choices":[{"message":{"content":"a","reasoning_content":"t"}}]}"#;
    assert!(wire(&setup).read(plain.as_bytes()).unwrap().echo.is_none(), "no calls, no echo");
}

#[test]
fn a_schema_stands_beside_tools_or_is_one_of_them() {
    let body = body_of(&wire(&with_tools("openai.m", Some(person()))), &[Message::user("q")]);
    assert_eq!(body["response_format"]["type"], "json_schema");
    assert_eq!((body["tools"].as_array().unwrap().len(), &body["tool_choice"]), (2, &Value::Null));
    for model in ["openai.m?structured=tool_use", "groq.m", "googleoai.m"] {
        let wire = wire(&with_tools(model, Some(person())));
        let body = body_of(&wire, &[Message::user("q")]);
        assert_eq!(body["tools"][2]["function"]["name"], "structured_output", "{model}");
        assert_eq!((&body["tool_choice"], &body["response_format"]), (&json!("required"), &Value::Null));
        let answer = |calls: &str| {
            let body = format!(r#"{{"choices":[{{"message":{{"content":"c","tool_calls":[{calls}]}}}}]}}"#);
            wire.read(body.as_bytes()).unwrap()
        };
        let final_call =
            r#"{"id":"z","function":{"name":"structured_output","arguments":"{\"name\": \"A\"}"}}"#;
        let call = r#"{"id":"x","function":{"name":"now","arguments":"{}"},"extra_content":{"s":1}}"#;
        assert_eq!(
            text_finish_and_calls(&answer(final_call)),
            (r#"{"name": "A"}"#, FinishReason::Complete, vec![])
        );
        let both = answer(&format!("{final_call},{call}"));
        assert_eq!(text_finish_and_calls(&both), ("c", FinishReason::Complete, vec![("x", "now", "{}")]));
        let echo: Value = serde_json::from_str(&both.echo.unwrap().content).unwrap();
        assert_eq!(echo["tool_calls"].as_array().unwrap().len(), 1, "nobody answers the answer");
        assert_eq!(echo["tool_calls"][0]["extra_content"], json!({"s": 1}));
    }
    let alone = body_of(&wire(&setup("groq.m", None, Some(person()))), &[Message::user("q")]);
    assert_eq!(alone["response_format"]["type"], "json_schema", "without tools all is as it was");
}

#[test]
fn tools_that_openrouter_runs_are_asked_for_and_reported() {
    let setup = setup("openrouter.m?web_search=true&web_fetch=on", None, None);
    let body = body_of(&wire(&setup), &[Message::user("q")]);
    assert_eq!(body["tools"], json!([{"type": "openrouter:web_search"}, {"type": "openrouter:web_fetch"}]));
    let source = r#"{"type":"url_citation","url_citation":{"url":"https://a.example","title":"A","content":"c","start_index":0,"end_index":3}}"#;
    let usage =
        r#""usage":{"prompt_tokens":1,"completion_tokens":1,"server_tool_use":{"web_search_requests":2}}"#;
    let body = format!(
        r#"{{"choices":[{{"message":{{"content":"x","annotations":[{source},{source}]}}}}],{usage}}}"#
    );
    let expected = (vec![("https://a.example", "A", "c")], vec![("web_search", 2)]);
    assert_eq!(hosted_use(&wire(&setup).read(body.as_bytes()).unwrap()), expected);
    let events = [
        &format!(r#"{{"choices":[{{"delta":{{"content":"x","annotations":[{source}]}}}}]}}"#),
        &format!(r#"{{"choices":[],{usage}}}"#),
        "[DONE]",
    ];
    assert_eq!(hosted_use(&assemble(&wire(&setup), &events).unwrap().1.unwrap()), expected);
    let off = ChatWire::new(
        &crate::test_support::setup("openrouter.m?web_search=false", None, None),
        AnswerDelivery::Whole,
    );
    assert_eq!(body_of(&off, &[Message::user("q")])["tools"], Value::Null);
}

#[test]
fn a_result_without_text_is_sent_as_one() {
    let messages = conversation();
    let empty = Message::tool(&messages[1].calls[0], ToolOutput::default());
    let body = body_of(&wire(&with_tools("generic.m", None)), &[empty]);
    assert_eq!(body["messages"][0], json!({"role": "tool", "tool_call_id": "a1", "content": ""}));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_of_a_stream_gives_the_same_calls(
        first in r#"[a-zé🦀" \\{}]{0,12}"#,
        second in r#"[a-zé🦀" \\{}]{1,12}"#,
        text in "[a-zé ]{0,12}",
        sizes in prop::collection::vec(1_usize..5, 1..4),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut stream = String::new();
        let mut event = |delta: Value| {
            stream.push_str(&format!("data: {}\n\n", json!({"choices": [{"delta": delta}]})));
        };
        for piece in pieces(&text, &sizes) {
            event(json!({"content": piece}));
        }
        for (index, (id, arguments)) in [("x", &first), ("y", &second)].into_iter().enumerate() {
            event(json!({"tool_calls": [{"index": index, "id": id, "function": {"name": "now", "arguments": ""}}]}));
            for piece in pieces(arguments, &sizes) {
                event(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
            }
        }
        stream.push_str("data: [DONE]\n\n");
        let reading = assemble_bytes(&wire(&with_tools("generic.m", None)), &stream, &cuts);
        let or_none = |text: &str| if text.trim().is_empty() { "{}".to_owned() } else { text.to_owned() };
        let (first, second) = (or_none(&first), or_none(&second));
        prop_assert_eq!(
            text_finish_and_calls(&reading),
            (text.as_str(), FinishReason::Complete, vec![("x", "now", first.as_str()), ("y", "now", second.as_str())])
        );
    }
}
