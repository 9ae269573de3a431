//! A client of the batch APIs.

use std::time::Duration;

use rowmill_simulator::{SimulatedBatches, Simulator, SimulatorScript};
use serde_json::{Value, json};

use super::{Client, Reply};

pub(crate) const CHAT_ENDPOINT: &str = "/v1/chat/completions";
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// A vendor whose inputs are uploaded: where it is, its header and the purpose of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shop {
    pub(crate) base: &'static str,
    pub(crate) headers: &'static str,
    pub(crate) purpose: &'static str,
}

pub(crate) const OPENAI: Shop =
    Shop { base: "/v1", headers: "authorization: Bearer k\r\n", purpose: "batch" };
pub(crate) const AZURE: Shop = Shop { base: "/azure/openai/v1", headers: "api-key: k\r\n", purpose: "batch" };
pub(crate) const GROQ: Shop = Shop { base: "/groq/openai/v1", ..OPENAI };
pub(crate) const TOGETHER: Shop = Shop { base: "/together/v1", purpose: "batch-api", ..OPENAI };
pub(crate) const MISTRAL: Shop = Shop { base: "/mistral/v1", ..OPENAI };

/// A simulator whose jobs take two hours, of a clock that only the test moves.
pub(crate) fn held(batches: SimulatedBatches) -> Simulator {
    held_with(SimulatorScript::new().key("k"), batches)
}

pub(crate) fn held_with(script: SimulatorScript, batches: SimulatedBatches) -> Simulator {
    let simulator = Simulator::start_blocking(script.batches(batches));
    simulator.stop_job_clock();
    simulator
}

pub(crate) fn two_hours() -> SimulatedBatches {
    SimulatedBatches::new().duration(2 * HOUR)
}

/// A row in OpenAI's shape.
pub(crate) fn row(id: &str, prompt: &str) -> Value {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": prompt}]});
    json!({"custom_id": id, "method": "POST", "url": CHAT_ENDPOINT, "body": body})
}

pub(crate) fn rows(prompts: &[&str]) -> String {
    let rows = prompts.iter().enumerate().map(|(at, prompt)| row(&format!("r-{at}"), prompt).to_string());
    rows.collect::<Vec<_>>().join("\n")
}

pub(crate) fn form(purpose: &str, content: &str) -> String {
    format!(
        "--b\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\n{purpose}\r\n--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"rows.jsonl\"\r\ncontent-type: application/octet-stream\r\n\r\n{content}\r\n--b--\r\n"
    )
}

impl Shop {
    pub(crate) fn upload(self, client: &mut Client, content: &str) -> Reply {
        let headers = format!("{}content-type: multipart/form-data; boundary=b\r\n", self.headers);
        client.post(&format!("{}/files", self.base), &headers, &form(self.purpose, content))
    }

    /// The address of its jobs.
    pub(crate) fn jobs(self) -> String {
        let jobs = if self == MISTRAL { "batch/jobs" } else { "batches" };
        format!("{}/{jobs}", self.base)
    }

    /// Creates a job for an uploaded file.
    pub(crate) fn order(self, client: &mut Client, file: &str) -> Reply {
        let body = if self == MISTRAL {
            json!({"input_files": [file], "endpoint": CHAT_ENDPOINT, "model": "m", "metadata": {"run": "1"}})
        } else {
            json!({
                "input_file_id": file, "endpoint": CHAT_ENDPOINT, "completion_window": "24h",
                "metadata": {"run": "1"}
            })
        };
        client.post(&self.jobs(), self.headers, &body.to_string())
    }

    /// Uploads rows and creates a job; returns the job.
    pub(crate) fn submit(self, client: &mut Client, content: &str) -> Value {
        let uploaded = self.upload(client, content);
        assert_eq!(uploaded.status, 200, "{}", uploaded.body);
        let reply = self.order(client, &id_of(&uploaded.json()));
        assert_eq!(reply.status, 200, "{}", reply.body);
        let job = reply.json();
        if self == TOGETHER { job["job"].clone() } else { job }
    }

    pub(crate) fn job(self, client: &mut Client, id: &str) -> Value {
        let reply = client.ask("GET", &format!("{}/{id}", self.jobs()), self.headers);
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()
    }

    pub(crate) fn cancel(self, client: &mut Client, id: &str) -> Reply {
        client.post(&format!("{}/{id}/cancel", self.jobs()), self.headers, "")
    }

    /// The lines of a file.
    pub(crate) fn lines(self, client: &mut Client, file: &Value) -> Vec<Value> {
        let path = format!("{}/files/{}/content", self.base, file.as_str().unwrap());
        let reply = client.ask("GET", &path, self.headers);
        assert_eq!(reply.status, 200, "{}", reply.body);
        lines_of(&reply.body)
    }
}

pub(crate) fn id_of(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

pub(crate) fn lines_of(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The values of a field of all lines, sorted.
pub(crate) fn sorted(lines: &[Value], pointer: &str) -> Vec<String> {
    let mut values: Vec<String> = lines
        .iter()
        .map(|line| match line.pointer(pointer) {
            Some(Value::String(text)) => text.clone(),
            other => other.cloned().unwrap_or_default().to_string(),
        })
        .collect();
    values.sort();
    values
}
