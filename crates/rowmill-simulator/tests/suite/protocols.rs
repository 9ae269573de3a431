//! Each protocol answers in its vendor's format.

use crate::support;

use crate::support::{CHAT, Client, End};
use rowmill_schema_faker::{seed_from, simulated_value};
use rowmill_simulator::{SimulatedAnswer, Simulator, SimulatorScript};
use serde_json::{Value, json};

const ANTHROPIC: &str = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["grade", "why"],
           "properties": {"grade": {"enum": ["a", "b"]}, "why": {"type": "string"}}})
}

fn expected() -> Value {
    simulated_value(&schema(), seed_from(&["Rate it."])).unwrap_or_default()
}

/// The text of an answer, plain or streamed, for each protocol.
struct Way {
    path: &'static str,
    headers: &'static str,
    body: Value,
    text_at: &'static str,
    piece_at: &'static str,
}

fn ways(schema: Option<Value>) -> Vec<Way> {
    let mut chat = json!({"model": "m", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rate it."}]});
    let mut responses = json!({"model": "m", "instructions": "Be brief.", "input": [{"role": "user", "content": [{"type": "input_text", "text": "Rate it."}]}]});
    let mut messages = json!({"model": "m", "max_tokens": 900, "system": "Be brief.", "messages": [{"role": "user", "content": "Rate it."}]});
    let mut google = json!({"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [{"role": "user", "parts": [{"text": "Rate it."}]}]});
    if let Some(schema) = schema {
        chat["response_format"] =
            json!({"type": "json_schema", "json_schema": {"name": "s", "strict": true, "schema": schema}});
        responses["text"] = json!({"format": {"type": "json_schema", "name": "s", "schema": schema}});
        messages["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        google["generationConfig"] =
            json!({"responseMimeType": "application/json", "responseJsonSchema": schema});
    }
    let way = |path, headers, body, text_at, piece_at| Way { path, headers, body, text_at, piece_at };
    vec![
        way(CHAT, "", chat, "/choices/0/message/content", "/choices/0/delta/content"),
        way("/v1/responses", "", responses, "/output/0/content/0/text", "/delta"),
        way("/v1/messages", ANTHROPIC, messages, "/content/0/text", "/delta/text"),
        way(
            "/v1beta/models/m:generateContent",
            "",
            google,
            "/candidates/0/content/parts/0/text",
            "/candidates/0/content/parts/0/text",
        ),
    ]
}

fn streamed(way: &Way) -> (String, String) {
    let mut body = way.body.clone();
    if way.path.starts_with("/v1beta") {
        return ("/v1beta/models/m:streamGenerateContent?alt=sse".into(), body.to_string());
    }
    body["stream"] = json!(true);
    (way.path.into(), body.to_string())
}

#[test]
fn without_a_schema_every_protocol_echoes_the_prompt() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    for way in ways(None) {
        let reply = client.post(way.path, way.headers, &way.body.to_string());
        assert_eq!((reply.status, reply.end), (200, End::Whole), "{}", way.path);
        let answer = reply.json();
        assert_eq!(answer.pointer(way.text_at), Some(&json!("answer to: Rate it.")), "{answer}");
    }
    assert_eq!(simulator.stats().connections, 1);
}

#[test]
fn with_a_schema_every_protocol_gives_the_value_that_follows_from_the_prompt() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    for way in ways(Some(schema())) {
        let answer = client.post(way.path, way.headers, &way.body.to_string()).json();
        let text = answer.pointer(way.text_at).and_then(Value::as_str).unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected(), "{}", way.path);
    }
}

#[test]
fn the_pieces_of_every_stream_add_up_to_the_answer() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    for way in ways(None) {
        let (path, body) = streamed(&way);
        let reply = client.post(&path, way.headers, &body);
        assert!(reply.head.contains("text/event-stream"), "{}", reply.head);
        let pieces: Vec<String> = reply
            .events()
            .iter()
            .filter_map(|event| event.pointer(way.piece_at)?.as_str().map(str::to_owned))
            .collect();
        assert!(pieces.len() > 2, "{path}: {pieces:?}");
        assert_eq!(pieces.concat(), "answer to: Rate it.", "{path}");
    }
}

#[test]
fn streams_carry_the_events_that_their_vendors_send() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let names = |way: &Way, client: &mut Client| -> Vec<String> {
        let (path, body) = streamed(way);
        let mut names: Vec<String> = client
            .post(&path, way.headers, &body)
            .events()
            .iter()
            .map(|event| event["type"].as_str().unwrap_or_default().to_owned())
            .collect();
        names.dedup();
        names
    };
    let ways = ways(None);
    assert_eq!(
        names(&ways[1], &mut client),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    assert_eq!(
        names(&ways[2], &mut client),
        [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
}

#[test]
fn a_chat_stream_tells_the_usage_only_when_asked() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let mut body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]});
    let reply = client.post(CHAT, "", &body.to_string());
    assert!(reply.events().iter().all(|event| event.get("usage").is_none()));
    assert!(reply.body.ends_with("data: [DONE]\n\n"));

    body["stream_options"] = json!({"include_usage": true});
    let events = client.post(CHAT, "", &body.to_string()).events();
    assert_eq!(events.last().unwrap()["choices"], json!([]));
    assert!(events.last().unwrap()["usage"]["total_tokens"].as_u64().unwrap() > 1);
}

