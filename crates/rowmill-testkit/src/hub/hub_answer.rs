//! Answers, and byte ranges of files in them.

use rowmill_simulator::RecordedRequest;

/// An answer.
#[derive(Debug)]
pub(super) struct HubAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The position in the file where the body starts.
    pub(super) start: u64,
}

impl HubAnswer {
    pub(super) fn new(status: u16, headers: Vec<(String, String)>, body: Vec<u8>) -> Self {
        Self { status, headers, body, start: 0 }
    }

    /// The head, with the full length of the body.
    pub(super) fn head(&self) -> Vec<u8> {
        let mut text = format!("HTTP/1.1 {} Status\r\nconnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.status != 304 {
            text.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        text.push_str("\r\n");
        text.into_bytes()
    }
}

/// A header.
pub(super) fn header(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

/// A file, or the part of it that is asked for; nothing if the client has it.
pub(super) fn file_answer(
    request: &RecordedRequest,
    mut headers: Vec<(String, String)>,
    bytes: &[u8],
) -> HubAnswer {
    let held = |name: &str| headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.clone());
    let (tag, moment) = (held("etag"), held("last-modified"));
    let is_same = |value: Option<&str>, own: &Option<String>| value.is_some() && value == own.as_deref();
    if is_same(request.header("if-none-match"), &tag) || is_same(request.header("if-modified-since"), &moment)
    {
        return HubAnswer::new(304, headers, Vec::new());
    }
    let condition = request.header("if-range");
    let may_part = condition.is_none() || is_same(condition, &tag) || is_same(condition, &moment);
    let start = request
        .header("range")
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let Some(start) = start.filter(|_| may_part) else { return HubAnswer::new(200, headers, bytes.to_vec()) };
    let length = bytes.len() as u64;
    if start >= length {
        headers.push(header("content-range", format!("bytes */{length}")));
        return HubAnswer::new(416, headers, Vec::new());
    }
    headers.push(header("content-range", format!("bytes {start}-{}/{length}", length - 1)));
    let rest = bytes.iter().skip(usize::try_from(start).unwrap_or(usize::MAX)).copied().collect();
    HubAnswer { start, ..HubAnswer::new(206, headers, rest) }
}
