//! Reads the messages of a server from a pipe: one JSON text per line.

use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::MAX_FRAME;
use super::tasks::keep_execution_field;

/// How much of both ends of an oversized message is kept, to find out which call it answers.
const KEPT: usize = 512;
/// A buffer that grew beyond this for one message is not reused for the next.
const SPARE: usize = 1024 * 1024;

/// The content of a line.
#[derive(Debug)]
pub(super) enum PipeFrame {
    /// A message.
    Message(Box<ServerJsonRpcMessage>),
    /// A line that nothing waits for.
    Ignored,
    /// Other text, such as log lines that should have gone to standard error.
    OtherText,
}

/// Parses a line. An answer that violates the protocol becomes an error of its call, so that the call need
/// not wait for its timeout.
pub(super) fn read(line: &[u8]) -> PipeFrame {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return PipeFrame::Ignored;
    }
    let error = match serde_json::from_slice(&keep_execution_field(line)) {
        Ok(message) => return PipeFrame::Message(Box::new(message)),
        Err(error) => error,
    };
    let Ok(Value::Object(object)) = serde_json::from_slice::<Value>(line) else {
        return PipeFrame::OtherText;
    };
    let id = object.get("id").and_then(id_of);
    match (id, object.contains_key("method")) {
        (_, true) => PipeFrame::Ignored,
        (Some(id), false) => PipeFrame::Message(Box::new(unusable(id, &error.to_string()))),
        (None, false) => PipeFrame::OtherText,
    }
}

/// Turns an unusable answer into an error of its call.
pub(super) fn unusable(id: RequestId, why: &str) -> ServerJsonRpcMessage {
    let text = format!("the server's answer does not keep to the protocol: {why}");
    ServerJsonRpcMessage::error(ErrorData::internal_error(text, None), Some(id))
}

/// Turns an oversized answer into an error of its call.
pub(super) fn too_large(id: RequestId) -> ServerJsonRpcMessage {
    let text = format!("the tool's answer has more than {} MiB and was thrown away", MAX_FRAME >> 20);
    ServerJsonRpcMessage::error(ErrorData::internal_error(text, None), Some(id))
}

fn id_of(value: &Value) -> Option<RequestId> {
    match value {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        _ => None,
    }
}

/// Reads lines of bounded length.
#[derive(Debug)]
pub(super) struct BoundedLines<R> {
    reader: BufReader<R>,
    /// The line so far, or the start of one that is too long.
    line: Vec<u8>,
    /// The last bytes of a line that is too long.
    end: Option<Vec<u8>>,
    /// Whether the line has been returned.
    given: bool,
}

/// The result of reading a line.
#[derive(Debug)]
pub(super) enum BoundedLine<'a> {
    /// A line without its line break.
    Whole(&'a [u8]),
    /// A line that is too long, with the id of the call that it answers, if that is known.
    TooLong(Option<RequestId>),
    /// Nothing more.
    End,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    pub(super) fn new(reader: R) -> Self {
        let reader = BufReader::with_capacity(64 * 1024, reader);
        Self { reader, line: Vec::new(), end: None, given: false }
    }

    /// The next line. Dropping the future loses nothing: what was read is kept.
    pub(super) async fn next(&mut self) -> BoundedLine<'_> {
        self.forget_given();
        loop {
            let Ok(available) = self.reader.fill_buf().await else { return BoundedLine::End };
            if available.is_empty() {
                return BoundedLine::End;
            }
            let newline = memchr::memchr(b'\n', available);
            let part = available.get(..newline.unwrap_or(available.len())).unwrap_or_default();
            let length = part.len() + usize::from(newline.is_some());
            keep(&mut self.line, &mut self.end, part);
            self.reader.consume(length);
            if newline.is_some() {
                self.given = true;
                return match self.end.take() {
                    None => BoundedLine::Whole(&self.line),
                    Some(end) => BoundedLine::TooLong(owner(&self.line, &end)),
                };
            }
        }
    }

    fn forget_given(&mut self) {
        if !self.given {
            return;
        }
        self.given = false;
        if self.line.capacity() > SPARE {
            self.line = Vec::new();
        }
        self.line.clear();
    }
}

