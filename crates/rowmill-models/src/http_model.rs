//! One HTTP call: sends a prepared body and reads a complete or streamed response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use rowmill_core::ports::Model;
use rowmill_http::{
    EventParser, HeaderName, HeaderValue, HttpAnswer, HttpClient, HttpFailure, RequestTarget,
};
use rowmill_types::{CallError, CallFailure, CallTiming, Completion, Request};
use tokio::time::Instant;

use crate::call_error::CallErrorReporter;
use crate::files::{FileSender, UploadedFiles, have_files};
use crate::rate_headers::rate_limits_from_headers;
use crate::wire_protocol::{ReadAnswer, StreamAssembly, StreamStep, WireProtocol};

/// The maximum size of a response.
pub(crate) const ANSWER_LIMIT: usize = 64 << 20;

/// How long to wait for the end of a stream once its answer is complete.
const LINGER: Duration = Duration::from_millis(250);

/// Whether a response is one document or a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerDelivery {
    /// One JSON document.
    Whole,
    /// Server-sent events.
    Stream,
}

/// A model that is called over HTTP.
#[derive(Debug)]
pub(crate) struct HttpModel<W> {
    pub(crate) http: HttpClient,
    pub(crate) target: RequestTarget,
    pub(crate) wire: W,
    pub(crate) delivery: AnswerDelivery,
    pub(crate) idempotency: bool,
    pub(crate) reporter: CallErrorReporter,
    pub(crate) files: Arc<FileSender>,
}

impl<W: WireProtocol> HttpModel<W> {
    pub(crate) async fn call(&self, request: &Request) -> Result<Completion, CallError> {
        if have_files(&request.messages) {
            return Box::pin(self.call_with_files(request)).await;
        }
        self.ask(request, &UploadedFiles::NONE).await
    }

    /// A separate function, so that the futures of calls without files stay small.
    async fn call_with_files(&self, request: &Request) -> Result<Completion, CallError> {
        let uploaded = self.files.prepare(&request.messages).await?;
        let answered = self.ask(request, &uploaded).await;
        answered.map_err(|error| self.files.explain_error(error, &uploaded))
    }

    async fn ask(&self, request: &Request, uploaded: &UploadedFiles) -> Result<Completion, CallError> {
        let started = Instant::now();
        let body = Bytes::from(self.wire.body(&request.messages, uploaded, request.output_cap));
        // No provider uses both an idempotency key and a header for files.
        let extra = self.idempotency_key(request).or_else(|| uploaded.header.clone());
        let answer = self.http.post(&self.target, extra, body).await;
        let answer = answer.map_err(|failure| self.reporter.transport_error(&failure))?;
        if !(200..300).contains(&answer.status()) {
            return Err(self.refusal(answer).await);
        }
        let rates = rate_limits_from_headers(answer.headers(), Timestamp::now());
        match self.take(answer, started).await {
            Ok(completion) => Ok(Completion { rate_limits: rates, ..completion }),
            Err(error) => Err(CallError { rate_limits: rates, ..error }),
        }
    }

    /// Reads a response with a success status.
    async fn take(&self, answer: HttpAnswer, started: Instant) -> Result<Completion, CallError> {
        if self.delivery == AnswerDelivery::Stream {
            return self.stream(answer, started).await;
        }
        let status = answer.status();
        let body =
            answer.body(ANSWER_LIMIT).await.map_err(|failure| self.reporter.transport_error(&failure))?;
        let reading = self.wire.read_repaired(&body);
        let reading = reading.map_err(|unread| self.reporter.unreadable_error(status, unread, &body))?;
        Ok(with_timing(reading, CallTiming { first_token: None, response: started.elapsed() }))
    }

    fn idempotency_key(&self, request: &Request) -> Option<(HeaderName, HeaderValue)> {
        if !self.idempotency {
            return None;
        }
        let value = HeaderValue::from_str(&request.key).ok()?;
        Some((HeaderName::from_static("idempotency-key"), value))
    }

    /// Reads the body of an error response; if the body breaks off, the status is used alone.
    async fn refusal(&self, answer: HttpAnswer) -> CallError {
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.body(ANSWER_LIMIT).await.unwrap_or_default();
        self.reporter.status_error(status, &headers, &body)
    }

    async fn stream(&self, mut answer: HttpAnswer, started: Instant) -> Result<Completion, CallError> {
        let status = answer.status();
        let mut assembly = self.wire.assembly();
        let first_token = self.assemble(&mut answer, &mut assembly, started).await?;
        let reading =
            assembly.finish().map_err(|unread| self.reporter.unreadable_error(status, unread, b""))?;
        let timing = CallTiming { first_token, response: started.elapsed() };
        // The connection can serve another call only after its body has been read to the end, which takes
        // only a moment. Errors from here on no longer affect this answer.
        let rest = async { while let Ok(Some(_)) = answer.chunk().await {} };
        drop(tokio::time::timeout(LINGER, rest).await);
        Ok(with_timing(reading, timing))
    }

    /// Reads events until the answer is complete; returns the time to the first token.
    async fn assemble(
        &self,
        answer: &mut HttpAnswer,
        assembly: &mut W::StreamAssembly,
        started: Instant,
    ) -> Result<Option<Duration>, CallError> {
        let status = answer.status();
        let mut parser = EventParser::new(ANSWER_LIMIT);
        let mut events = Vec::new();
        let mut first_token = None;
        let mut read = 0;
        while let Some(piece) =
            answer.chunk().await.map_err(|failure| self.reporter.transport_error(&failure))?
        {
            read += piece.len();
            let pushed = parser.push(&piece, |event| events.extend(event.data));
            if read > ANSWER_LIMIT || pushed.is_err() {
                let what = format!("the answer is larger than {ANSWER_LIMIT} bytes");
                return Err(self.reporter.transport_error(&HttpFailure::Broken(what)));
            }
            for data in events.drain(..) {
                let step = assembly.push_event(&data);
                match step
                    .map_err(|unread| self.reporter.unreadable_error(status, unread, data.as_bytes()))?
                {
                    StreamStep::NoContent => {}
                    StreamStep::Content => first_token = first_token.or_else(|| Some(started.elapsed())),
                    StreamStep::Done => return Ok(first_token),
                }
            }
        }
        if assembly.is_complete_at_end() {
            return Ok(first_token);
        }
        let error =
            CallError::new(CallFailure::ConnectionBroken, "the stream ended before the answer was complete");
        Err(CallError { status: Some(status), ..error })
    }
}

impl<W: WireProtocol> Model for HttpModel<W> {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        self.call(request).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.files.close().boxed()
    }
}

/// A completion with its timing.
pub(crate) fn with_timing(reading: ReadAnswer, timing: CallTiming) -> Completion {
    Completion {
        finish: reading.finish,
        calls: reading.calls,
        native: reading.echo,
        hosted_tools: reading.hosted,
        usage: reading.usage,
        raw_usage: reading.raw_usage,
        timing,
        model: reading.model,
        service_tier: reading.service_tier,
        ..Completion::from_text(reading.text)
    }
}
