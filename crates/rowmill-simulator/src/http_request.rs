//! Parses HTTP/1.1 requests.

use std::fs::File;
use std::io::Write;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::recorder::RecordedRequest;

/// Larger heads and bodies are rejected.
const HEAD_LIMIT: usize = 64 * 1024;
const BODY_LIMIT: usize = 256 * 1024 * 1024;
/// Bodies that are written to a file may be larger: Google takes files of two gibibytes.
const FILE_LIMIT: usize = 2 << 30;

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

/// The head of a request whose body was not read yet.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) incoming: HttpRequest,
    length: usize,
    framing: BodyFraming,
}

/// Where the bytes of a body go.
trait BodySink {
    /// The size above which a body is rejected.
    const LIMIT: usize;

    fn take(&mut self, bytes: &[u8]) -> std::io::Result<()>;
}

impl BodySink for Vec<u8> {
    const LIMIT: usize = BODY_LIMIT;

    fn take(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

impl BodySink for File {
    const LIMIT: usize = FILE_LIMIT;

    fn take(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.write_all(bytes)
    }
}

impl RequestHead {
    /// Whether the body may be larger than `bytes`.
    pub(crate) fn may_exceed(&self, bytes: usize) -> bool {
        match self.framing {
            BodyFraming::Length(length) => length > bytes,
            BodyFraming::Chunked => true,
        }
    }

    /// Reads the body into memory.
    pub(crate) async fn read_body(
        mut self,
        stream: &mut TcpStream,
        buffer: &mut BytesMut,
    ) -> Result<HttpRequest, ReadFailure> {
        let mut body = Vec::new();
        self.receive(stream, buffer, &mut body).await?;
        self.incoming.request.body = body;
        Ok(self.incoming)
    }

    /// Writes the body to a file, and leaves that of the request empty.
    pub(crate) async fn write_body(
        self,
        stream: &mut TcpStream,
        buffer: &mut BytesMut,
        file: &mut File,
    ) -> Result<HttpRequest, ReadFailure> {
        self.receive(stream, buffer, file).await?;
        Ok(self.incoming)
    }

    /// Reads about half of the body, which is then dropped.
    pub(crate) async fn read_half(self, stream: &mut TcpStream, buffer: &mut BytesMut) {
        let half = match self.framing {
            BodyFraming::Length(length) => length / 2,
            BodyFraming::Chunked => buffer.len() / 2 + 1,
        };
        let mut read = 0;
        while read + buffer.len() < half {
            read += buffer.len();
            buffer.clear();
            if more(stream, buffer).await.is_err() {
                return;
            }
        }
    }

    async fn receive<S: BodySink>(
        &self,
        stream: &mut TcpStream,
        buffer: &mut BytesMut,
        sink: &mut S,
    ) -> Result<(), ReadFailure> {
        let expects = self.incoming.request.header("expect");
        if expects.is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        match self.framing {
            BodyFraming::Length(length) if length > S::LIMIT => {
                Err(ReadFailure::Invalid("the content length is invalid"))
            }
            BodyFraming::Length(length) => pass(stream, buffer, sink, length).await,
            BodyFraming::Chunked => read_chunks(stream, buffer, sink).await,
        }
    }
}

/// Passes exactly `length` bytes to the sink.
async fn pass<S: BodySink>(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    sink: &mut S,
    length: usize,
) -> Result<(), ReadFailure> {
    let mut left = length;
    loop {
        let piece = buffer.split_to(left.min(buffer.len()));
        sink.take(&piece)?;
        left -= piece.len();
        if left == 0 {
            return Ok(());
        }
        more(stream, buffer).await?;
    }
}

/// Reads the head of a request; anything after it stays in `buffer`.
pub(crate) async fn read_head(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
) -> Result<RequestHead, ReadFailure> {
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
    Ok(head)
}

/// Reads one request; anything after it stays in `buffer`.
pub(crate) async fn read(stream: &mut TcpStream, buffer: &mut BytesMut) -> Result<HttpRequest, ReadFailure> {
    read_head(stream, buffer).await?.read_body(stream, buffer).await
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
            Ok(length) if length <= FILE_LIMIT => Ok(BodyFraming::Length(length)),
            _ => Err(ReadFailure::Invalid("the content length is invalid")),
        },
    }
}

async fn read_chunks<S: BodySink>(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    sink: &mut S,
) -> Result<(), ReadFailure> {
    let mut read = 0_usize;
    loop {
        let (start, size) = loop {
            match httparse::parse_chunk_size(buffer) {
                Ok(httparse::Status::Complete(found)) => break found,
                Ok(httparse::Status::Partial) => more(stream, buffer).await?,
                Err(_) => return Err(ReadFailure::Invalid("a chunk has an invalid size")),
            }
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        read = read.saturating_add(size);
        if read > S::LIMIT {
            return Err(ReadFailure::Invalid("the body is too large"));
        }
        buffer.advance(start);
        pass(stream, buffer, sink, size).await?;
        while buffer.len() < 2 {
            more(stream, buffer).await?;
        }
        if !buffer.starts_with(b"\r\n") {
            return Err(ReadFailure::Invalid("a chunk does not end where it should"));
        }
        buffer.advance(2);
        if size == 0 {
            return Ok(());
        }
    }
}
