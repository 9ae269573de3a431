//! Jobs whose rows come in the request: Anthropic, Google and Mistral, and Google's files.

use serde_json::{Value, json};

use crate::support::jobs::{HOUR, MISTRAL, held, id_of, lines_of, sorted, two_hours};
use crate::support::talk::ANTHROPIC;
use crate::support::{Client, Reply};

const BATCHES: &str = "/v1/messages/batches";
const GOOGLE: &str = "x-goog-api-key: k\r\n";
const CREATE: &str = "/v1beta/models/m:batchGenerateContent";

fn messages(prompts: &[&str]) -> Value {
    let row = |(at, prompt): (usize, &&str)| {
        let message = json!({"role": "user", "content": prompt});
        json!({
            "custom_id": format!("r-{at}"),
            "params": {"model": "m", "max_tokens": 99, "messages": [message]}
        })
    };
    json!({"requests": prompts.iter().enumerate().map(row).collect::<Value>()})
}

fn anthropic_job(client: &mut Client, id: &str) -> Value {
    client.ask("GET", &format!("{BATCHES}/{id}"), ANTHROPIC).json()
}

fn results(client: &mut Client, id: &str) -> Reply {
    client.ask("GET", &format!("{BATCHES}/{id}/results"), ANTHROPIC)
}

#[test]
fn anthropics_jobs_end_and_their_rows_tell_how() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let body = messages(&["a", "b", "[[529]] c", "[[hang]] d"]);
    let job = client.post(BATCHES, ANTHROPIC, &body.to_string()).json();
    let id = id_of(&job);
    assert!(id.starts_with("msgbatch_"), "{id}");
    assert_eq!((&job["type"], &job["processing_status"]), (&json!("message_batch"), &json!("in_progress")));
    simulator.advance_job_clock(HOUR);
    let job = anthropic_job(&mut client, &id);
    let none = json!({"processing": 4, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0});
    assert_eq!((&job["request_counts"], &job["results_url"]), (&none, &Value::Null));
    assert_eq!(results(&mut client, &id).status, 404);
    let path = format!("{BATCHES}/{id}");
    assert_eq!(client.ask("DELETE", &path, ANTHROPIC).status, 400, "it is being processed");
    simulator.advance_job_clock(HOUR);
    let job = anthropic_job(&mut client, &id);
    let done = json!({"processing": 0, "succeeded": 2, "errored": 2, "canceled": 0, "expired": 0});
    assert_eq!((&job["processing_status"], &job["request_counts"]), (&json!("ended"), &done));
    assert_eq!(job["results_url"], format!("http://x{BATCHES}/{id}/results"));
    assert!(job["expires_at"].as_str().unwrap().ends_with('Z') && job["ended_at"].is_string(), "{job}");
    let lines = lines_of(&results(&mut client, &id).body);
    assert_eq!(sorted(&lines, "/custom_id"), ["r-0", "r-1", "r-2", "r-3"]);
    assert_eq!(sorted(&lines, "/result/type"), ["errored", "errored", "succeeded", "succeeded"]);
    let kinds = sorted(&lines, "/result/error/error/type");
    assert_eq!(kinds[2..], ["overloaded_error", "timeout_error"]);
    let texts = sorted(&lines, "/result/message/content/0/text");
    assert_eq!(texts[..2], ["answer to: a", "answer to: b"]);
    assert_eq!(client.ask("DELETE", &path, ANTHROPIC).json()["type"], "message_batch_deleted");
    assert_eq!(client.ask("GET", &path, ANTHROPIC).status, 404);
}

#[test]
fn a_job_of_anthropic_that_is_cancelled_or_expires_ends_with_all_rows() {
    let prompts: Vec<String> = (0..20).map(|at| format!("prompt {at}")).collect();
    let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
    let simulator = held(two_hours().window(HOUR * 3 / 2).duration(2 * HOUR));
    let mut client = Client::to(&simulator);
    let body = messages(&prompts).to_string();
    let expired = id_of(&client.post(BATCHES, ANTHROPIC, &body).json());
    let cancelled = id_of(&client.post(BATCHES, ANTHROPIC, &body).json());
    simulator.advance_job_clock(HOUR);
    let job = client.post(&format!("{BATCHES}/{cancelled}/cancel"), ANTHROPIC, "").json();
    assert_eq!(job["processing_status"], "canceling");
    assert!(job["cancel_initiated_at"].is_string());
    simulator.advance_job_clock(HOUR);
    for (id, left, count) in [(&expired, "expired", 5), (&cancelled, "canceled", 10)] {
        let job = anthropic_job(&mut client, id);
        assert_eq!(
            (&job["processing_status"], &job["request_counts"][left]),
            (&json!("ended"), &json!(count))
        );
        let lines = lines_of(&results(&mut client, id).body);
        let kinds = sorted(&lines, "/result/type");
        assert_eq!((lines.len(), kinds.iter().filter(|kind| *kind == left).count()), (20, count), "{left}");
    }
}

