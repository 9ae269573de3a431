//! Your own provider: a `Model` for a protocol that rowmill does not know.
//!
//! The protocol is fictional. `POST /speak` takes `{"role": …, "said": […]}` and returns
//! `{"say": …, "words": [heard, said]}`; 429 means "later", with the seconds in `retry-after`.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use rowmill::extend::{BoxFuture, CallError, CallFailure, Completion, Model, Request, TokenUsage};
use rowmill::{Batch, ModelRequirements, Worker};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Calls the provider. It already contains everything that is the same for every request.
#[derive(Debug)]
pub(crate) struct CustomModel {
    pub(crate) address: SocketAddr,
    pub(crate) role: String,
}

impl Model for CustomModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(async move {
            let texts: Vec<&str> = request.messages.iter().map(|message| message.text.as_str()).collect();
            let (head, body) = self.post(&json!({"role": self.role, "messages": texts}).to_string()).await?;
            if let Some(error) = refusal(&head) {
                return Err(error);
            }
            let answer: Value = serde_json::from_str(&body)
                .map_err(|error| CallError::new(CallFailure::Malformed, error.to_string()))?;
            let words = |place: usize| answer["words"][place].as_u64().unwrap_or_default();
            let usage = TokenUsage { input: words(0), output: words(1), ..TokenUsage::default() };
            let text = answer["say"].as_str().unwrap_or_default();
            Ok(Completion { usage: Some(usage), ..Completion::from_text(text) })
        })
    }
}

impl CustomModel {
    /// Sends one request and returns the head and the body of the answer. Any HTTP client will do.
    async fn post(&self, body: &str) -> Result<(String, String), CallError> {
        let connecting = TcpStream::connect(self.address).await;
        let mut stream =
            connecting.map_err(|error| CallError::new(CallFailure::Connect, error.to_string()))?;
        let head = "POST /speak HTTP/1.1\r\nhost: custom_model\r\nconnection: close";
        let broken = |error: std::io::Error| CallError::new(CallFailure::ConnectionBroken, error.to_string());
        let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.map_err(broken)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        Ok((head.to_lowercase(), body.to_owned()))
    }
}

/// The meaning of a status other than 200. The engine decides whether and when to retry.
fn refusal(head: &str) -> Option<CallError> {
    let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let failure = match status {
        200 => return None,
        401 | 403 => CallFailure::Unauthorized,
        429 => CallFailure::RateLimited,
        400..=499 => CallFailure::Refused,
        _ => CallFailure::Server,
    };
    let after = head.lines().find_map(|line| line.strip_prefix("retry-after: ")?.trim().parse().ok());
    let retry_after = after.map(Duration::from_secs);
    let error = CallError::new(failure, format!("the provider answered {status}"));
    Some(CallError { status: Some(status), retry_after, ..error })
}

/// The provider: it repeats the last message, loudly. It is too busy for the first `busy_for` calls.
pub(crate) fn provider(busy_for: usize) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            std::thread::spawn(move || serve(&stream, number < busy_for));
        }
    });
    Ok(address)
}

fn serve(stream: &std::net::TcpStream, is_busy: bool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        length =
            line.strip_prefix("content-length: ").and_then(|text| text.trim().parse().ok()).unwrap_or(length);
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let asked: Value = serde_json::from_slice(&body)?;
    let heard = asked["messages"].as_array().and_then(|texts| texts.last()?.as_str()).unwrap_or_default();
    let say = format!("{} {}", asked["role"].as_str().unwrap_or_default(), heard.to_uppercase());
    let words = [heard.split_whitespace().count(), say.split_whitespace().count()];
    let (status, body) = match is_busy {
        true => ("429 Too Many Requests\r\nretry-after: 0", String::new()),
        false => ("200 OK", json!({"say": say, "words": words}).to_string()),
    };
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let address = provider(1)?;
    let worker = Worker::from_model_maker("custom_model", move |brief: &ModelRequirements| {
        Ok(Arc::new(CustomModel { address, role: brief.instruction.clone().unwrap_or_default() }))
    });
    let batch = Batch::over(["good morning", "good night"])
        .prompt(|words| *words)
        .worker(worker.instruction("The crier says:"))
        .map_answers(|done| format!("{} ({} words heard)", done.answer, done.usage.input));
    let results = batch.run_blocking()?;
    for reported in &results {
        writeln!(out, "{reported}")?;
    }
    writeln!(out, "{} items, {} words answered", results.report.ok, results.report.usage.output)?;
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}
