//! The Responses API over WebSockets: one socket per call in flight, kept for the next call.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, SinkExt, StreamExt};
use rowmill_core::ports::Model;
use rowmill_http::{HeaderMap, HttpFailure, HttpTimeouts, RequestTarget, tls_config};
use rowmill_types::{CallError, CallFailure, CallTiming, Completion, Problem, ProblemCode, Request};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request as Handshake;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use super::wire::ResponsesWire;
use crate::build_model::NoticeFn;
use crate::call_error::CallErrorReporter;
use crate::files::{FileSender, UploadedFiles, have_files};
use crate::http_model::{ANSWER_LIMIT, HttpModel, with_timing};
use crate::wire_protocol::{StreamAssembly, StreamStep, WireProtocol};

type Socket = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

/// The sockets of one run.
pub(super) struct SocketPool {
    handshake: Handshake,
    connector: Connector,
    timeouts: HttpTimeouts,
    idle: Mutex<Vec<Socket>>,
}

/// Why a socket could not be opened.
enum SocketOpenFailure {
    Late,
    Failed(Error),
}

impl fmt::Debug for SocketPool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sockets").field("address", self.handshake.uri()).finish_non_exhaustive()
    }
}

impl SocketPool {
    /// Prepares the handshake; no connection is made yet.
    ///
    /// # Errors
    ///
    /// The platform's certificates cannot be used.
    pub(super) fn new(target: &RequestTarget, timeouts: HttpTimeouts) -> Result<Self, Problem> {
        let failed = |error: &dyn fmt::Display| {
            Problem::new(ProblemCode::Internal, "cannot set up the WebSocket client").cause(error)
        };
        let mut url = target.url().clone();
        let (scheme, connector) = if url.scheme() == "https" {
            let config = tls_config().map_err(|error| failed(&error))?;
            ("wss", Connector::Rustls(Arc::new(config)))
        } else {
            ("ws", Connector::Plain)
        };
        if url.set_scheme(scheme).is_err() {
            return Err(failed(&"the URL has no scheme that can be changed"));
        }
        let mut handshake = url.as_str().into_client_request().map_err(|error| failed(&error))?;
        let body_only = ["content-type", "accept"];
        let headers = target.headers().iter().filter(|(name, _)| !body_only.contains(&name.as_str()));
        handshake.headers_mut().extend(headers.map(|(name, value)| (name.clone(), value.clone())));
        Ok(Self { handshake, connector, timeouts, idle: Mutex::new(Vec::new()) })
    }

    /// A socket that is ready for writing: an idle one that is still open, or a new one.
    async fn take(&self) -> Result<Socket, SocketOpenFailure> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut socket) = idle else { return self.open().await };
            // Gives the runtime a chance to notice that the socket has been closed.
            tokio::task::yield_now().await;
            // No message is expected on an idle socket, so anything but a ping means that it cannot be used.
            match socket.next().now_or_never() {
                None => return Ok(socket),
                Some(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => self.keep(socket),
                Some(_) => {}
            }
        }
    }

    async fn open(&self) -> Result<Socket, SocketOpenFailure> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(ANSWER_LIMIT))
            .max_frame_size(Some(ANSWER_LIMIT));
        let connector = Some(self.connector.clone());
        let connecting = connect_async_tls_with_config(self.handshake.clone(), Some(config), true, connector);
        match tokio::time::timeout(self.timeouts.connect, Box::pin(connecting)).await {
            Ok(Ok((socket, _))) => Ok(socket),
            Ok(Err(error)) => Err(SocketOpenFailure::Failed(error)),
            Err(_) => Err(SocketOpenFailure::Late),
        }
    }

    fn keep(&self, socket: Socket) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
    }
}

/// The model that answers once WebSockets turn out not to work.
#[derive(Debug)]
pub(super) struct HttpFallback {
    exchange: HttpModel<ResponsesWire>,
    notice: DebugNotice,
    taken: AtomicBool,
}

/// A wrapper for the notice callback, which has no `Debug` output.
struct DebugNotice(NoticeFn);

impl fmt::Debug for DebugNotice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Notice")
    }
}

impl HttpFallback {
    pub(super) fn new(exchange: HttpModel<ResponsesWire>, notice: NoticeFn) -> Self {
        Self { exchange, notice: DebugNotice(notice), taken: AtomicBool::new(false) }
    }

