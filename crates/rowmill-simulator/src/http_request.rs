//! Parses HTTP/1.1 requests.

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::recorder::RecordedRequest;

/// Larger heads and bodies are rejected.
const HEAD_LIMIT: usize = 64 * 1024;
const BODY_LIMIT: usize = 256 * 1024 * 1024;

/// A request that was read completely.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) request: RecordedRequest,
    /// Whether another request may follow on the connection.
    pub(crate) keep_alive: bool,
}

/// Why no request was read.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    /// The client closed the connection, between requests or inside one.
    Closed,
    /// The received bytes are not HTTP.
    Invalid(&'static str),
}

impl From<std::io::Error> for ReadFailure {
    fn from(_: std::io::Error) -> Self {
        Self::Closed
    }
}

/// How the body of a request is framed.
#[derive(Debug, Clone, Copy)]
enum BodyFraming {
    Length(usize),
    Chunked,
}

#[derive(Debug)]
struct RequestHead {
    incoming: HttpRequest,
    length: usize,
    framing: BodyFraming,
}

/// Reads one request; anything after it stays in `buffer`.
pub(crate) async fn read(stream: &mut TcpStream, buffer: &mut BytesMut) -> Result<HttpRequest, ReadFailure> {
    let head = loop {
        if let Some(head) = parse_head(buffer)? {
            break head;
        }
        if buffer.len() > HEAD_LIMIT {
            return Err(ReadFailure::Invalid("the head of the request is too large"));
        }
        more(stream, buffer).await?;
    };
    buffer.advance(head.length);
    let mut incoming = head.incoming;
    if incoming.request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    incoming.request.body = match head.framing {
        BodyFraming::Length(length) => {
            while buffer.len() < length {
                more(stream, buffer).await?;
            }
            buffer.split_to(length).to_vec()
        }
        BodyFraming::Chunked => read_chunks(stream, buffer).await?,
    };
    Ok(incoming)
}

/// Reads the next HTTP/1.1 request of a connection; what follows it stays in `buffer`, which is empty at first.
///
/// `None` if the client closed the connection, or what came is not HTTP.
pub async fn read_request(stream: &mut TcpStream, buffer: &mut BytesMut) -> Option<RecordedRequest> {
    read(stream, buffer).await.ok().map(|incoming| incoming.request)
}

/// Reads until the client closes, keeping what it sends meanwhile for later.
pub(crate) async fn closed(stream: &mut TcpStream, buffer: &mut BytesMut) {
    while buffer.len() < HEAD_LIMIT {
        if more(stream, buffer).await.is_err() {
            return;
        }
    }
    std::future::pending().await
}

async fn more(stream: &mut TcpStream, buffer: &mut BytesMut) -> Result<(), ReadFailure> {
    buffer.reserve(8 * 1024);
    if stream.read_buf(buffer).await? == 0 { Err(ReadFailure::Closed) } else { Ok(()) }
}

fn parse_head(buffer: &[u8]) -> Result<Option<RequestHead>, ReadFailure> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(buffer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(ReadFailure::Invalid("the request is not HTTP/1.1")),
    };
    let headers: Vec<(String, String)> = parsed
        .headers
        .iter()
        .map(|header| {
            (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).trim().to_owned())
        })
        .collect();
    let request = RecordedRequest {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: parsed.path.unwrap_or_default().to_owned(),
        headers,
        body: Vec::new(),
    };
    let framing = framing(&request)?;
    let close = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let keep_alive = parsed.version == Some(1) && !close;
    Ok(Some(RequestHead { incoming: HttpRequest { request, keep_alive }, length, framing }))
}

fn framing(request: &RecordedRequest) -> Result<BodyFraming, ReadFailure> {
    let is_chunked =
        request.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    match request.header("content-length") {
        _ if is_chunked => Ok(BodyFraming::Chunked),
        None => Ok(BodyFraming::Length(0)),
        Some(text) => match text.parse::<usize>() {
            Ok(length) if length <= BODY_LIMIT => Ok(BodyFraming::Length(length)),
            _ => Err(ReadFailure::Invalid("the content length is invalid")),
        },
    }
}

async fn read_chunks(stream: &mut TcpStream, buffer: &mut BytesMut) -> Result<Vec<u8>, ReadFailure> {
    let mut body = Vec::new();
    loop {
        let (start, size) = loop {
            match httparse::parse_chunk_size(buffer) {
                Ok(httparse::Status::Complete(found)) => break found,
                Ok(httparse::Status::Partial) => more(stream, buffer).await?,
                Err(_) => return Err(ReadFailure::Invalid("a chunk has an invalid size")),
            }
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if body.len().saturating_add(size) > BODY_LIMIT {
            return Err(ReadFailure::Invalid("the body is too large"));
        }
        buffer.advance(start);
        while buffer.len() < size + 2 {
            more(stream, buffer).await?;
        }
        body.extend_from_slice(&buffer.split_to(size));
        if !buffer.starts_with(b"\r\n") {
            return Err(ReadFailure::Invalid("a chunk does not end where it should"));
        }
        buffer.advance(2);
        if size == 0 {
            return Ok(body);
        }
    }
}