#[test]
fn anthropic_rejects_a_body_with_a_mistake_at_once() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let mut twice = messages(&["a", "b"]);
    twice["requests"][1]["custom_id"] = json!("r-0");
    let mut long = messages(&["a"]);
    long["requests"][0]["custom_id"] = json!("with space");
    for (body, words) in [
        (twice, "duplicate"),
        (long, "match pattern"),
        (json!({"requests": []}), "required"),
        (json!({"requests": [{"custom_id": "a"}]}), "body"),
        (json!([]), "JSON body"),
    ] {
        let reply = client.post(BATCHES, ANTHROPIC, &body.to_string());
        assert_eq!((reply.status, &reply.json()["error"]["type"]), (400, &json!("invalid_request_error")));
        assert!(reply.body.contains(words), "{words}: {}", reply.body);
    }
    assert_eq!(simulator.stats().batches.jobs, 0);
    assert_eq!(client.ask("GET", BATCHES, "").status, 401);
}

fn contents(prompt: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]})
}

fn inline(prompts: &[&str], name: &str) -> String {
    let row = |(at, prompt): (usize, &&str)| json!({"request": contents(prompt), "metadata": {"key": format!("k-{at}")}});
    let requests: Value = prompts.iter().enumerate().map(row).collect();
    json!({"batch": {"display_name": name, "input_config": {"requests": {"requests": requests}}}}).to_string()
}

fn operation(client: &mut Client, name: &Value) -> Value {
    client.ask("GET", &format!("/v1beta/{}", name.as_str().unwrap()), GOOGLE).json()
}

#[test]
fn googles_inline_jobs_return_their_responses_in_order() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let job = client.post(CREATE, GOOGLE, &inline(&["a", "[[503]] b", "c"], "mine")).json();
    assert_eq!(job["metadata"]["state"], "BATCH_STATE_PENDING");
    assert_eq!(job["metadata"]["displayName"], "mine");
    assert_eq!(job["done"], Value::Null);
    simulator.advance_job_clock(HOUR);
    let job = operation(&mut client, &job["name"]);
    assert_eq!(job["metadata"]["state"], "BATCH_STATE_RUNNING");
    simulator.advance_job_clock(HOUR);
    let job = operation(&mut client, &job["name"]);
    assert_eq!((&job["metadata"]["state"], &job["done"]), (&json!("BATCH_STATE_SUCCEEDED"), &json!(true)));
    let stats = json!({"requestCount": "3", "successfulRequestCount": "2", "failedRequestCount": "1"});
    assert_eq!(job["metadata"]["batchStats"], stats);
    let responses = job.pointer("/response/inlinedResponses/inlinedResponses").unwrap().as_array().unwrap();
    assert_eq!(job.pointer("/metadata/output/inlinedResponses"), job.pointer("/response/inlinedResponses"));
    let keys: Vec<&Value> = responses.iter().map(|response| &response["metadata"]["key"]).collect();
    assert_eq!(keys, ["k-0", "k-1", "k-2"]);
    let text = responses[2].pointer("/response/candidates/0/content/parts/0/text");
    assert_eq!(text, Some(&json!("answer to: c")));
    assert_eq!(responses[1]["error"]["code"], 14);
}