    /// Falls back for the rest of the run; sends a notice the first time.
    fn take(&self, why: &CallError) {
        if !self.taken.swap(true, Ordering::Relaxed) {
            (self.notice.0)(format!("cannot open a WebSocket ({why}); falling back to `transport=sse`"));
        }
    }
}

/// A model that is called over WebSockets.
#[derive(Debug)]
pub(super) struct SocketModel {
    pub(super) wire: ResponsesWire,
    pub(super) sockets: SocketPool,
    pub(super) reporter: CallErrorReporter,
    pub(super) fallback: Option<HttpFallback>,
    pub(super) files: Arc<FileSender>,
}

impl SocketModel {
    async fn call(&self, request: &Request) -> Result<Completion, CallError> {
        if let Some(fallback) = self.fallback.as_ref().filter(|one| one.taken.load(Ordering::Relaxed)) {
            return fallback.exchange.call(request).await;
        }
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
        match (self.sockets.take().await, &self.fallback) {
            (Ok(socket), _) => self.converse(socket, request, uploaded, started).await,
            (Err(error), Some(fallback)) => {
                fallback.take(&self.not_opened(error));
                fallback.exchange.call(request).await
            }
            (Err(error), None) => Err(self.not_opened(error)),
        }
    }

    async fn converse(
        &self,
        mut socket: Socket,
        request: &Request,
        uploaded: &UploadedFiles,
        started: Instant,
    ) -> Result<Completion, CallError> {
        let broken = |what: String| self.reporter.transport_error(&HttpFailure::Broken(what));
        let body = String::from_utf8(self.wire.body(&request.messages, uploaded, request.output_cap))
            .map_err(|error| CallError::new(CallFailure::Internal, error.to_string()))?;
        let timeouts = self.sockets.timeouts;
        let asking = async {
            socket.send(Message::text(body)).await?;
            socket.next().await.transpose()
        };
        let first = tokio::time::timeout(timeouts.first_byte, asking).await;
        let mut came = first
            .map_err(|_| self.reporter.transport_error(&timeouts.first_byte_timeout_failure()))?
            .transpose();
        let mut assembly = self.wire.assembly();
        let mut first_token = None;
        loop {
            let text = match came {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Close(frame))) => {
                    let why = frame.map(|frame| frame.to_string()).unwrap_or_default();
                    return Err(broken(format!(
                        "the server closed the WebSocket before the answer was complete {why}"
                    )));
                }
                Some(Ok(_)) => {
                    came = self.next(&mut socket).await?;
                    continue;
                }
                Some(Err(error)) => return Err(broken(error.to_string())),
                None => {
                    return Err(broken("the WebSocket was closed before the answer was complete".to_owned()));
                }
            };
            let step = assembly.take_json(&text);
            match step.map_err(|unread| self.reporter.unreadable_error(200, unread, text.as_bytes()))? {
                StreamStep::NoContent => {}
                StreamStep::Content => first_token = first_token.or_else(|| Some(started.elapsed())),
                StreamStep::Done => break,
            }
            came = self.next(&mut socket).await?;
        }
        self.sockets.keep(socket);
        let reading = assembly.finish().map_err(|unread| self.reporter.unreadable_error(200, unread, b""))?;
        Ok(with_timing(reading, CallTiming { first_token, response: started.elapsed() }))
    }

    /// The next message on the socket; a ping shows that the other side is alive.
    async fn next(&self, socket: &mut Socket) -> Result<Option<Result<Message, Error>>, CallError> {
        let timeouts = self.sockets.timeouts;
        let next = tokio::time::timeout(timeouts.idle, socket.next()).await;
        next.map_err(|_| self.reporter.transport_error(&timeouts.idle_timeout_failure()))
    }

    /// The error if no socket could be opened: the server's response, or none.
    fn not_opened(&self, unopened: SocketOpenFailure) -> CallError {
        let error = match unopened {
            SocketOpenFailure::Late => {
                return self.reporter.transport_error(&self.sockets.timeouts.connect_timeout_failure());
            }
            SocketOpenFailure::Failed(error) => error,
        };
        if let Error::Http(answer) = error {
            let mut headers = HeaderMap::new();
            headers.extend(answer.headers().iter().map(|(name, value)| (name.clone(), value.clone())));
            let body = answer.body().as_deref().unwrap_or_default();
            return self.reporter.status_error(answer.status().as_u16(), &headers, body);
        }
        self.reporter.transport_error(&HttpFailure::connecting(&error))
    }
}

impl Model for SocketModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        self.call(request).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.files.close().boxed()
    }
}
