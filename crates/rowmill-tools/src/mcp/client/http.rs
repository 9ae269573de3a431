//! The streamable HTTP transport.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use memchr::memmem;
use reqwest::Response;
use reqwest::redirect::{Attempt, Policy};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use rowmill_core::known_secrets::strip_address_secrets;
use rowmill_http::{EventParser, EventTooLarge, ProxySettings, ServerSentEvent};
use rustls_platform_verifier::BuilderVerifierExt;
use sse_stream::Sse;

use super::access::{TokenFreshness, TokenGrant};
use super::lost_call::error_chain;
use super::sent_requests::SentRequests;
use super::tasks::keep_execution_field;
use super::{MAX_FRAME, frame};

const SESSION: &str = "mcp-session-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MOST_REDIRECTS: usize = 5;
/// How much of an error response is read and shown.
const SHOWN: usize = 300;

type TransportFailure = StreamableHttpError<reqwest::Error>;

/// Creates the HTTP client of a server. `headers` are sent with every request.
///
/// # Errors
///
/// The certificates of this machine cannot be used.
pub(super) fn http_client(headers: HeaderMap, proxies: &ProxySettings) -> Result<reqwest::Client, String> {
    // What does the cryptography is named here, because a default would be one for the whole process.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| error.to_string())?;
    let mut tls = tls.with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("rowmill/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .retry(reqwest::retry::never())
        .redirect(Policy::custom(redirect));
    proxies.apply_to(client).build().map_err(|error| error_chain(&error))
}

/// Follows only redirects that keep method and body and stay on the same server, the only one that may see
/// the headers: web frameworks redirect like this if a trailing slash is missing.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let origin = attempt.previous().first().map(reqwest::Url::origin);
    let stays = origin == Some(attempt.url().origin());
    if keeps && stays && attempt.previous().len() <= MOST_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Posts messages.
///
/// Other requests use the SDK's own client. Posts are made here because an answer's length must be limited,
/// because a rejected session must be distinguished from a failed call, and because an expired token is
/// replaced.
#[derive(Debug, Clone)]
pub(super) struct HttpTransport {
    pub(super) client: reqwest::Client,
    pub(super) grant: Option<Arc<TokenGrant>>,
    pub(super) sent: SentRequests,
}

/// A message to be posted.
struct PendingPost {
    uri: Arc<str>,
    message: ClientJsonRpcMessage,
    session: Option<Arc<str>>,
    headers: HashMap<HeaderName, HeaderValue>,
}

impl PendingPost {
    fn id(&self) -> Option<&RequestId> {
        match &self.message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        }
    }
}

impl HttpTransport {
    async fn token(&self, which: TokenFreshness) -> Result<Option<String>, TransportFailure> {
        match &self.grant {
            Some(grant) => grant.token(which).await.map(Some).map_err(TransportFailure::Auth),
            None => Ok(None),
        }
    }

    async fn send(&self, post: &PendingPost, token: Option<&str>) -> Result<Response, TransportFailure> {
        let mut request =
            self.client.post(post.uri.as_ref()).header(ACCEPT, "text/event-stream, application/json");
        for (name, value) in &post.headers {
            request = request.header(name, value);
        }
        if let Some(session) = &post.session {
            request = request.header(SESSION, session.as_ref());
        }
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        request.json(&post.message).send().await.map_err(TransportFailure::Client)
    }

    /// Posts and waits for the head of the response. A request that was rejected unread counts as not sent.
    async fn post(&self, post: PendingPost) -> Result<StreamableHttpPostResponse, TransportFailure> {
        let token = self.token(TokenFreshness::Current).await?;
        if post.id().is_some_and(|id| !self.sent.mark_sent(id)) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let mut response = self.send(&post, token.as_deref()).await;
        if self.grant.is_some()
            && matches!(&response, Ok(answer) if answer.status() == StatusCode::UNAUTHORIZED)
        {
            let token = self.token(TokenFreshness::Renewed).await?;
            response = self.send(&post, token.as_deref()).await;
        }
        let answer = match response {
            Ok(response) => understand(response, &post).await,
            Err(failure) => Err(failure),
        };
        if let (Err(failure), Some(id)) = (&answer, post.id())
            && was_refused_unread(failure)
        {
            self.sent.forget(id);
        }
        answer
    }
}

/// Whether a failure means that the server did not process the message.
pub(super) fn was_refused_unread(failure: &TransportFailure) -> bool {
    match failure {
        TransportFailure::Client(error) => error.is_connect() || error.is_builder(),
        TransportFailure::HttpStatus(error) => matches!(error.status, 300..=499 | 503),
        TransportFailure::SessionExpired
        | TransportFailure::AuthRequired(_)
        | TransportFailure::InsufficientScope(_)
        | TransportFailure::Auth(_) => true,
        _ => false,
    }
}

