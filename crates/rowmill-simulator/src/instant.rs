//! Answers from prepared bytes, so that a benchmark measures its client and not this server.

use std::sync::atomic::Ordering;

use bytes::{Buf, BytesMut};
use memchr::memmem;
use rowmill_types::Usage;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::protocol::{Ask, Protocol};
use crate::reply::{Ending, Reply, resize};
use crate::shared::Shared;

/// One answer per protocol, plain and streamed, as it goes over the wire.
#[derive(Debug)]
pub(crate) struct Canned {
    answers: Vec<(&'static [u8], [Vec<u8>; 2])>,
}

impl Canned {
    /// Prepares answers with `text`, brought to `bytes` bytes where given.
    pub(crate) fn new(text: &str, bytes: Option<usize>) -> Self {
        let mut text = text.to_owned();
        if let Some(bytes) = bytes {
            resize(&mut text, bytes);
        }
        let tokens = Usage { input: 40, output: text.len().div_ceil(4) as u64, ..Usage::default() };
        let reply = Reply { text, ending: Ending::Complete, tokens, id: 1 };
        let bytes = |protocol: Protocol, stream: bool| {
            let model = "simulated".to_owned();
            let ask = Ask { model, stream, usage_in_stream: true, ..Ask::default() };
            let outgoing = protocol.render(&ask, &reply, &[]);
            [outgoing.head, outgoing.pieces.concat()].concat()
        };
        let paths: [(&'static [u8], Protocol); 4] = [
            (b"/v1/chat/completions", Protocol::Chat),
            (b"/v1/responses", Protocol::Responses),
            (b"/v1/messages", Protocol::Messages),
            (b"/v1beta/models/", Protocol::Google),
        ];
        let answers = paths
            .into_iter()
            .map(|(path, protocol)| (path, [bytes(protocol, false), bytes(protocol, true)]))
            .collect();
        Self { answers }
    }

    fn find(&self, path: &[u8], body: &[u8]) -> Option<&[u8]> {
        let (_, [plain, streamed]) = self.answers.iter().find(|(start, _)| path.starts_with(start))?;
        let is_streamed = memmem::find(body, b"\"stream\":true").is_some()
            || memmem::find(path, b":streamGenerateContent").is_some();
        Some(if is_streamed { streamed } else { plain })
    }
}

/// A request found at the start of the buffer.
#[derive(Debug)]
enum Found<'c> {
    /// More must be read first.
    Part,
    /// A call, this long in all, and its answer.
    Call(usize, &'c [u8]),
    /// Something else, which the full server should look at.
    Other,
}

/// Serves calls until the client leaves (`false`) or asks for something else (`true`).
pub(crate) async fn serve(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    shared: &Shared,
    canned: &Canned,
) -> bool {
    let mut out: Vec<u8> = Vec::new();
    loop {
        let mut calls = 0;
        let is_other = loop {
            match find(buffer, canned) {
                Found::Call(length, answer) => {
                    buffer.advance(length);
                    calls += 1;
                    out.extend_from_slice(answer);
                }
                Found::Part => break false,
                Found::Other => break true,
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

fn find<'c>(buffer: &[u8], canned: &'c Canned) -> Found<'c> {
    let Some(end) = memmem::find(buffer, b"\r\n\r\n") else {
        return if buffer.is_empty() || b"POST ".starts_with(buffer.get(..5).unwrap_or(buffer)) {
            Found::Part
        } else {
            Found::Other
        };
    };
    let (head, rest) = buffer.split_at(end + 4);
    let Some(target) = head.strip_prefix(b"POST ") else { return Found::Other };
    let Some(length) = content_length(head) else { return Found::Other };
    let Some(body) = rest.get(..length) else { return Found::Part };
    let path = target.split(|byte| *byte == b' ').next().unwrap_or_default();
    match canned.find(path, body) {
        Some(answer) => Found::Call(head.len() + length, answer),
        None => Found::Other,
    }
}

/// The content length that a head names, in whatever case it is written.
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