/// Appends a part to a line; once it is too long, only both ends are kept.
fn keep(line: &mut Vec<u8>, end: &mut Option<Vec<u8>>, part: &[u8]) {
    match end {
        None if line.len() + part.len() <= MAX_FRAME => line.extend_from_slice(part),
        None => {
            let from = line.len().saturating_sub(KEPT);
            let mut last = line.split_off(from.max(KEPT.min(line.len())));
            line.truncate(KEPT);
            append(&mut last, part);
            *end = Some(last);
        }
        Some(last) => append(last, part),
    }
}

fn append(last: &mut Vec<u8>, part: &[u8]) {
    last.extend_from_slice(part.get(part.len().saturating_sub(KEPT)..).unwrap_or(part));
    let surplus = last.len().saturating_sub(KEPT);
    last.drain(..surplus);
}

/// The call that a message answers, if only both its ends are known. Servers write the id before the result
/// or after it.
fn owner(begin: &[u8], end: &[u8]) -> Option<RequestId> {
    let (begin, end) = (String::from_utf8_lossy(begin), String::from_utf8_lossy(end));
    let before = begin.split("\"result\"").next().unwrap_or_default();
    if before.len() < begin.len()
        && let Some((_, rest)) = before.split_once("\"id\"")
    {
        return leading_id(rest);
    }
    let (_, rest) = end.rsplit_once("\"id\"")?;
    let top = !rest.contains(['{', '[', ']']) && rest.trim_end().ends_with('}');
    if top && rest.matches('}').count() == 1 { leading_id(rest) } else { None }
}

fn leading_id(text: &str) -> Option<RequestId> {
    let text = text.trim_start().strip_prefix(':')?;
    let value = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()?;
    id_of(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_text(frame: PipeFrame) -> String {
        match frame {
            PipeFrame::Message(message) => match *message {
                ServerJsonRpcMessage::Error(error) => error.error.message.into_owned(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_is_a_message_or_talk_or_nothing() {
        assert!(matches!(read(b"Server is listening\r"), PipeFrame::OtherText));
        assert!(matches!(read(b"[1, 2]"), PipeFrame::OtherText));
        assert!(matches!(read(b"  "), PipeFrame::Ignored));
        assert!(matches!(read(br#"{"method":"window/logMessage","params":3}"#), PipeFrame::Ignored));
        let answer = br#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
        assert!(matches!(read(answer), PipeFrame::Message(_)));
        let refused = error_text(read(br#"{"jsonrpc":"2.0","id":1,"error":"oh no"}"#));
        assert!(refused.starts_with("the server's answer does not keep to the protocol"), "{refused}");
    }

    #[test]
    fn the_owner_of_an_answer_is_found_at_either_end() {
        let cases: [(&str, &str, Option<RequestId>); 6] = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content"#, "", Some(RequestId::Number(7))),
            (r#"{"id": "a","result":{"#, "", Some(RequestId::String("a".into()))),
            (r#"{"result":{"content":"#, r#"xx"}]},"jsonrpc":"2.0","id":9}"#, Some(RequestId::Number(9))),
            (r#"{"result":{"content":"#, r#"xx"}]},"id":9,"jsonrpc":"2.0"}"#, Some(RequestId::Number(9))),
            (r#"{"result":{"content":"#, r#"{"id":3}]}}"#, None),
            (r#"{"method":"x","params":"#, "}}", None),
        ];
        for (begin, end, expected) in cases {
            assert_eq!(owner(begin.as_bytes(), end.as_bytes()), expected, "{begin} … {end}");
        }
    }

    #[tokio::test]
    async fn lines_come_whole_and_too_long_ones_only_by_name() {
        let mut text = b"one\n\ntwo\n".to_vec();
        text.extend_from_slice(br#"{"jsonrpc":"2.0","id":5,"result":""#);
        text.resize(text.len() + MAX_FRAME, b'x');
        text.extend_from_slice(b"\"}\nthree\nrest");
        let mut lines = BoundedLines::new(text.as_slice());
        for expected in ["one", "", "two"] {
            assert!(matches!(lines.next().await, BoundedLine::Whole(line) if line == expected.as_bytes()));
        }
        assert!(matches!(lines.next().await, BoundedLine::TooLong(Some(RequestId::Number(5)))));
        assert!(matches!(lines.next().await, BoundedLine::Whole(b"three")));
        assert!(matches!(lines.next().await, BoundedLine::End));
    }
}
