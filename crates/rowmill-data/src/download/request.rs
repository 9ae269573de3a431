//! Sends requests to a server, with retries where these may help.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::redact::Redactor;
use rowmill_http::{
    HeaderMap, HeaderValue, HttpAnswer, HttpDocumentRequest, HttpDocumentResponse, HttpFailure, Url, header,
};
use rowmill_types::{Problem, ProblemCode, Secret};

use crate::fetch::{FetchEvent, FetchEventKind, Fetcher};

/// How much of a server's error text is read and shown at most.
const MAX_ERROR_BODY: usize = 64 * 1024;
const MAX_SHOWN: usize = 300;

/// Counts the attempts that made no progress, and waits between them.
pub(super) struct FetchAttempts<'a> {
    fetcher: &'a Fetcher<'a>,
    name: Arc<str>,
    fruitless: u32,
}

impl<'a> FetchAttempts<'a> {
    pub(super) fn new(fetcher: &'a Fetcher<'a>, name: Arc<str>) -> Self {
        Self { fetcher, name, fruitless: 0 }
    }

    /// The last attempt transferred a lot, so earlier failures no longer count.
    pub(super) fn reset_failures(&mut self) {
        self.fruitless = 0;
    }

    /// Waits before another attempt; `false` if there must not be one.
    pub(super) async fn wait_for_retry(&mut self, asked_for: Option<Duration>, reason: &str) -> bool {
        let patience = self.fetcher.settings.patience;
        let doubled = patience.wait.saturating_mul(1 << self.fruitless.min(16));
        self.fruitless += 1;
        let wait = asked_for.unwrap_or(doubled.min(patience.longest_wait));
        if self.fruitless >= patience.tries || wait > patience.longest_wait {
            return false;
        }
        let step = FetchEventKind::Waiting { wait: Some(wait), reason: reason.to_owned() };
        (self.fetcher.on_event)(FetchEvent { name: Arc::clone(&self.name), step });
        tokio::time::sleep(wait).await;
        true
    }
}

/// Repeats a request until there is an answer that a retry would not improve.
pub(crate) async fn fetch_answer(
    fetcher: &Fetcher<'_>,
    retrieval: &HttpDocumentRequest,
    name: &str,
) -> Result<HttpDocumentResponse, Problem> {
    let mut tries = FetchAttempts::new(fetcher, name.into());
    loop {
        match fetcher.http.retrieve(retrieval).await {
            Err(failure) => {
                if !tries.wait_for_retry(None, &failure.to_string()).await {
                    return Err(no_answer_problem(&retrieval.url, name, &failure));
                }
            }
            Ok(found) => {
                let (status, asked_for) = (found.answer.status(), requested_wait(found.answer.headers()));
                if !is_transient(status)
                    || !tries.wait_for_retry(asked_for, &format!("status {status}")).await
                {
                    return Ok(found);
                }
            }
        }
    }
}

/// Whether a status means that the same request may succeed later.
pub(super) fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// How long the server asks to wait: `Retry-After`, or the rest of the hub's rate limit window.
pub(super) fn requested_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(seconds) = text("retry-after").and_then(|value| value.trim().parse().ok()) {
        return Some(Duration::from_secs(seconds));
    }
    let window = text("ratelimit")?;
    let part = |key: &str| {
        let found = window.split(';').find_map(|part| part.trim().strip_prefix(key));
        found.and_then(|value| value.trim().parse::<u64>().ok())
    };
    (part("r=") == Some(0)).then(|| part("t=").map(Duration::from_secs)).flatten()
}

/// The error for a request without any answer.
pub(crate) fn no_answer_problem(url: &Url, name: &str, failure: &HttpFailure) -> Problem {
    let server = url.host_str().unwrap_or_default();
    Problem::new(ProblemCode::FetchFailed, format!("no response from `{server}` for `{name}`"))
        .cause(failure)
        .hint("check the URL and the network, then run the same command again")
}

/// What a server wrote about a refusal, without the credential that it may repeat.
pub(crate) async fn refusal_text(answer: HttpAnswer, secret: Option<&Secret>) -> Option<String> {
    let header = answer.headers().get("x-error-message").and_then(|value| value.to_str().ok());
    let header = header.map(str::to_owned);
    let body = answer.body(MAX_ERROR_BODY).await.unwrap_or_default();
    let from_body = serde_json::from_slice::<serde_json::Value>(&body)
        .ok()
        .and_then(|body| body.get("error").and_then(|error| error.as_str()).map(str::to_owned));
    let detail = header.or(from_body)?;
    let detail = Redactor::new(secret).ok()?.redact(&detail).into_owned();
    Some(detail.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_SHOWN).collect())
}

/// Adds a header to a request, unless its value is not valid in a header.
pub(super) fn insert_header(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
