//! Each fault has its described effect on the wire.

use std::time::Duration;

use crate::support::{CHAT, Client, End, chat};
use rowmill_simulator::{FaultTrigger, SimulatedFault, Simulator, SimulatorScript};
use serde_json::{Value, json};

fn content(answer: &Value) -> &Value {
    &answer["choices"][0]["message"]["content"]
}

#[test]
fn damage_to_the_connection_is_seen_by_the_client() {
    let whole = {
        let simulator = Simulator::start_blocking(SimulatorScript::new());
        Client::to(&simulator).post(CHAT, "", &chat("x")).body.len()
    };
    for (fault, end, status) in [
        (SimulatedFault::Reset, End::Reset, 0),
        (SimulatedFault::ResetMidway, End::Reset, 200),
        (SimulatedFault::Truncate, End::Short, 200),
    ] {
        let simulator =
            Simulator::start_blocking(SimulatorScript::new().fault(FaultTrigger::Nth(1), fault.clone()));
        let reply = Client::to(&simulator).post(CHAT, "", &chat("x"));
        assert_eq!(reply.end, end, "{fault:?}");
        // A reset may overtake data that was sent before it.
        assert!(reply.status == status || (end == End::Reset && reply.status == 0), "{fault:?}: {reply:?}");
        assert!(reply.body.len() < whole, "{fault:?}: {reply:?}");
        assert_eq!(simulator.stats().answers, 0, "{fault:?}");
        assert_eq!(Client::to(&simulator).post(CHAT, "", &chat("x")).end, End::Whole, "{fault:?}");
        assert_eq!(simulator.stats().answers, 1, "{fault:?}");
    }
}

#[test]
fn a_truncated_stream_ends_without_its_last_chunk() {
    let simulator = Simulator::start_blocking(
        SimulatorScript::new().fault(FaultTrigger::Always, SimulatedFault::Truncate),
    );
    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]});
    let reply = Client::to(&simulator).post(CHAT, "", &body.to_string());
    assert_eq!((reply.status, reply.end), (200, End::Short));
    assert!(!reply.body.contains("[DONE]"));
}

#[test]
fn an_error_status_has_the_vendors_body_and_the_scripts_headers() {
    let fault = SimulatedFault::from_status(429).with_header("retry-after", "2");
    let simulator = Simulator::start_blocking(SimulatorScript::new().fault(FaultTrigger::Always, fault));
    let mut client = Client::to(&simulator);
    let reply = client.post(CHAT, "", &chat("x"));
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (429, &json!("rate_limit_exceeded")));
    assert!(reply.head.contains("retry-after: 2"), "{}", reply.head);
    let google = r#"{"contents":[{"parts":[{"text":"x"}]}]}"#;
    let reply = client.post("/v1beta/models/m:generateContent", "", google);
    assert_eq!(reply.json()["error"]["status"], "RESOURCE_EXHAUSTED");

    let own = SimulatedFault::from_status(500).with_body("<html>bad gateway</html>");
    let simulator = Simulator::start_blocking(SimulatorScript::new().fault(FaultTrigger::Always, own));
    let reply = Client::to(&simulator).post(CHAT, "", &chat("x"));
    assert_eq!((reply.status, reply.body.as_str()), (500, "<html>bad gateway</html>"));
}

#[test]
fn garbage_is_a_success_that_is_no_json() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let reply = Client::to(&simulator).post(CHAT, "", &chat("[[garbage]]"));
    assert_eq!(reply.status, 200);
    assert!(serde_json::from_str::<Value>(&reply.body).is_err());
}

