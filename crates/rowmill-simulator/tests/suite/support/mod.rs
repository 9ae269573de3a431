//! A client that sees everything that happens on the wire.

pub(crate) mod jobs;
pub(crate) mod talk;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use rowmill_simulator::Simulator;
use serde_json::{Value, json};

/// How the bytes of an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The framing is complete; the connection is still open.
    Whole,
    /// The connection was closed in an orderly way before the framing was complete.
    Short,
    /// The connection was reset.
    Reset,
}

/// An answer as received.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) end: End,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The data of server-sent events, without the closing `[DONE]`.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

/// One connection that stays open between requests.
pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn to(simulator: &Simulator) -> Self {
        Self::at(simulator.url().strip_prefix("http://").unwrap())
    }

    pub(crate) fn at(address: &str) -> Self {
        Self(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    pub(crate) fn post(&mut self, path: &str, headers: &str, body: &str) -> Reply {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n");
        self.send(format!("{head}{body}").as_bytes());
        self.receive()
    }

    pub(crate) fn get(&mut self, path: &str) -> Reply {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
        self.receive()
    }

    /// Sends a request without a body.
    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &str) -> Reply {
        self.send(format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n").as_bytes());
        self.receive()
    }

    /// Reads exactly `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Reads one answer to the end of its framing, or to the end of the connection.
    pub(crate) fn receive(&mut self) -> Reply {
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        loop {
            if let Some(reply) = whole(&bytes) {
                return reply;
            }
            let end = match self.0.read(&mut piece) {
                Ok(0) => End::Short,
                Ok(count) => {
                    bytes.extend_from_slice(&piece[..count]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => End::Reset,
                Err(error) => panic!("{error}"),
            };
            let (head, body) = parts(&bytes).unwrap_or_default();
            return Reply { status: status(&head), head, body, end };
        }
    }
}

fn parts(bytes: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

fn whole(bytes: &[u8]) -> Option<Reply> {
    let (head, body) = parts(bytes)?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let body = match length {
        Some(length) => (body.len() == length.parse::<usize>().unwrap()).then_some(body)?,
        None => dechunked(&body)?,
    };
    Some(Reply { status: status(&head), head, body, end: End::Whole })
}

fn dechunked(body: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = body;
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size, 16).ok()?;
        text.push_str(after.get(..size)?);
        rest = after.get(size..)?.strip_prefix("\r\n")?;
        if size == 0 {
            return Some(text);
        }
    }
}

/// A chat request with one user message.
pub(crate) fn chat(prompt: &str) -> String {
    json!({"model": "m", "messages": [{"role": "user", "content": prompt}]}).to_string()
}

pub(crate) const CHAT: &str = "/v1/chat/completions";
