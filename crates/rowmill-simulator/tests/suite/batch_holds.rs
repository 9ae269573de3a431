//! Requests of batch APIs that are held: what they do when their client leaves, and when they are released.

use rowmill_simulator::{BatchRequestKind, HoldMoment, SimulatedBatches, Simulator};
use serde_json::json;

use crate::support::jobs::{CHAT_ENDPOINT, OPENAI, form, held, id_of, rows, two_hours};
use crate::support::{Client, End};

/// A simulator that holds a request, and a file for a job.
fn held_create(moment: HoldMoment) -> (Simulator, String) {
    let simulator = held(SimulatedBatches::new());
    let file = id_of(&OPENAI.upload(&mut Client::to(&simulator), &rows(&["a", "b"])).json());
    simulator.hold_batch_request(BatchRequestKind::Create, moment, 0);
    let body = json!({"input_file_id": file, "endpoint": CHAT_ENDPOINT, "completion_window": "24h"});
    (simulator, body.to_string())
}

/// Sends a request without reading the response.
fn send(client: &mut Client, (path, headers, body): (&str, &str, &str)) {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n");
    client.send(format!("{head}{body}").as_bytes());
}

/// The number of jobs after the client of a held request has left, and after it was released.
fn jobs_after_leaving(moment: HoldMoment) -> (u64, u64) {
    let (simulator, body) = held_create(moment);
    let mut client = Client::to(&simulator);
    send(&mut client, ("/v1/batches", OPENAI.headers, &body));
    simulator.wait_until_blocking(|stats| stats.batches.held_requests == 1);
    drop(client);
    if moment != HoldMoment::Late {
        simulator.wait_until_blocking(|stats| stats.batches.held_requests == 0);
    }
    let left = simulator.stats().batches.jobs;
    simulator.release_batch_requests();
    if moment == HoldMoment::Late {
        simulator.wait_until_blocking(|stats| stats.batches.jobs == 1);
    }
    (left, simulator.stats().batches.jobs)
}

#[test]
fn a_request_whose_client_leaves_has_had_its_effect_or_never_has_it() {
    assert_eq!(jobs_after_leaving(HoldMoment::Before), (0, 0));
    assert_eq!(jobs_after_leaving(HoldMoment::Within), (0, 0));
    assert_eq!(jobs_after_leaving(HoldMoment::After), (1, 1));
    assert_eq!(jobs_after_leaving(HoldMoment::Late), (0, 1));
}

#[test]
fn a_request_that_is_released_is_answered() {
    for moment in [HoldMoment::Before, HoldMoment::Late, HoldMoment::After] {
        let (simulator, body) = held_create(moment);
        let mut client = Client::to(&simulator);
        send(&mut client, ("/v1/batches", OPENAI.headers, &body));
        simulator.wait_until_blocking(|stats| stats.batches.held_requests == 1);
        let jobs = simulator.stats().batches.jobs;
        assert_eq!(jobs, u64::from(moment == HoldMoment::After), "{moment:?}");
        simulator.release_batch_requests();
        assert_eq!(client.receive().status, 200, "{moment:?}");
        assert_eq!(simulator.stats().batches.jobs, 1, "{moment:?}");
    }
}

#[test]
fn half_of_an_upload_or_of_results_is_cut_when_it_is_released() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let job = id_of(&OPENAI.submit(&mut client, &rows(&["a", "b", "c"])));
    simulator.finish_jobs();
    let file = OPENAI.job(&mut client, &job)["output_file_id"].as_str().unwrap().to_owned();
    simulator.hold_batch_request(BatchRequestKind::Download, HoldMoment::Within, 0);
    simulator.hold_batch_request(BatchRequestKind::Upload, HoldMoment::Within, 0);
    let path = format!("/v1/files/{file}/content");
    client.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{}\r\n", OPENAI.headers).as_bytes());
    let headers = format!("{}content-type: multipart/form-data; boundary=b\r\n", OPENAI.headers);
    let mut uploading = Client::to(&simulator);
    send(&mut uploading, ("/v1/files", &headers, &form(OPENAI.purpose, &rows(&["d"]))));
    simulator.wait_until_blocking(|stats| stats.batches.held_requests == 2);
    simulator.release_batch_requests();
    let cut = client.receive();
    assert_eq!((cut.status, cut.end), (200, End::Short));
    assert_eq!(uploading.receive().end, End::Reset);
    assert_eq!(simulator.stats().batches.uploads, 1);
    let whole = Client::to(&simulator).ask("GET", &path, OPENAI.headers);
    assert!(whole.body.starts_with(&cut.body) && cut.body.len() == whole.body.len() / 2);
}

#[test]
fn only_the_request_after_the_given_number_of_others_is_held() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let job = id_of(&OPENAI.submit(&mut client, &rows(&["a"])));
    simulator.hold_batch_request(BatchRequestKind::Report, HoldMoment::Before, 1);
    OPENAI.job(&mut client, &job);
    let path = format!("/v1/batches/{job}");
    let mut second = Client::to(&simulator);
    second.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{}\r\n", OPENAI.headers).as_bytes());
    simulator.wait_until_blocking(|stats| stats.batches.held_requests == 1);
    OPENAI.job(&mut client, &job);
    simulator.release_batch_requests();
    assert_eq!(second.receive().status, 200);
}
