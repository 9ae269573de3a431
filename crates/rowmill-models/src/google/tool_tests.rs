use proptest::prelude::*;
use rowmill_types::{FinishReason, Message};
use serde_json::{Value, json};

use super::wire::GoogleWire;
use crate::ModelSetup;
use crate::files::UploadedFiles;
use crate::test_support::{
    assemble, assemble_bytes, body_of, conversation, conversation_with_native, file, hosted_use, setup,
    text_finish_and_calls, tool_call, with_tools,
};
use crate::wire_protocol::{ReadAnswer, StreamStep, WireProtocol};

fn wire(setup: &ModelSetup) -> GoogleWire {
    GoogleWire::new(setup).unwrap()
}

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

#[test]
fn calls_and_results_are_parts_and_results_share_a_content() {
    let tools = r#""tools":[{"functionDeclarations":[{"name":"weather","description":"Tells it.","parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}},{"name":"now"}]}]"#;
    for (model, signature) in [
        ("gemini-2.5-pro", ""),
        ("gemini-3-pro", r#","thoughtSignature":"skip_thought_signature_validator""#),
    ] {
        let bytes = wire(&with_tools(model, None)).body(&conversation(), &UploadedFiles::NONE, None);
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            format!(
                r#"{{"contents":[{{"role":"user","parts":[{{"text":"q"}}]}},{{"role":"model","parts":[{{"text":"Let me see."}},{{"functionCall":{{"id":"a1","name":"weather","args":{{"city":"Ü\"x\""}}}}{signature}}},{{"functionCall":{{"id":"b2","name":"now","args":{{}}}}}}]}},{{"role":"user","parts":[{{"functionResponse":{{"id":"a1","name":"weather","response":{{"output":"12 \"C\""}}}}}},{{"functionResponse":{{"id":"b2","name":"now","response":{{"error":"broken"}}}}}}]}}],{tools}}}"#
            ),
            "{model}"
        );
    }
}

#[test]
fn files_stand_inside_a_result_or_behind_all_and_made_up_ids_stay_here() {
    let calls = vec![tool_call("call_1", "now", "[]"), tool_call("call_2", "now", "{}")];
    let mut first = Message::tool(&calls[0], rowmill_types::ToolOutput::from_text("a"));
    first.attachments = vec![file("a.png", "image/png", b"\x89PNG"), file("n.txt", "text/plain", b"note")];
    let second = Message::tool(&calls[1], rowmill_types::ToolOutput::from_text("b"));
    let messages = [Message { calls, ..Message::assistant("") }, first, second];
    let png = json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}});
    let note = json!({"text": "File: n.txt\n\nnote"});
    let second = json!({"functionResponse": {"name": "now", "response": {"output": "b"}}});
    let newer = body_of(&wire(&with_tools("gemini-3-pro", None)), &messages);
    assert_eq!(newer["contents"][0]["parts"][1], json!({"functionCall": {"name": "now", "args": {}}}));
    let inside = json!({"functionResponse": {"name": "now", "response": {"output": "a"}, "parts": [png]}});
    assert_eq!(newer["contents"][1]["parts"], json!([inside, second, note]));
    let early = body_of(&wire(&with_tools("gemini-2.5-pro", None)), &messages);
    let alone = json!({"functionResponse": {"name": "now", "response": {"output": "a"}}});
    assert_eq!(early["contents"][1]["parts"], json!([alone, second, png, note]));
}

const SIGNED: &str = r#"{"functionCall":{"name":"weather","args":{"city":"A b","n":1.50},"id":"g1"},"thoughtSignature":"CiQB"}"#;
const OTHER: &str = r#"{"functionCall":{"name":"now","args":{}}}"#;
const SPOKEN: &str = r#"{"text":"I look."}"#;

fn body(parts: &str, reason: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},"finishReason":"{reason}"}}]}}"#
    )
}

