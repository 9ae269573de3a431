//! Sending a prepared body and reading the answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rowmill_types::{Problem, ProblemCode};

/// How long a TCP and TLS handshake may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A pool of connections. Cheap to clone; clones share the pool.
#[derive(Debug, Clone)]
pub struct HttpClient {
    inner: reqwest::Client,
}

/// Where requests go and the headers that each of them carries, made once per run.
#[derive(Debug, Clone)]
pub struct Target {
    /// The address.
    pub url: reqwest::Url,
    /// The headers; values with credentials are marked sensitive.
    pub headers: HeaderMap,
}

/// Why no (complete) answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpFailure {
    /// No connection could be made; nothing was sent.
    Connect(String),
    /// The connection broke after something was sent.
    Broken(String),
}

impl fmt::Display for HttpFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(what) | Self::Broken(what) => out.write_str(what),
        }
    }
}

impl std::error::Error for HttpFailure {}

impl HttpClient {
    /// Makes a client. Proxies come from the usual environment variables.
    ///
    /// # Errors
    ///
    /// The platform's certificates cannot be used.
    pub fn new() -> Result<Self, Problem> {
        let failed = |error: &dyn fmt::Display| {
            Problem::new(ProblemCode::Internal, "the HTTP client cannot be set up").cause(error)
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // A second client in one process finds the provider installed already; that is fine.
        drop(rustls::crypto::CryptoProvider::install_default(Arc::unwrap_or_clone(provider)));
        let inner = reqwest::Client::builder()
            .user_agent(concat!("rowmill/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(usize::MAX)
            .tcp_nodelay(true)
            .retry(reqwest::retry::never())
            .build()
            .map_err(|error| failed(&error))?;
        Ok(Self { inner })
    }

    /// Sends `body` with POST. `extra` is a header of this request alone.
    ///
    /// # Errors
    ///
    /// No answer's head came. Any status is an answer.
    pub async fn post(
        &self,
        target: &Target,
        extra: Option<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<Answer, HttpFailure> {
        let mut headers = target.headers.clone();
        if let Some((name, value)) = extra {
            headers.insert(name, value);
        }
        let request = self.inner.post(target.url.clone()).headers(headers).body(body);
        request.send().await.map(Answer).map_err(|error| failure(&error))
    }

    /// Asks for a document with GET.
    ///
    /// # Errors
    ///
    /// No answer's head came. Any status is an answer.
    pub async fn get(&self, url: reqwest::Url) -> Result<Answer, HttpFailure> {
        self.inner.get(url).send().await.map(Answer).map_err(|error| failure(&error))
    }
}

/// An answer whose head has come.
#[derive(Debug)]
pub struct Answer(reqwest::Response);

impl Answer {
    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// The next piece of the body, `None` at its end.
    ///
    /// # Errors
    ///
    /// The connection broke before the end of the body.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpFailure> {
        self.0.chunk().await.map_err(|error| failure(&error))
    }

    /// The whole body, refused once it passes `limit` bytes.
    ///
    /// # Errors
    ///
    /// The connection broke before the end of the body, or it is larger than `limit`.
    pub async fn body(mut self, limit: usize) -> Result<Bytes, HttpFailure> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let mut rest = BytesMut::new();
        while let Some(more) = self.chunk().await? {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&more);
            if rest.len() > limit {
                return Err(HttpFailure::Broken(format!("the answer is larger than {limit} bytes")));
            }
        }
        Ok(if rest.is_empty() { first } else { rest.freeze() })
    }
}

/// Tells a connection that could not be made from one that broke, and keeps the
/// innermost cause, which is the part a person can act on.
fn failure(error: &reqwest::Error) -> HttpFailure {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let what = cause.to_string();
    if error.is_connect() { HttpFailure::Connect(what) } else { HttpFailure::Broken(what) }
}
