//! Statistics, held answers, the WebSocket, instant answers and the shutdown.

use std::net::TcpStream;
use std::time::Duration;

use crate::support::{CHAT, Client, End, chat};
use futures_util::{SinkExt, StreamExt};
use rowmill_simulator::{Simulator, SimulatorScript};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

#[test]
fn statistics_count_calls_answers_and_prompts() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let mut client = Client::to(&simulator);
    for prompt in ["a", "a", "b", "c [[500x1]]"] {
        client.post(CHAT, "x-test: 1\r\n", &chat(prompt));
    }
    let stats = simulator.stats();
    assert_eq!((stats.requests, stats.answers, stats.connections), (4, 3, 1));
    assert_eq!((stats.distinct_prompts, stats.repeated_answers, stats.max_in_flight), (3, 1, 1));
    assert_eq!((stats.by_status[&200], stats.by_status[&500], stats.in_flight), (3, 1, 0));
    assert_eq!((stats.answers_by_prompt["a"], stats.answers_by_prompt["b"]), (2, 1));
    assert_eq!(client.get("/stats").json(), json!(stats));

    let requests = simulator.requests();
    assert_eq!((requests.len(), requests[2].json()["messages"][0]["content"].as_str()), (4, Some("b")));
    assert_eq!((requests[0].header("x-test"), requests[0].path.as_str()), (Some("1"), CHAT));
}

#[test]
fn held_answers_wait_until_they_are_released() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().hold_after(1));
    assert_eq!(Client::to(&simulator).post(CHAT, "", &chat("first")).status, 200);
    let mut clients: Vec<Client> = (0..3).map(|_| Client::to(&simulator)).collect();
    for client in &mut clients {
        let body = chat("held");
        client
            .send(format!("POST {CHAT} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }
    let stats = simulator.wait_until_blocking(|stats| stats.in_flight == 3);
    assert_eq!((stats.answers, stats.max_in_flight), (1, 3));
    simulator.release_some(1);
    simulator.wait_until_blocking(|stats| stats.answers == 2 && stats.in_flight == 2);
    simulator.release();
    for mut client in clients {
        assert_eq!(client.receive().status, 200);
    }
    assert_eq!(simulator.stats().answers, 4);
}

#[test]
fn everything_stops_when_the_simulator_is_dropped() {
    let simulator = Simulator::start_blocking(SimulatorScript::new());
    let address = simulator.url().strip_prefix("http://").unwrap().to_owned();
    let mut client = Client::to(&simulator);
    let body = chat("[[hang]]");
    client.send(format!("POST {CHAT} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    simulator.wait_until_blocking(|stats| stats.in_flight == 1);
    drop(simulator);
    assert_ne!(client.receive().end, End::Whole);
    assert!(TcpStream::connect(address).is_err());
}

async fn turn<S>(socket: &mut S, prompt: &str) -> Vec<Value>
where
    S: SinkExt<Message> + StreamExt<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin,
    S::Error: std::fmt::Debug,
{
    let create = json!({"type": "response.create", "model": "m", "input": prompt});
    socket.send(Message::text(create.to_string())).await.unwrap();
    let mut events = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let event: Value = serde_json::from_str(&text).unwrap();
        let kind = event["type"].as_str().unwrap_or("error").to_owned();
        events.push(event);
        if ["response.completed", "response.incomplete", "error"].contains(&kind.as_str()) {
            break;
        }
    }
    events
}

fn responses_url(simulator: &Simulator) -> String {
    format!("{}/v1/responses", simulator.url().replace("http", "ws"))
}

#[tokio::test]
async fn one_websocket_serves_many_calls() {
    let simulator = Simulator::start(SimulatorScript::new()).await;
    let (mut socket, _) = tokio_tungstenite::connect_async(responses_url(&simulator)).await.unwrap();
    for prompt in ["one", "two", "three"] {
        let events = turn(&mut socket, prompt).await;
        assert_eq!(events[0]["type"], "response.created");
        let last = events.last().unwrap();
        let text = last.pointer("/response/output/0/content/0/text").unwrap();
        assert_eq!(text, &json!(format!("answer to: {prompt}")));
    }
    assert_eq!(turn(&mut socket, "[[503x1]]").await[0]["status"], 503);
    assert_eq!(turn(&mut socket, "[[length]]").await.last().unwrap()["type"], "response.incomplete");
    let stats = simulator.stats();
    assert_eq!((stats.connections, stats.requests, stats.answers), (1, 5, 4));
}

#[tokio::test]
async fn a_websocket_can_be_cut_in_the_middle_of_an_answer() {
    let simulator = Simulator::start(SimulatorScript::new()).await;
    for prompt in ["[[truncate]]", "[[midway]]", "[[reset]]"] {
        let (mut socket, _) = tokio_tungstenite::connect_async(responses_url(&simulator)).await.unwrap();
        let events = turn(&mut socket, prompt).await;
        assert!(events.iter().all(|event| event["type"] != "response.completed"), "{prompt}");
    }
    assert_eq!(simulator.stats().answers, 0);
}

#[tokio::test]
async fn a_websocket_needs_the_key_too() {
    let simulator = Simulator::start(SimulatorScript::new().key("k")).await;
    assert!(tokio_tungstenite::connect_async(responses_url(&simulator)).await.is_err());
    assert_eq!(simulator.stats().by_status[&401], 1);
}

#[test]
fn the_instant_path_answers_every_protocol_also_when_pipelined() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().instant_answer("ready"));
    let mut client = Client::to(&simulator);
    let place = [
        (CHAT, "/choices/0/message/content"),
        ("/v1/responses", "/output/0/content/0/text"),
        ("/v1/messages", "/content/0/text"),
        ("/v1beta/models/any:generateContent", "/candidates/0/content/parts/0/text"),
    ];
    for (path, place) in place {
        assert_eq!(client.post(path, "", "{}").json().pointer(place), Some(&json!("ready")), "{path}");
    }
    assert!(client.post(CHAT, "", r#"{"stream":true}"#).body.contains("[DONE]"));
    let body = chat("x");
    let request = format!("POST {CHAT} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (start, rest) = request.split_at(7);
    client.send(format!("{request}{start}").as_bytes());
    assert_eq!(client.receive().status, 200);
    client.send(rest.as_bytes());
    assert_eq!(client.receive().status, 200);
    let stats = client.get("/stats").json();
    assert_eq!((&stats["requests"], &stats["answers"]), (&json!(7), &json!(7)));
}

#[test]
fn the_instant_path_makes_answers_of_the_asked_length_after_the_latency() {
    let script =
        SimulatorScript::new().instant_answer("a").answer_bytes(300).latency(Duration::from_millis(1));
    let simulator = Simulator::start_blocking(script);
    let reply = Client::to(&simulator).post(CHAT, "", "{}").json();
    assert_eq!(reply["choices"][0]["message"]["content"].as_str().unwrap().len(), 300);
}
