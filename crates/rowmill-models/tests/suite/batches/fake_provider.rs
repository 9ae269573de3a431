//! A provider with a batch API, small enough to be read at once: it answers each prompt with itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::BytesMut;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rowmill_testkit::{RecordedRequest, read_request};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::ok;
use crate::server::answer;

/// The moment of everything, in seconds since 1970.
const NOW: i64 = 1_795_000_000;
const NOW_TEXT: &str = "2026-11-18T11:06:40Z";
/// How many reports of a job are made before it ends.
const REPORTS: u32 = 2;

#[derive(Debug, Default)]
struct FakeJob {
    key: Value,
    input: String,
    lines: Vec<Value>,
    reports: u32,
    cancelled: bool,
}

impl FakeJob {
    fn has_ended(&self) -> bool {
        self.cancelled || self.reports > REPORTS
    }
}

/// Its files and jobs, by id.
#[derive(Debug, Default)]
pub(super) struct FakeProvider {
    address: String,
    files: BTreeMap<String, String>,
    jobs: BTreeMap<String, FakeJob>,
    made: usize,
}

/// Serves for ever.
pub(super) async fn serve_jobs(listener: &TcpListener, address: &str) {
    let mut provider = FakeProvider { address: address.to_owned(), ..FakeProvider::default() };
    let mut connections = FuturesUnordered::new();
    loop {
        let (mut stream, seen) = tokio::select! {
            accepted = listener.accept() => {
                connections.push(next_request(accepted.unwrap().0));
                continue;
            }
            Some((stream, Some(seen))) = connections.next() => (stream, seen),
            else => continue,
        };
        let answer = provider
            .handle(&seen)
            .unwrap_or_else(|| answer("404 Not Found", "", r#"{"error":{"message":"not here"}}"#));
        stream.write_all(&answer).await.unwrap();
        connections.push(next_request(stream));
    }
}

async fn next_request(mut stream: TcpStream) -> (TcpStream, Option<RecordedRequest>) {
    let seen = read_request(&mut stream, &mut BytesMut::new()).await;
    (stream, seen)
}

fn parsed(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl FakeProvider {
    fn id(&mut self, start: &str) -> String {
        self.made += 1;
        format!("{start}{}", self.made)
    }

    fn handle(&mut self, seen: &RecordedRequest) -> Option<Vec<u8>> {
        let path = seen.path.split('?').next().unwrap();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        match (seen.method.as_str(), parts.as_slice()) {
            ("POST", ["v1", "files"]) => Some(self.form(seen)),
            (method, ["v1", "files", rest @ ..]) => self.file(method, rest[0]),
            (method, ["v1", "batches", rest @ ..]) => self.openai(method, rest, &seen.json()),
            (method, ["v1", "messages", "batches", rest @ ..]) => self.anthropic(method, rest, &seen.json()),
            ("POST", ["upload", ..]) => {
                let url = format!("x-goog-upload-url: {}/put\r\n", self.address);
                Some(answer("200 OK", &url, ""))
            }
            ("POST", ["put"]) => {
                let id = self.id("f");
                let name = format!("files/{id}");
                self.files.insert(id, String::from_utf8(seen.body.clone()).unwrap());
                let file = json!({"file": {"name": name, "sizeBytes": seen.body.len().to_string()}});
                Some(answer("200 OK", "x-goog-upload-status: final\r\n", &file.to_string()))
            }
            ("GET", ["download", "v1beta", "files", name]) => {
                self.file("GET", name.strip_suffix(":download")?)
            }
            (method, ["v1beta", "files", id]) => self.file(method, id),
            (method, ["v1beta", rest @ ..]) => self.google(method, rest, &seen.json()),
            _ => None,
        }
    }

    fn form(&mut self, seen: &RecordedRequest) -> Vec<u8> {
        let text = String::from_utf8(seen.body.clone()).unwrap();
        let (_, file) = text.split_once("application/jsonl\r\n\r\n").unwrap();
        let (file, _) = file.rsplit_once("\r\n--").unwrap();
        let id = self.id("file-");
        self.files.insert(id.clone(), file.to_owned());
        ok(&json!({"id": id, "bytes": file.len()}).to_string())
    }

    fn file(&mut self, method: &str, id: &str) -> Option<Vec<u8>> {
        match method {
            "DELETE" => self.files.remove(id).map(|_| ok("{}")),
            _ => self.files.get(id).map(|content| ok(content)),
        }
    }

    fn openai(&mut self, method: &str, rest: &[&str], body: &Value) -> Option<Vec<u8>> {
        let id = match (method, rest) {
            ("GET", []) => {
                let jobs: Vec<Value> = self
                    .jobs
                    .keys()
                    .cloned()
                    .collect::<Vec<_>>()
                    .iter()
                    .rev()
                    .map(|id| self.openai_job(id))
                    .collect();
                return Some(ok(&json!({"data": jobs, "has_more": false}).to_string()));
            }
            ("POST", []) => {
                let id = self.id("batch_");
                let input = body["input_file_id"].as_str()?.to_owned();
                let lines = parsed(self.files.get(&input)?);
                let key = body["metadata"]["rowmill_job"].clone();
                self.jobs.insert(id.clone(), FakeJob { key, input, lines, ..FakeJob::default() });
                id
            }
            ("POST", [id, "cancel"]) => {
                self.jobs.get_mut(*id)?.cancelled = true;
                (*id).to_owned()
            }
            (_, [id]) => {
                self.jobs.get_mut(*id)?.reports += 1;
                (*id).to_owned()
            }
            _ => return None,
        };
        Some(ok(&self.openai_job(&id).to_string()))
    }

    fn openai_job(&mut self, id: &str) -> Value {
        let job = &self.jobs[id];
        let (mut output, mut errors) = (String::new(), String::new());
        for line in &job.lines {
            let id = &line["custom_id"];
            let sent = &line["body"]["messages"][0]["content"];
            if job.cancelled {
                let error = json!({"code": "batch_cancelled", "message": "cancelled"});
                writeln!(errors, "{}", json!({"custom_id": id, "response": null, "error": error})).unwrap();
            } else {
                let body = json!({"choices": [{"message": {"role": "assistant", "content": sent}, "finish_reason": "stop"}]});
                let response = json!({"status_code": 200, "body": body});
                writeln!(output, "{}", json!({"custom_id": id, "response": response, "error": null}))
                    .unwrap();
            }
        }
        let mut report = json!({
            "id": id, "status": "in_progress", "input_file_id": job.input, "created_at": NOW,
            "metadata": {"rowmill_job": job.key},
        });
        if job.has_ended() {
            report["status"] = json!(if job.cancelled { "cancelled" } else { "completed" });
            for (field, content) in [("output_file_id", output), ("error_file_id", errors)] {
                if !content.is_empty() {
                    let name = format!("{field}-{id}");
                    report[field] = json!(name);
                    self.files.insert(name, content);
                }
            }
        }
        report
    }

    fn anthropic(&mut self, method: &str, rest: &[&str], body: &Value) -> Option<Vec<u8>> {
        let id = match (method, rest) {
            ("GET", []) => {
                let jobs: Vec<Value> = self.jobs.keys().rev().map(|id| self.anthropic_job(id)).collect();
                return Some(ok(&json!({"data": jobs, "has_more": false}).to_string()));
            }
            ("POST", []) => {
                let id = self.id("msgbatch_");
                let lines = body["requests"].as_array()?.clone();
                self.jobs.insert(id.clone(), FakeJob { lines, ..FakeJob::default() });
                id
            }
            ("DELETE", [id]) => return self.jobs.remove(*id).map(|_| ok("{}")),
            ("GET", [id, "results"]) => return self.jobs.get(*id).map(|job| ok(&message_results(job))),
            ("POST", [id, "cancel"]) => {
                self.jobs.get_mut(*id)?.cancelled = true;
                (*id).to_owned()
            }
            (_, [id]) => {
                self.jobs.get_mut(*id)?.reports += 1;
                (*id).to_owned()
            }
            _ => return None,
        };
        Some(ok(&self.anthropic_job(&id).to_string()))
    }

    fn anthropic_job(&self, id: &str) -> Value {
        let job = &self.jobs[id];
        let results = job.has_ended().then(|| format!("{}/v1/messages/batches/{id}/results", self.address));
        json!({
            "id": id, "created_at": NOW_TEXT, "results_url": results,
            "processing_status": if job.has_ended() { "ended" } else { "in_progress" },
            "cancel_initiated_at": job.cancelled.then_some(NOW_TEXT),
        })
    }

    fn google(&mut self, method: &str, rest: &[&str], body: &Value) -> Option<Vec<u8>> {
        let id = match (method, rest) {
            ("GET", ["batches"]) => {
                let jobs: Vec<Value> = self
                    .jobs
                    .keys()
                    .cloned()
                    .collect::<Vec<_>>()
                    .iter()
                    .rev()
                    .map(|id| self.google_job(id))
                    .collect();
                return Some(ok(&json!({"operations": jobs}).to_string()));
            }
            ("POST", ["models", _]) => {
                let id = self.id("b");
                let file = body["batch"]["input_config"]["file_name"].as_str()?.strip_prefix("files/")?;
                let (key, lines) = (body["batch"]["display_name"].clone(), parsed(self.files.get(file)?));
                let input = format!("files/{file}");
                self.jobs.insert(id.clone(), FakeJob { key, input, lines, ..FakeJob::default() });
                id
            }
            ("DELETE", ["batches", id]) => return self.jobs.remove(*id).map(|_| ok("{}")),
            ("POST", ["batches", id]) => {
                self.jobs.get_mut(id.strip_suffix(":cancel")?)?.cancelled = true;
                return Some(ok("{}"));
            }
            (_, ["batches", id]) => {
                self.jobs.get_mut(*id)?.reports += 1;
                (*id).to_owned()
            }
            _ => return None,
        };
        Some(ok(&self.google_job(&id).to_string()))
    }

    fn google_job(&mut self, id: &str) -> Value {
        let job = &self.jobs[id];
        let mut about =
            json!({"displayName": job.key, "createTime": NOW_TEXT, "state": "BATCH_STATE_RUNNING"});
        if job.cancelled {
            about["state"] = json!("BATCH_STATE_CANCELLED");
        } else if job.has_ended() {
            let mut output = String::new();
            for line in &job.lines {
                let parts = &line["request"]["contents"][0]["parts"];
                let response = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
                writeln!(output, "{}", json!({"key": line["key"], "response": response})).unwrap();
            }
            about["state"] = json!("BATCH_STATE_SUCCEEDED");
            about["output"] = json!({"responsesFile": format!("files/out-{id}")});
            self.files.insert(format!("out-{id}"), output);
        }
        json!({"name": format!("batches/{id}"), "metadata": about})
    }
}

fn message_results(job: &FakeJob) -> String {
    let mut results = String::new();
    for line in &job.lines {
        let sent = &line["params"]["messages"][0]["content"];
        let result = match job.cancelled {
            true => json!({"type": "canceled"}),
            false => {
                let content = json!([{"type": "text", "text": sent}]);
                json!({"type": "succeeded", "message": {"role": "assistant", "content": content, "stop_reason": "end_turn"}})
            }
        };
        writeln!(results, "{}", json!({"custom_id": line["custom_id"], "result": result})).unwrap();
    }
    results
}
