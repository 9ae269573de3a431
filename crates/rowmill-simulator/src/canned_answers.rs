//! Answers from prepared bytes, so that a benchmark measures the client and not this server.

use std::sync::atomic::Ordering;

use bytes::{Buf, BytesMut};
use memchr::memmem;
use rowmill_types::TokenUsage;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::protocol::{ParsedRequest, VendorProtocol};
use crate::reply::{MadeToolCall, ReplyEnding, SimulatedReply, resize_text};
use crate::script::{InstantTurns, SimulatorScript};
use crate::simulator_state::SimulatorState;

/// The answers of every protocol as they are sent.
#[derive(Debug)]
pub(crate) struct CannedAnswers(Vec<ProtocolAnswers>);

/// The answers of one protocol.
#[derive(Debug)]
struct ProtocolAnswers {
    path: &'static [u8],
    /// A text that a body contains once for each tool result. Inside strings its quotes are escaped.
    result: &'static [u8],
    /// Plain and streamed, one for each turn; the last one calls no tool.
    turns: Vec<[Vec<u8>; 2]>,
}

impl CannedAnswers {
    /// Prepares the answers for a script; the last one has this text.
    pub(crate) fn new(text: &str, script: &SimulatorScript) -> Self {
        let of = |path, result, protocol| {
            let calls = script.instant_turns.as_ref();
            let replies =
                (1..=calls.map_or(0, |calls| calls.turns)).map(|turn| calling(calls, protocol, turn));
            let turns = replies.chain([saying(text, script.answer_bytes)]);
            let turns =
                turns.map(|reply| [false, true].map(|stream| bytes(protocol, &reply, stream))).collect();
            ProtocolAnswers { path, result, turns }
        };
        Self(vec![
            of(b"/v1/chat/completions", b"\"tool_call_id\"", VendorProtocol::Chat),
            of(b"/v1/responses", b"\"function_call_output\"", VendorProtocol::Responses),
            of(b"/v1/messages", b"\"tool_use_id\"", VendorProtocol::Messages),
            of(b"/v1beta/models/", b"\"functionResponse\"", VendorProtocol::Google),
            of(b"/v1/models/", b"\"functionResponse\"", VendorProtocol::Google),
        ])
    }

    fn find(&self, path: &[u8], body: &[u8]) -> Option<&[u8]> {
        let found = self.0.iter().find(|answers| path.starts_with(answers.path))?;
        let last = found.turns.len() - 1;
        let turn = memmem::find_iter(body, found.result).take(last).count();
        let is_streamed = [b"\"stream\":true".as_slice(), b"\"stream\": true"]
            .into_iter()
            .any(|wish| memmem::find(body, wish).is_some())
            || memmem::find(path, b":streamGenerateContent").is_some();
        let [plain, streamed] = found.turns.get(turn)?;
        Some(if is_streamed { streamed } else { plain })
    }
}

/// The answer that ends a conversation, resized to `bytes` bytes if given.
fn saying(text: &str, bytes: Option<usize>) -> SimulatedReply {
    let mut text = text.to_owned();
    if let Some(bytes) = bytes {
        resize_text(&mut text, bytes);
    }
    let tokens = usage(text.len());
    SimulatedReply::of_text(text, tokens)
}

/// An answer that calls a tool, with an id that no other turn has.
fn calling(calls: Option<&InstantTurns>, protocol: VendorProtocol, turn: usize) -> SimulatedReply {
    let (name, arguments) =
        calls.map(|calls| (calls.tool.clone(), calls.arguments.to_string())).unwrap_or_default();
    let mut reply = SimulatedReply::of_text(String::new(), usage(arguments.len()));
    reply.ending = ReplyEnding::Calls;
    reply.calls = vec![MadeToolCall { id: protocol.call_id(reply.id, turn), name, arguments }];
    reply
}

fn usage(bytes: usize) -> TokenUsage {
    TokenUsage { input: 40, output: bytes.div_ceil(4) as u64, ..TokenUsage::default() }
}

fn bytes(protocol: VendorProtocol, reply: &SimulatedReply, stream: bool) -> Vec<u8> {
    let ask = ParsedRequest {
        stream,
        usage_in_stream: true,
        ..ParsedRequest::new_for(protocol, "simulated".to_owned())
    };
    let outgoing = protocol.render_answer(&ask, reply, &[]);
    [outgoing.head, outgoing.pieces.concat()].concat()
}

/// The result of searching the start of the buffer for a request.
#[derive(Debug)]
enum BufferedRequest<'c> {
    /// More must be read first.
    Part,
    /// A call with its total length, and its answer.
    Call(usize, &'c [u8]),
    /// Something else, which the full server should process.
    Other,
}

/// Serves calls until the client disconnects (`false`) or requests something else (`true`).
pub(crate) async fn serve(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    shared: &SimulatorState,
    canned: &CannedAnswers,
) -> bool {
    let mut out: Vec<u8> = Vec::new();
    loop {
        let mut calls = 0;
        let is_other = loop {
            match find(buffer, canned) {
                BufferedRequest::Call(length, answer) => {
                    buffer.advance(length);
                    calls += 1;
                    out.extend_from_slice(answer);
                }
                BufferedRequest::Part => break false,
                BufferedRequest::Other => break true,
            }
        };
        if calls > 0 {
            let number = shared.recorder.instant_requests.fetch_add(calls, Ordering::Relaxed);
            let latency = shared.latency(shared.script.latency, number);
            if !latency.is_zero() {
                tokio::time::sleep(latency).await;
            }
            if stream.write_all(&out).await.is_err() {
                return false;
            }
            shared.recorder.instant_answers.fetch_add(calls, Ordering::Relaxed);
            out.clear();
        }
        if is_other {
            return true;
        }
        buffer.reserve(4 * 1024);
        match stream.read_buf(buffer).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

fn find<'c>(buffer: &[u8], canned: &'c CannedAnswers) -> BufferedRequest<'c> {
    let Some(end) = memmem::find(buffer, b"\r\n\r\n") else {
        return if buffer.is_empty() || b"POST ".starts_with(buffer.get(..5).unwrap_or(buffer)) {
            BufferedRequest::Part
        } else {
            BufferedRequest::Other
        };
    };
    let (head, rest) = buffer.split_at(end + 4);
    let Some(target) = head.strip_prefix(b"POST ") else { return BufferedRequest::Other };
    let Some(length) = content_length(head) else { return BufferedRequest::Other };
    let Some(body) = rest.get(..length) else { return BufferedRequest::Part };
    let path = target.split(|byte| *byte == b' ').next().unwrap_or_default();
    match canned.find(path, body) {
        Some(answer) => BufferedRequest::Call(head.len() + length, answer),
        None => BufferedRequest::Other,
    }
}

/// The value of the content length header, in any case.
fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    memchr::memchr_iter(b'\n', head).find_map(|at| {
        let line = head.get(at + 1..)?;
        if !line.get(..NAME.len())?.eq_ignore_ascii_case(NAME) {
            return None;
        }
        let value = line.get(NAME.len()..)?.split(|byte| *byte == b'\r').next()?;
        std::str::from_utf8(value).ok()?.trim().parse().ok()
    })
}