#[test]
fn googles_jobs_with_a_file_return_a_file() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let rows: Vec<String> = (0..30)
        .map(|at| json!({"key": format!("k-{at:02}"), "request": contents(&format!("p{at}"))}).to_string())
        .collect();
    let start = format!(
        "{GOOGLE}x-goog-upload-protocol: resumable\r\nx-goog-upload-command: start\r\nx-goog-upload-header-content-type: application/jsonl\r\n"
    );
    let reply = client.post("/upload/v1beta/files", &start, r#"{"file":{"display_name":"rows"}}"#);
    let url = reply.head.lines().find_map(|line| line.strip_prefix("x-goog-upload-url: http://x")).unwrap();
    let content = rows.join("\n");
    let (first, second) = content.split_at(100);
    let piece = |command: &str, offset| {
        format!("{GOOGLE}x-goog-upload-offset: {offset}\r\nx-goog-upload-command: {command}\r\n")
    };
    let reply = client.post(url, &piece("upload", 0), first);
    assert!(reply.head.contains("x-goog-upload-status: active"), "{}", reply.head);
    let reply = client.post(url, &piece("upload, finalize", 100), second);
    assert!(reply.head.contains("x-goog-upload-status: final"), "{}", reply.head);
    let file = reply.json()["file"].clone();
    assert_eq!((&file["state"], &file["sizeBytes"]), (&json!("ACTIVE"), &json!(content.len().to_string())));
    let body = json!({"batch": {"displayName": "d", "inputConfig": {"fileName": file["name"]}}});
    let job = client.post(CREATE, GOOGLE, &body.to_string()).json();
    simulator.finish_jobs();
    let job = operation(&mut client, &job["name"]);
    let name = job["response"]["responsesFile"].as_str().unwrap().to_owned();
    for path in [format!("/download/v1beta/{name}:download?alt=media"), format!("/v1beta/{name}:download")] {
        let lines = lines_of(&client.ask("GET", &path, GOOGLE).body);
        let in_order: Vec<&str> = lines.iter().map(|line| line["key"].as_str().unwrap()).collect();
        let keys = sorted(&lines, "/key");
        assert_eq!((keys.len(), keys[29].as_str()), (30, "k-29"));
        assert_ne!(in_order, keys, "results come in another order");
    }
    let reply = client.ask("GET", &format!("/v1beta/{}:download", file["name"].as_str().unwrap()), GOOGLE);
    assert_eq!(reply.status, 400, "what was uploaded cannot be downloaded");
}

#[test]
fn googles_jobs_that_expire_or_are_cancelled_lose_everything() {
    let simulator = held(two_hours().window(HOUR));
    let mut client = Client::to(&simulator);
    let expired = client.post(CREATE, GOOGLE, &inline(&["a"], "")).json();
    let cancelled = client.post(CREATE, GOOGLE, &inline(&["b"], "")).json();
    simulator.advance_job_clock(HOUR / 2);
    let path = format!("/v1beta/{}:cancel", cancelled["name"].as_str().unwrap());
    assert_eq!(client.post(&path, GOOGLE, "").json(), json!({}));
    simulator.advance_job_clock(HOUR);
    for (job, state) in [(expired, "BATCH_STATE_EXPIRED"), (cancelled, "BATCH_STATE_CANCELLED")] {
        let job = operation(&mut client, &job["name"]);
        assert_eq!((&job["metadata"]["state"], &job["done"]), (&json!(state), &json!(true)));
        assert!(job["error"]["message"].is_string() && job["response"].is_null(), "{job}");
        let path = format!("/v1beta/{}", job["name"].as_str().unwrap());
        assert_eq!(client.ask("DELETE", &path, GOOGLE).status, 200);
        assert_eq!(client.ask("GET", &path, GOOGLE).json()["error"]["status"], "NOT_FOUND");
    }
    assert_eq!(simulator.stats().batches.answers, 0);
}

#[test]
fn mistral_takes_rows_inline_and_returns_them_inline() {
    let simulator = held(two_hours());
    let mut client = Client::to(&simulator);
    let row = |id: &str, prompt: &str| json!({"custom_id": id, "body": {"messages": [{"role": "user", "content": prompt}]}});
    let body = json!({
        "endpoint": "/v1/chat/completions", "model": "m", "requests": [row("x", "a"), row("y", "[[500]]")]
    });
    let job = client.post(&MISTRAL.jobs(), MISTRAL.headers, &body.to_string()).json();
    assert_eq!(job["input_files"], json!([]));
    simulator.finish_jobs();
    let id = id_of(&job);
    let job = MISTRAL.job(&mut client, &format!("{id}?inline=true"));
    let outputs = job["outputs"].as_array().unwrap();
    assert_eq!(sorted(outputs, "/custom_id"), ["x", "y"]);
    assert_eq!(sorted(outputs, "/response/body/model")[0], "m", "rows have the model of the job");
    let reply = client.ask("DELETE", &format!("{}/{id}", MISTRAL.jobs()), MISTRAL.headers);
    assert_eq!(reply.json()["deleted"], true);
    let plain = client.ask("GET", &format!("/v1/batch/jobs/{id}"), MISTRAL.headers);
    assert_eq!(plain.status, 404, "it is the same place without the prefix");
}
