//! Answers as bytes.

use serde_json::Value;

/// Names and values of headers.
pub(crate) type Headers = Vec<(String, String)>;

/// An answer ready to be written: the head, and the body in the parts in which it is sent.
#[derive(Debug)]
pub(crate) struct OutgoingAnswer {
    pub(crate) status: u16,
    pub(crate) head: Vec<u8>,
    pub(crate) pieces: Vec<Vec<u8>>,
}

impl OutgoingAnswer {
    /// A body of known length.
    pub(crate) fn with_body(
        status: u16,
        content_type: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Self {
        let framing = format!("content-length: {}", body.len());
        Self { status, head: head(status, content_type, headers, &framing), pieces: vec![body] }
    }

    pub(crate) fn json(status: u16, headers: &[(String, String)], body: &Value) -> Self {
        Self::with_body(status, "application/json", headers, body.to_string().into_bytes())
    }

    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::with_body(status, "text/plain; charset=utf-8", &[], body.as_bytes().to_vec())
    }

    /// A stream of events, each in its own chunk.
    pub(crate) fn events(headers: &[(String, String)], events: &[String]) -> Self {
        let head = head(200, "text/event-stream; charset=utf-8", headers, "transfer-encoding: chunked");
        let mut pieces: Vec<Vec<u8>> =
            events.iter().map(|event| format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()).collect();
        pieces.push(b"0\r\n\r\n".to_vec());
        Self { status: 200, head, pieces }
    }
}

fn head(status: u16, content_type: &str, headers: &[(String, String)], framing: &str) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\n", reason(status));
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(framing);
    text.push_str("\r\n\r\n");
    text.into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        408 => "Request Timeout",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Status",
    }
}

/// One server-sent event; unnamed ones have no `event` line.
pub(crate) fn sse_event(name: Option<&str>, data: &Value) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}