#[test]
fn a_forced_tool_is_called_with_input_that_fits_its_schema() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let mut body = json!({"model": "m", "max_tokens": 900, "messages": [{"role": "user", "content": "Rate it."}],
        "tools": [{"name": "give", "input_schema": schema()}], "tool_choice": {"type": "tool", "name": "give"}});
    let answer = client.post("/v1/messages", ANTHROPIC, &body.to_string()).json();
    assert_eq!(
        (&answer["content"][0]["type"], &answer["content"][0]["input"]),
        (&json!("tool_use"), &expected())
    );
    assert_eq!(answer["stop_reason"], "tool_use");

    body["stream"] = json!(true);
    let events = client.post("/v1/messages", ANTHROPIC, &body.to_string()).events();
    let input: String =
        events.iter().filter_map(|event| event.pointer("/delta/partial_json")?.as_str()).collect();
    assert_eq!(serde_json::from_str::<Value>(&input).unwrap(), expected());

    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "Rate it."}], "tool_choice": "required",
        "tools": [{"type": "function", "function": {"name": "give", "parameters": schema()}}]});
    let answer = client.post(CHAT, "", &chat.to_string()).json();
    let arguments = answer.pointer("/choices/0/message/tool_calls/0/function/arguments").unwrap();
    assert_eq!(serde_json::from_str::<Value>(arguments.as_str().unwrap()).unwrap(), expected());
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn googles_own_schema_dialect_is_understood() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let body = json!({"contents": [{"parts": [{"text": "x"}]}], "generationConfig": {"responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}, "required": ["n"]}}});
    let answer =
        Client::to(&simulator).post("/v1beta/models/m:generateContent", "", &body.to_string()).json();
    let text = answer.pointer("/candidates/0/content/parts/0/text").unwrap().as_str().unwrap();
    assert!(serde_json::from_str::<Value>(text).unwrap()["n"].is_i64(), "{text}");
}

#[test]
fn a_script_can_answer_by_prompt_and_by_call() {
    let simulator =
        Simulator::start_blocking(SimulatorScript::new().answer_prompts(|prompt, call| match prompt {
            "json" => SimulatedAnswer::Json(json!({"call": call})),
            "made" => SimulatedAnswer::Default,
            _ => SimulatedAnswer::Text(format!("{prompt} {call}")),
        }));
    let mut client = Client::to(&simulator);
    let mut text = |prompt: &str| {
        client.post(CHAT, "", &support::chat(prompt)).json()["choices"][0]["message"]["content"].clone()
    };
    assert_eq!(text("json"), r#"{"call":1}"#);
    assert_eq!(text("json"), r#"{"call":2}"#);
    assert_eq!(text("other"), "other 1");
    assert_eq!(text("made"), "answer to: made");
}
