//! Large inputs are streamed to disk and back, and nothing is left.

use std::io::Write;
use std::net::TcpStream;

use rowmill_simulator::{SimulatedBatches, Simulator, SimulatorScript};

use crate::support::jobs::{OPENAI, TOGETHER, form, held, id_of, row, rows, two_hours};
use crate::support::talk::ANTHROPIC;
use crate::support::{Client, End};
use serde_json::json;

/// More than is kept in memory.
const LARGE: usize = 3 << 20;

fn large_rows() -> String {
    let text = "x".repeat(1_000);
    let rows = (0..LARGE / 1_000).map(|at| row(&format!("r-{at}"), &format!("{at} {text}")).to_string());
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_large_upload_arrives_whole_with_a_length_and_in_chunks() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let content = large_rows();
    let by_length = id_of(&OPENAI.upload(&mut client, &content).json());
    let address = simulator.url();
    let mut stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
    let head = "POST /v1/files HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\nconnection: close\r\ncontent-type: multipart/form-data; boundary=b\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    for chunk in form("batch", &content).as_bytes().chunks(100_000) {
        stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).unwrap();
        stream.write_all(chunk).unwrap();
        stream.write_all(b"\r\n").unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    std::io::Read::read_to_end(&mut stream, &mut Vec::new()).unwrap();
    let listed = client.ask("GET", "/v1/files", OPENAI.headers).json();
    let sizes: Vec<u64> =
        listed["data"].as_array().unwrap().iter().map(|file| file["bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [content.len() as u64; 2]);
    let reply = client.ask("GET", &format!("/v1/files/{by_length}/content"), OPENAI.headers);
    assert!(reply.end == End::Whole && reply.body == content, "it comes back as it was sent");
    assert!(simulator.requests().iter().all(|request| request.body.len() < LARGE));
}

#[test]
fn a_large_request_with_inline_rows_is_taken() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let text = "x".repeat(1_000);
    let row = |at: usize| {
        let messages = json!([{"role": "user", "content": format!("{at} {text}")}]);
        json!({"custom_id": format!("r-{at}"), "params": {"model": "m", "max_tokens": 9, "messages": messages}})
    };
    let body = json!({"requests": (0..LARGE / 1_000).map(row).collect::<Vec<_>>()}).to_string();
    let reply = client.post("/v1/messages/batches", ANTHROPIC, &body);
    assert_eq!(reply.json()["request_counts"]["processing"], LARGE / 1_000, "{}", reply.body);
    simulator.finish_jobs();
    assert_eq!(simulator.stats().batches.answers, (LARGE / 1_000) as u64);
}

#[test]
fn a_large_file_for_calls_is_still_a_file_for_calls() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let headers = "authorization: Bearer k\r\ncontent-type: multipart/form-data; boundary=b\r\n";
    let content = "x".repeat(LARGE);
    let reply = client.post("/v1/files", headers, &form("user_data", &content));
    assert_eq!((reply.status, &reply.json()["bytes"]), (200, &json!(LARGE)), "{}", reply.body);
    let stats = simulator.stats();
    assert_eq!((stats.uploads, stats.batches.uploads), (1, 0));
}

#[test]
fn a_simulator_can_stop_while_it_makes_results_and_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let batches = SimulatedBatches::new().folder(folder.path());
    let simulator = Simulator::start_blocking(SimulatorScript::new().batches(batches));
    let mut client = Client::to(&simulator);
    for _ in 0..3 {
        OPENAI.submit(&mut client, &large_rows());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    drop(simulator);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_deleted_input_does_not_disturb_its_job() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let job = OPENAI.submit(&mut client, &rows(&["a", "b"]));
    let path = format!("/v1/files/{}", job["input_file_id"].as_str().unwrap());
    assert_eq!(client.ask("DELETE", &path, OPENAI.headers).status, 200);
    simulator.finish_jobs();
    assert_eq!(OPENAI.job(&mut client, &id_of(&job))["request_counts"]["completed"], 2);
}

#[test]
fn results_can_have_expired() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let id = id_of(&OPENAI.submit(&mut client, &rows(&["a"])));
    simulator.finish_jobs();
    let job = OPENAI.job(&mut client, &id);
    simulator.expire_files();
    let path = format!("/v1/files/{}/content", job["output_file_id"].as_str().unwrap());
    assert_eq!(client.ask("GET", &path, OPENAI.headers).status, 404);
}

#[test]
fn togethers_own_client_uploads_in_three_steps() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let headers = format!("{}content-type: multipart/form-data; boundary=b\r\n", TOGETHER.headers);
    let part = |name: &str, value: &str| {
        format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let body = format!("{}{}--b--\r\n", part("purpose", "batch-api"), part("file_name", "a.jsonl"));
    let reply = client.post("/together/v1/files", &headers, &body);
    assert_eq!(reply.status, 302, "{}", reply.body);
    let header = |name: &str| reply.head.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let (place, id) = (header("location: http://x").to_owned(), header("x-together-file-id: ").to_owned());
    assert_eq!(TOGETHER.order(&mut client, &id).status, 404, "the bytes are not there yet");
    let rows = rows(&["a"]);
    client.send(
        format!("PUT {place} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{rows}", rows.len()).as_bytes(),
    );
    assert_eq!(client.receive().status, 200);
    let path = format!("/together/v1/files/{id}/preprocess");
    assert_eq!(client.post(&path, TOGETHER.headers, "").json()["filename"], "a.jsonl");
    let reply = TOGETHER.order(&mut client, &id);
    assert_eq!((reply.status, &reply.json()["job"]["status"]), (200, &json!("VALIDATING")));
}
