//! Requests that a provider would reject are rejected with its own message.

use crate::support::{CHAT, Client, End, chat};
use rowmill_simulator::{Simulator, SimulatorScript};
use serde_json::{Value, json};

const VERSION: &str = "anthropic-version: 2023-06-01\r\n";
const GOOGLE: &str = "/v1beta/models/m:generateContent";

fn body(model: &str) -> String {
    json!({"model": model, "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}], "input": "hi",
           "contents": [{"parts": [{"text": "hi"}]}]})
    .to_string()
}

#[test]
fn a_wrong_key_is_refused_and_the_right_one_is_not() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().key("right"));
    let mut client = Client::to(&simulator);
    let messages = |key: &str| format!("x-api-key: {key}\r\n{VERSION}");
    let table: [(&str, String, String, &str, Value); 4] = [
        (
            CHAT,
            "authorization: Bearer wrong\r\n".into(),
            "authorization: Bearer right\r\n".into(),
            "/error/code",
            json!("invalid_api_key"),
        ),
        (
            "/v1/responses",
            String::new(),
            "authorization: Bearer right\r\n".into(),
            "/error/code",
            json!("invalid_api_key"),
        ),
        ("/v1/messages", messages("wrong"), messages("right"), "/error/type", json!("authentication_error")),
        (
            GOOGLE,
            "x-goog-api-key: wrong\r\n".into(),
            "x-goog-api-key: right\r\n".into(),
            "/error/status",
            json!("UNAUTHENTICATED"),
        ),
    ];
    for (path, wrong, right, place, value) in table {
        let reply = client.post(path, &wrong, &body("m"));
        assert_eq!((reply.status, reply.json().pointer(place)), (401, Some(&value)), "{path}");
        assert_eq!(client.post(path, &right, &body("m")).status, 200, "{path}");
    }
    assert_eq!(client.post(&format!("{GOOGLE}?key=right"), "", &body("m")).status, 200);
    assert_eq!(client.post("/v1/models/m:generateContent?key=right", "", &body("m")).status, 200);
    let bearer = format!("authorization: Bearer right\r\n{VERSION}");
    assert_eq!(client.post("/v1/messages", &bearer, &body("m")).status, 200);
}

#[test]
fn an_unknown_model_is_refused_once_models_are_named() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().model("m").model("n"));
    let mut client = Client::to(&simulator);
    let anthropic = format!("x-api-key: k\r\n{VERSION}");
    for (path, headers, place, value) in [
        (CHAT, "", "/error/code", "model_not_found"),
        ("/v1/responses", "", "/error/code", "model_not_found"),
        ("/v1/messages", anthropic.as_str(), "/error/type", "not_found_error"),
        ("/v1beta/models/other:generateContent", "", "/error/status", "NOT_FOUND"),
    ] {
        let reply = client.post(path, headers, &body("other"));
        assert_eq!((reply.status, reply.json().pointer(place)), (404, Some(&json!(value))), "{path}");
    }
    assert_eq!(client.post(CHAT, "", &body("n")).status, 200);
}

#[test]
fn requests_that_lack_what_their_vendor_demands_are_refused() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let anthropic = format!("x-api-key: k\r\n{VERSION}");
    for (path, headers, body, status) in [
        (CHAT, "", "{not json", 400),
        (CHAT, "", "[]", 400),
        (CHAT, "", r#"{"model":"m"}"#, 400),
        (CHAT, "", r#"{"messages":[{"role":"user","content":"x"}]}"#, 400),
        ("/v1/responses", "", r#"{"model":"m"}"#, 400),
        ("/v1/messages", VERSION, body("m").as_str(), 401),
        ("/v1/messages", "x-api-key: k\r\n", body("m").as_str(), 400),
        (
            "/v1/messages",
            anthropic.as_str(),
            r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#,
            400,
        ),
        (GOOGLE, "", "{}", 400),
        ("/v2/elsewhere", "", "{}", 404),
    ] {
        let reply = client.post(path, headers, body);
        assert_eq!((reply.status, reply.end), (status, End::Whole), "{path} {body}");
        assert!(reply.json().get("error").is_some(), "{}", reply.body);
    }
    assert_eq!(client.get(CHAT).status, 405);
}

#[test]
fn chunked_bodies_and_expectations_are_read_like_others() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let text = chat("chunked");
    let (first, rest) = text.split_at(10);
    let chunked = format!(
        "POST {CHAT} HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\na\r\n{first}\r\n{:x};note=1\r\n{rest}\r\n0\r\n\r\n",
        rest.len()
    );
    client.send(chunked.as_bytes());
    assert_eq!(client.receive().json()["choices"][0]["message"]["content"], "answer to: chunked");
    assert_eq!(simulator.requests()[0].body, text.as_bytes());

    client.send(
        format!("POST {CHAT} HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n", text.len())
            .as_bytes(),
    );
    assert_eq!(client.take(25), b"HTTP/1.1 100 Continue\r\n\r\n");
    client.send(text.as_bytes());
    assert_eq!(client.receive().status, 200);
}

#[test]
fn what_is_not_http_is_reported_as_such() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    client.send(b"\x16\x03\x01 this is no request\r\n\r\n");
    assert_eq!(client.receive().status, 400);
}

#[test]
fn texts_of_the_script_are_served_and_others_are_not_found() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().serve_text("prompt.md", "Rate {{x}} é"));
    let mut client = Client::to(&simulator);
    let reply = client.get("/text/prompt.md");
    assert_eq!((reply.status, reply.body.as_str()), (200, "Rate {{x}} é"));
    assert_eq!(client.get("/text/other.md").status, 404);
    assert_eq!(simulator.stats().requests, 0);
}

#[test]
fn a_schema_that_asks_for_more_than_is_made_is_refused_at_once() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let schema = json!({"type": "array", "minItems": 4_000_000_000u64});
    let format = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
    let messages = json!([{"role": "user", "content": "hi"}]);
    let body = json!({"model": "m", "messages": messages, "response_format": format});
    let reply = client.post(CHAT, "", &body.to_string());
    assert_eq!(reply.status, 400);
    let message = reply.json()["error"]["message"].clone();
    assert!(message.as_str().unwrap().contains("asks for more than the simulator can generate"), "{message}");
}