fn both() -> (&'static str, FinishReason, Vec<(&'static str, &'static str, &'static str)>) {
    let calls = vec![("g1", "weather", r#"{"city":"A b","n":1.50}"#), ("call_1", "now", "{}")];
    ("I look.", FinishReason::Complete, calls)
}

#[test]
fn calls_are_read_and_signatures_are_sent_back() {
    let setup = with_tools("gemini-3-pro", None);
    let read = |parts: &str, reason: &str| wire(&setup).read(body(parts, reason).as_bytes()).unwrap();
    let reading = read(&[SPOKEN, SIGNED, OTHER].join(","), "STOP");
    assert_eq!(text_finish_and_calls(&reading), both());
    let echo = reading.echo.unwrap();
    assert_eq!(
        (echo.format.as_str(), &echo.content),
        ("google.google", &format!("[{SPOKEN},{SIGNED},{OTHER}]"))
    );
    let sent = wire(&setup).body(
        &conversation_with_native("google.google", &echo.content),
        &UploadedFiles::NONE,
        None,
    );
    let sent = String::from_utf8(sent).unwrap();
    assert!(sent.contains(&format!(r#"{{"role":"model","parts":{}}}"#, echo.content)), "{sent}");
    let foreign = body_of(&wire(&setup), &conversation_with_native("anthropic.anthropic", &echo.content));
    assert_eq!(foreign["contents"][1]["parts"][0]["text"], "Let me see.");
    assert!(read(&[SPOKEN, OTHER].join(","), "STOP").echo.is_none(), "text and calls say it all");
    let cut = read(&[SPOKEN, SIGNED].join(","), "MAX_TOKENS");
    assert_eq!((text_finish_and_calls(&cut), &cut.echo), (("I look.", FinishReason::Length, vec![]), &None));
}

#[test]
fn a_schema_stands_beside_tools_or_is_one_of_them() {
    let newer = body_of(&wire(&with_tools("gemini-3-pro", Some(person()))), &[Message::user("q")]);
    assert_eq!(newer["generationConfig"]["responseJsonSchema"], person());
    assert_eq!(newer["toolConfig"], Value::Null);
    let early = wire(&with_tools("gemini-2.5-pro", Some(json!({"enum": ["a"]}))));
    let sent = body_of(&early, &[Message::user("q")]);
    assert_eq!(sent["generationConfig"], Value::Null);
    assert_eq!(sent["tools"][0]["functionDeclarations"][2]["name"], "structured_output");
    assert_eq!(sent["toolConfig"], json!({"functionCallingConfig": {"mode": "ANY"}}));
    let answer = r#"{"functionCall":{"name":"structured_output","args":{"value":"a"}}}"#;
    let read = |parts: &str| -> ReadAnswer { early.read(body(parts, "STOP").as_bytes()).unwrap() };
    assert_eq!(text_finish_and_calls(&read(answer)), (r#""a""#, FinishReason::Complete, vec![]));
    let mixed = read(&[answer, SIGNED].join(","));
    assert_eq!(mixed.calls.len(), 1);
    assert_eq!(mixed.echo.unwrap().content, format!("[{SIGNED}]"), "nobody answers the answer");
}

#[test]
fn tools_that_run_at_the_provider_are_asked_for_and_reported() {
    let setup = setup("gemini-3-pro?web_search=true&web_fetch=true", None, Some(person()));
    let sent = body_of(&wire(&setup), &[Message::user("q")]);
    assert_eq!(sent["tools"], json!([{"googleSearch": {}}, {"urlContext": {}}]));
    assert_eq!(sent["toolConfig"], Value::Null);
    let mixed = body_of(&wire(&with_tools("gemini-3-pro?web_search=true", None)), &[Message::user("q")]);
    assert_eq!(mixed["tools"].as_array().unwrap().len(), 2);
    assert_eq!(mixed["toolConfig"], json!({"includeServerSideToolInvocations": true}));
    let grounding = r#""groundingMetadata":{"webSearchQueries":["q","r"],"groundingChunks":[{"web":{"uri":"https://a.example","title":"A"}},{"web":{"uri":"https://b.example","title":"B"}}],"groundingSupports":[{"segment":{"startIndex":0,"endIndex":3,"text":"I l"},"groundingChunkIndices":[0,7]}]},"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://c.example","urlRetrievalStatus":"URL_RETRIEVAL_STATUS_SUCCESS"}]}"#;
    let first = body(SPOKEN, "STOP").replace(r#","finishReason":"STOP""#, "");
    let last = format!(r#"{{"candidates":[{{"finishReason":"STOP",{grounding}}}]}}"#);
    let whole = body(SPOKEN, "STOP").replace(r#""finishReason""#, &format!(r#"{grounding},"finishReason""#));
    let expected = (
        vec![
            ("https://a.example", "A", "I l"),
            ("https://b.example", "B", "-"),
            ("https://c.example", "-", "-"),
        ],
        vec![("web_search", 2), ("web_fetch", 1)],
    );
    let reading = wire(&setup).read(whole.as_bytes()).unwrap();
    assert_eq!(
        (text_finish_and_calls(&reading), hosted_use(&reading)),
        (("I look.", FinishReason::Complete, vec![]), expected.clone())
    );
    let (steps, reading) = assemble(&wire(&setup), &[&first, &last]).unwrap();
    assert_eq!(steps, [StreamStep::Content, StreamStep::NoContent]);
    assert_eq!(hosted_use(&reading.unwrap()), expected);
}

#[test]
fn early_models_are_not_asked_for_what_they_refuse() {
    for (setup, beside) in [
        (with_tools("gemini-2.5-pro?web_search=true", None), "other tools"),
        (setup("gemini-2.5-pro?web_fetch=true", None, Some(person())), "a schema"),
    ] {
        let problem = GoogleWire::new(&setup).unwrap_err();
        assert_eq!(problem.code, rowmill_types::ProblemCode::InvalidModel);
        assert!(problem.message.contains(&format!("cannot be used with {beside}")), "{problem}");
        assert!(problem.hint.unwrap().starts_with("use a newer model"));
    }
    wire(&setup("gemini-2.5-pro?web_search=true", None, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_split_of_a_stream_gives_the_same_as_the_whole(
        breaks in prop::collection::vec(any::<bool>(), 3),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut chunks = vec![Vec::new()];
        for (part, ends) in [SPOKEN, SIGNED, OTHER].into_iter().zip(breaks) {
            chunks.last_mut().unwrap().push(part);
            if ends {
                chunks.push(Vec::new());
            }
        }
        let mut stream = String::new();
        for (index, parts) in chunks.iter().enumerate() {
            let chunk = body(&parts.join(","), "STOP");
            let is_last = index + 1 == chunks.len();
            let chunk = if is_last { chunk } else { chunk.replace(r#","finishReason":"STOP""#, "") };
            stream.push_str(&format!("data: {chunk}\r\n\r\n"));
        }
        let reading = assemble_bytes(&wire(&with_tools("gemini-3-pro", None)), &stream, &cuts);
        prop_assert_eq!(text_finish_and_calls(&reading), both());
        prop_assert_eq!(reading.echo.unwrap().content, format!("[{SPOKEN},{SIGNED},{OTHER}]"));
    }
}