#[test]
fn a_call_that_hangs_ends_only_when_the_client_leaves() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let body = chat("[[hangx1]]");
    client.send(format!("POST {CHAT} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    assert_eq!(simulator.wait_until_blocking(|stats| stats.in_flight == 1).answers, 0);
    drop(client);
    let stats = simulator.wait_until_blocking(|stats| stats.in_flight == 0);
    assert_eq!((stats.abandoned, stats.answers), (1, 0));
    assert_eq!(Client::to(&simulator).post(CHAT, "", &body).status, 200);
}

#[test]
fn a_dripping_answer_comes_byte_by_byte_as_the_test_lets_it() {
    let simulator =
        Simulator::start_blocking(SimulatorScript::new().fault(FaultTrigger::Always, SimulatedFault::Drip));
    let mut client = Client::to(&simulator);
    let body = chat("x");
    client.send(format!("POST {CHAT} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(client.take(1));
    }
    simulator.release_bytes(3);
    assert_eq!(client.take(3), b"{\"i");
    assert_eq!(simulator.stats().answers, 0);
    simulator.release_bytes(100_000);
    simulator.wait_until_blocking(|stats| stats.answers == 1);

    let paced = SimulatorScript::new()
        .fault(FaultTrigger::Always, SimulatedFault::Drip)
        .drip_every(Duration::from_micros(1));
    let simulator = Simulator::start_blocking(paced);
    assert_eq!(Client::to(&simulator).post(CHAT, "", &body).end, End::Whole);
}

#[test]
fn markers_in_prompts_strike_as_often_as_they_say() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let mut statuses =
        |prompt: &str| -> Vec<u16> { (0..4).map(|_| client.post(CHAT, "", &chat(prompt)).status).collect() };
    assert_eq!(statuses("a [[503x2]]"), [503, 503, 200, 200]);
    assert_eq!(statuses("b [[503x2]]"), [503, 503, 200, 200]);
    assert_eq!(statuses("[[400]]"), [400; 4]);
    assert_eq!(statuses("[[429x1]][[500x1]]"), [429, 500, 200, 200]);
}

#[test]
fn content_faults_bend_the_answer() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let mut ask = |prompt: &str| {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": prompt}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}});
        client.post(CHAT, "", &body.to_string()).json()
    };
    let finish = |answer: &Value| answer["choices"][0]["finish_reason"].as_str().unwrap().to_owned();

    assert_eq!(content(&ask("[[empty]]")), "");
    assert_eq!(content(&ask("[[null]]")), "null");
    let refused = ask("[[refusal]]");
    assert!(content(&refused).is_null() && refused["choices"][0]["message"]["refusal"].is_string());
    assert_eq!(finish(&ask("[[length]]")), "length");
    assert_eq!(finish(&ask("[[filter]]")), "content_filter");
    let fenced = ask("[[fenced]]");
    assert!(content(&fenced).as_str().unwrap().starts_with("```json\n{"), "{fenced}");

    let fits = |answer: &Value| {
        let value: Value = serde_json::from_str(content(answer).as_str().unwrap()).unwrap();
        jsonschema::is_valid(&schema, &value)
    };
    let answers: Vec<bool> = (0..3).map(|_| fits(&ask("[[wrongx2]]"))).collect();
    assert_eq!(answers, [false, false, true]);
}

#[test]
fn the_other_protocols_tell_the_same_faults_in_their_words() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    let headers = "x-api-key: k\r\nanthropic-version: 1\r\n";
    let mut ask = |path: &str, prompt: &str| {
        let body = json!({"model": "m", "max_tokens": 5, "input": prompt, "messages": [{"role": "user", "content": prompt}],
            "contents": [{"parts": [{"text": prompt}]}]});
        client.post(path, headers, &body.to_string()).json()
    };
    let google = "/v1beta/models/m:generateContent";
    for (path, prompt, place, value) in [
        ("/v1/responses", "[[length]]", "/incomplete_details/reason", "max_output_tokens"),
        ("/v1/responses", "[[filter]]", "/incomplete_details/reason", "content_filter"),
        ("/v1/responses", "[[refusal]]", "/output/0/content/0/type", "refusal"),
        ("/v1/messages", "[[length]]", "/stop_reason", "max_tokens"),
        ("/v1/messages", "[[refusal]]", "/stop_reason", "refusal"),
        ("/v1/messages", "[[529]]", "/error/type", "overloaded_error"),
        (google, "[[length]]", "/candidates/0/finishReason", "MAX_TOKENS"),
        (google, "[[filter]]", "/candidates/0/finishReason", "SAFETY"),
        (google, "[[refusal]]", "/promptFeedback/blockReason", "PROHIBITED_CONTENT"),
    ] {
        let answer = ask(path, prompt);
        assert_eq!(answer.pointer(place), Some(&json!(value)), "{path} {prompt}: {answer}");
    }
}

#[test]
fn faults_at_a_rate_follow_from_the_seed() {
    let struck = |seed: u64| -> Vec<u16> {
        let script = SimulatorScript::new()
            .seed(seed)
            .fault(FaultTrigger::Rate(0.3), SimulatedFault::from_status(500));
        let simulator = Simulator::start_blocking(script);
        let mut client = Client::to(&simulator);
        (0..100).map(|_| client.post(CHAT, "", &chat("x")).status).collect()
    };
    let first = struck(1);
    assert_eq!(first, struck(1));
    assert_ne!(first, struck(2));
    let count = first.iter().filter(|status| **status == 500).count();
    assert!((10..60).contains(&count), "{count} of 100");
}

#[test]
fn a_fault_for_a_prompt_strikes_each_such_prompt_so_many_times() {
    let rule = FaultTrigger::PromptContains("row".into(), 1);
    let simulator =
        Simulator::start_blocking(SimulatorScript::new().fault(rule, SimulatedFault::from_status(503)));
    let mut client = Client::to(&simulator);
    let mut status = |prompt: &str| client.post(CHAT, "", &chat(prompt)).status;
    assert_eq!([status("row 1"), status("row 1"), status("row 2"), status("other")], [503, 200, 503, 200]);
}