/// Interprets the response to a post.
async fn understand(
    response: Response,
    post: &PendingPost,
) -> Result<StreamableHttpPostResponse, TransportFailure> {
    let status = response.status();
    if !status.is_success() {
        return refusal(response, post).await;
    }
    let header =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (session, kind) = (header(SESSION), header(CONTENT_TYPE.as_str()).unwrap_or_default());
    let Some(id) = post.id() else { return Ok(StreamableHttpPostResponse::Accepted) };
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if kind.starts_with(EVENTS) {
        return Ok(StreamableHttpPostResponse::Sse(events(response, id.clone()), session));
    }
    if !kind.starts_with(JSON) {
        return Err(TransportFailure::UnexpectedContentType((!kind.is_empty()).then_some(kind)));
    }
    let message = match body(response, MAX_FRAME).await? {
        None => frame::too_large(id.clone()),
        Some(text) => match serde_json::from_slice(&keep_execution_field(&text)) {
            Ok(ServerJsonRpcMessage::Error(mut error)) => {
                // Servers that reject a message before reading it cannot name its id.
                error.id = Some(id.clone());
                ServerJsonRpcMessage::Error(error)
            }
            Ok(message) => message,
            Err(error) => frame::unusable(id.clone(), &error.to_string()),
        },
    };
    Ok(StreamableHttpPostResponse::Json(message, session))
}

async fn refusal(
    response: Response,
    post: &PendingPost,
) -> Result<StreamableHttpPostResponse, TransportFailure> {
    let status = response.status();
    let header = |name: HeaderName| {
        let value = response.headers().get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let (challenge, retry, location) = (header(WWW_AUTHENTICATE), header(RETRY_AFTER), header(LOCATION));
    match status {
        StatusCode::UNAUTHORIZED => {
            return Err(TransportFailure::AuthRequired(AuthRequiredError::new(challenge)));
        }
        StatusCode::FORBIDDEN => {
            return Err(TransportFailure::InsufficientScope(InsufficientScopeError::new(challenge, None)));
        }
        StatusCode::NOT_FOUND if post.session.is_some() => return Err(TransportFailure::SessionExpired),
        StatusCode::TOO_MANY_REQUESTS => return Err(HttpStatusError::new(429, Some(retry)).into()),
        _ if status.is_redirection() => {
            return Err(TransportFailure::UnexpectedServerResponse(moved(status, &location).into()));
        }
        _ => {}
    }
    let text = body(response, MAX_FRAME).await.ok().flatten().unwrap_or_default();
    // Some servers do not return 404 for a session that they have forgotten.
    let about_session = memmem::find(&text.to_ascii_lowercase(), b"session").is_some();
    if status == StatusCode::BAD_REQUEST && post.session.is_some() && about_session {
        return Err(TransportFailure::SessionExpired);
    }
    match (serde_json::from_slice(&text), post.id()) {
        (Ok(ServerJsonRpcMessage::Error(mut error)), Some(id)) => {
            error.id = Some(id.clone());
            Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None))
        }
        _ if status.is_server_error() => Err(HttpStatusError::new(status.as_u16(), None).into()),
        _ => {
            let shown = String::from_utf8_lossy(text.get(..SHOWN).unwrap_or(&text)).into_owned();
            Err(TransportFailure::UnexpectedServerResponse(
                format!("HTTP {}: {shown}", status.as_u16()).into(),
            ))
        }
    }
}

/// The message for a redirect that is not followed. Servers repeat the query of the request in it.
fn moved(status: StatusCode, location: &str) -> String {
    let place = location.split(['?', '#']).next().unwrap_or_default();
    format!("HTTP {}: it has moved to {}", status.as_u16(), strip_address_secrets(place))
}

/// Reads a body; `None` if it is longer than `most`.
async fn body(mut response: Response, most: usize) -> Result<Option<Vec<u8>>, TransportFailure> {
    let mut whole = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(TransportFailure::Client)? {
        if whole.len() + chunk.len() > most {
            return Ok(None);
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(Some(whole))
}

/// The events of a response. An oversized event becomes an error of its call.
fn events(response: Response, id: RequestId) -> BoxStream<'static, Result<Sse, SseError>> {
    // Without a parser nothing follows any more.
    let pieces = response.bytes_stream().scan(Some(EventParser::new(MAX_FRAME)), move |reading, piece| {
        let Some(parser) = reading else { return std::future::ready(None) };
        let mut events = Vec::new();
        match piece.map(|piece| parser.push(&piece, |event| events.push(Ok(sse(event))))) {
            Ok(Ok(())) => {}
            Ok(Err(EventTooLarge)) => {
                let text = serde_json::to_string(&frame::too_large(id.clone())).unwrap_or_default();
                events.push(Ok(Sse::default().data(text)));
                *reading = None;
            }
            Err(error) => {
                events.push(Err(SseError::Body(error.to_string().into())));
                *reading = None;
            }
        }
        std::future::ready(Some(stream::iter(events)))
    });
    pieces.flatten().boxed()
}

/// An event as the SDK takes it.
fn sse(event: ServerSentEvent) -> Sse {
    let ServerSentEvent { name, data, id, retry } = event;
    let data = data.map(|data| match keep_execution_field(data.as_bytes()) {
        Cow::Owned(changed) => String::from_utf8(changed).unwrap_or(data),
        Cow::Borrowed(_) => data,
    });
    Sse { event: name, data, id, retry }
}

impl StreamableHttpClient for HttpTransport {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, TransportFailure> {
        self.post(PendingPost { uri, message, session, headers }).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), TransportFailure> {
        let token = self.token(TokenFreshness::Current).await?;
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportFailure> {
        let token = self.token(TokenFreshness::Current).await?;
        let client = &self.client;
        client.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, MAX_FRAME).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_reported_without_user_and_query() {
        for (location, place) in [
            ("https://ann:pw@host/new?key=x7q", "https://host/new"),
            ("/login?token=x7q", "/login"),
            ("", ""),
        ] {
            assert_eq!(moved(StatusCode::FOUND, location), format!("HTTP 302: it has moved to {place}"));
        }
    }
}
