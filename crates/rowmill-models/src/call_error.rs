//! Maps a failed call (status, headers and body) to a [`CallError`].

use jiff::Timestamp;
use rowmill_core::known_secrets::strip_address_secrets;
use rowmill_http::{HeaderMap, HttpFailure, Url};
use rowmill_types::{CallError, CallFailure, DiagnosticText};

use crate::classify::{classify_by_words, classify_failure};
use crate::connection::ProviderConnection;
use crate::error_body::{ErrorBody, plain_text};
use crate::rate_headers::{has_zero_limit, rate_limits_from_headers};
use crate::requested_wait;
use crate::wire_protocol::UnreadableAnswer;

/// The maximum length of a provider's message that is kept.
pub(crate) const MESSAGE_LIMIT: usize = 500;

/// The error for an HTTP status and its body. `now` is used to interpret a time in the headers if the
/// response has no date of its own.
pub(crate) fn from_status(status: u16, headers: &HeaderMap, body: &[u8], now: Timestamp) -> CallError {
    let body_says = ErrorBody::parse(body);
    let retry_after = requested_wait::requested_wait(headers, &body_says, now);
    let mut failure = classify_failure(status, &body_says, retry_after);
    let should_retry = headers.get("x-should-retry").and_then(|value| value.to_str().ok());
    if failure == CallFailure::Server && should_retry == Some("false") {
        failure = CallFailure::Refused;
    }
    let mut message =
        body_says.message.unwrap_or_else(|| format!("the provider returned {status} without a reason"));
    if failure == CallFailure::RateLimited && has_zero_limit(headers) {
        // If the plan does not include a model, Mistral limits it to zero and calls that a rate limit.
        failure = CallFailure::QuotaExhausted;
        message = format!("{} (the account's limit for this model is 0)", cut_message(&message));
    }
    CallError {
        failure,
        message: message.into(),
        status: Some(status),
        code: body_says.code,
        retry_after,
        rate_limits: rate_limits_from_headers(headers, now),
        batch: None,
    }
}

/// The error for an error object in a response with a success status, or in a stream.
pub(crate) fn from_error_body(status: Option<u16>, body: ErrorBody, now: Timestamp) -> CallError {
    let retry_after = requested_wait::requested_wait(&HeaderMap::new(), &body, now);
    let failure = match body.status {
        Some(status) => classify_failure(status, &body, retry_after),
        None => classify_by_words(&body, retry_after).unwrap_or(CallFailure::Malformed),
    };
    CallError {
        failure,
        status: body.status.or(status),
        message: body
            .message
            .unwrap_or_else(|| "the provider reported an error without a reason".to_owned())
            .into(),
        code: body.code,
        retry_after,
        rate_limits: None,
        batch: None,
    }
}

/// Builds errors that name the address and contain no secret.
#[derive(Debug, Clone)]
pub(crate) struct CallErrorReporter {
    pub(crate) connection: ProviderConnection,
    pub(crate) address: String,
}

impl CallErrorReporter {
    /// Reports calls to `url`, which is shown without anything in it that may be secret.
    pub(crate) fn new(connection: &ProviderConnection, url: &Url) -> Self {
        Self { connection: connection.clone(), address: strip_address_secrets(url.as_str()) }
    }

    /// A response with an error status.
    pub(crate) fn status_error(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> CallError {
        let mut error = from_status(status, headers, body, Timestamp::now());
        error.message = self.connection.redact(&error.message).into();
        if status == 404 {
            // Often the base URL is wrong, and only the address shows that.
            error.message = format!("{} ({} answered 404)", cut_message(&error.message), self.address).into();
        }
        if let (CallFailure::Unauthorized, Some(variable)) = (error.failure, &self.connection.key_variable) {
            error.message =
                format!("{} (the key is the one in `{variable}`)", cut_message(&error.message)).into();
        }
        self.redact_and_cut(error)
    }

    /// A response with a success status that is not an answer.
    pub(crate) fn unreadable_error(&self, status: u16, unread: UnreadableAnswer, body: &[u8]) -> CallError {
        match unread {
            UnreadableAnswer::Error(error) => {
                self.redact_and_cut(from_error_body(Some(status), error, Timestamp::now()))
            }
            UnreadableAnswer::Malformed(what) => {
                let message = match plain_text(body) {
                    Some(text) => format!("{what}: `{text}`"),
                    None => what,
                };
                let error = CallError::new(CallFailure::Malformed, message);
                self.redact_and_cut(CallError { status: Some(status), ..error })
            }
        }
    }

    /// No response, or an incomplete one.
    pub(crate) fn transport_error(&self, failure: &HttpFailure) -> CallError {
        self.redact_and_cut(match failure {
            HttpFailure::Connect(what) => {
                CallError::new(CallFailure::Connect, format!("no connection to {}: {what}", self.address))
            }
            HttpFailure::TooManyOpenFiles(_) => CallError::new(
                CallFailure::TooManyOpenFiles,
                format!("no connection to {}: the open file limit is reached (`ulimit -n`)", self.address),
            ),
            HttpFailure::Broken(what) => CallError::new(
                CallFailure::ConnectionBroken,
                format!("the connection to {} was lost: {what}", self.address),
            ),
            HttpFailure::TimedOut(what) => {
                CallError::new(CallFailure::Timeout, format!("{}: {what}", self.address))
            }
        })
    }

    /// Removes credentials first, so that truncation cannot leave a part of one.
    pub(crate) fn redact_and_cut(&self, error: CallError) -> CallError {
        CallError {
            message: cut_words(error.message.map_text(|text| self.connection.redact(text))),
            code: error.code.map(|code| cut_message(&self.connection.redact(&code))),
            ..error
        }
    }
}

/// Truncates a long text and drops its markup, so that no literal is cut in two.
fn cut_words(words: DiagnosticText) -> DiagnosticText {
    if words.chars().nth(MESSAGE_LIMIT).is_none() {
        words
    } else {
        DiagnosticText::from_plain(cut_message(&words))
    }
}

pub(crate) fn cut_message(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_LIMIT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
