//! Maps a failed call (status, headers and body) to a [`CallError`].

use jiff::Timestamp;
use rowmill_core::known_secrets::bare_addresses;
use rowmill_http::{HeaderMap, HttpFailure, Url};
use rowmill_types::{CallError, CallFailure, Words};

use crate::classify::{by_words, classify};
use crate::connection::Connection;
use crate::error_body::{ErrorBody, plain};
use crate::rates::{nothing_allowed, rates};
use crate::reading::Unread;
use crate::wait;

/// The maximum length of a provider's message that is kept.
pub(crate) const MESSAGE_LIMIT: usize = 500;

/// The error for an HTTP status and its body. `now` is used to interpret a time in the headers if the
/// response has no date of its own.
pub(crate) fn from_status(status: u16, headers: &HeaderMap, body: &[u8], now: Timestamp) -> CallError {
    let body_says = ErrorBody::parse(body);
    let retry_after = wait::asked(headers, &body_says, now);
    let mut failure = classify(status, &body_says, retry_after);
    let should_retry = headers.get("x-should-retry").and_then(|value| value.to_str().ok());
    if failure == CallFailure::Server && should_retry == Some("false") {
        failure = CallFailure::Refused;
    }
    let mut message =
        body_says.message.unwrap_or_else(|| format!("the provider returned {status} without a reason"));
    if failure == CallFailure::RateLimited && nothing_allowed(headers) {
        // If the plan does not include a model, Mistral limits it to zero and calls that a rate limit.
        failure = CallFailure::QuotaExhausted;
        message = format!("{} (the account's limit for this model is 0)", cut(&message));
    }
    CallError {
        failure,
        message: message.into(),
        status: Some(status),
        code: body_says.code,
        retry_after,
        rates: rates(headers, now),
    }
}

/// The error for an error object in a response with a success status, or in a stream.
pub(crate) fn from_error(status: Option<u16>, body: ErrorBody, now: Timestamp) -> CallError {
    let retry_after = wait::asked(&HeaderMap::new(), &body, now);
    let failure = match body.status {
        Some(status) => classify(status, &body, retry_after),
        None => by_words(&body, retry_after).unwrap_or(CallFailure::Malformed),
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
        rates: None,
    }
}

/// Builds errors that name the address and contain no secret.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    pub(crate) connection: Connection,
    pub(crate) address: String,
}

impl Reporter {
    /// Reports calls to `url`, which is shown without anything in it that may be secret.
    pub(crate) fn new(connection: &Connection, url: &Url) -> Self {
        Self { connection: connection.clone(), address: bare_addresses(url.as_str()) }
    }

    /// A response with an error status.
    pub(crate) fn status(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> CallError {
        let mut error = from_status(status, headers, body, Timestamp::now());
        error.message = self.connection.redact(&error.message).into();
        if status == 404 {
            // Often the base URL is wrong, and only the address shows that.
            error.message = format!("{} ({} answered 404)", cut(&error.message), self.address).into();
        }
        if let (CallFailure::Unauthorized, Some(variable)) = (error.failure, &self.connection.key_variable) {
            error.message = format!("{} (the key is the one in `{variable}`)", cut(&error.message)).into();
        }
        self.clean(error)
    }

    /// A response with a success status that is not an answer.
    pub(crate) fn unread(&self, status: u16, unread: Unread, body: &[u8]) -> CallError {
        match unread {
            Unread::Error(error) => self.clean(from_error(Some(status), error, Timestamp::now())),
            Unread::Malformed(what) => {
                let message = match plain(body) {
                    Some(text) => format!("{what}: `{text}`"),
                    None => what,
                };
                let error = CallError::new(CallFailure::Malformed, message);
                self.clean(CallError { status: Some(status), ..error })
            }
        }
    }

    /// No response, or an incomplete one.
    pub(crate) fn transport(&self, failure: &HttpFailure) -> CallError {
        self.clean(match failure {
            HttpFailure::Connect(what) => {
                CallError::new(CallFailure::Connect, format!("no connection to {}: {what}", self.address))
            }
            HttpFailure::OpenFiles(_) => CallError::new(
                CallFailure::OpenFiles,
                format!("no connection to {}: the open file limit is reached (`ulimit -n`)", self.address),
            ),
            HttpFailure::Broken(what) => CallError::new(
                CallFailure::Broken,
                format!("the connection to {} was lost: {what}", self.address),
            ),
            HttpFailure::Silent(what) => {
                CallError::new(CallFailure::Timeout, format!("{}: {what}", self.address))
            }
        })
    }

    /// Removes credentials first, so that truncation cannot leave a part of one.
    pub(crate) fn clean(&self, error: CallError) -> CallError {
        CallError {
            message: cut_words(error.message.edited(|text| self.connection.redact(text))),
            code: error.code.map(|code| cut(&self.connection.redact(&code))),
            ..error
        }
    }
}

/// Truncates a long text and drops its markup, so that no literal is cut in two.
fn cut_words(words: Words) -> Words {
    if words.chars().nth(MESSAGE_LIMIT).is_none() { words } else { Words::plain(cut(&words)) }
}

pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_LIMIT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
