//! What a failed call means: status, headers and body in, [`CallError`] out.

use std::time::Duration;

use jiff::Timestamp;
use rowmill_http::{HeaderMap, HttpFailure};
use rowmill_types::{CallError, CallFailure};
use serde_json::Value;

use crate::connection::Connection;
use crate::reading::Unread;

/// How much of a provider's message is kept.
const MESSAGE_LIMIT: usize = 500;

/// What a provider says about an error, whatever shape it says it in.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ErrorBody {
    /// The message.
    pub(crate) message: Option<String>,
    /// The code, or else the type.
    pub(crate) code: Option<String>,
    /// Every word that can tell what kind of error it is, in lowercase.
    words: String,
    /// An HTTP status that stands in the body.
    status: Option<u16>,
    /// The wait that the body asks for.
    retry_after: Option<Duration>,
}

impl ErrorBody {
    /// Reads an error body; one that is not JSON becomes the message itself.
    pub(crate) fn parse(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::from_value(&value),
            Err(_) => Self { message: plain(body), ..Self::default() },
        }
    }

    /// Reads the value of an `error` field.
    pub(crate) fn of(error: &str) -> Self {
        Self::parse(format!("{{\"error\":{error}}}").as_bytes())
    }

    /// An error that is known by a word alone.
    pub(crate) fn known(code: &str, message: &str) -> Self {
        Self {
            message: Some(message.to_owned()),
            code: Some(code.to_owned()),
            words: code.to_lowercase(),
            ..Self::default()
        }
    }

    fn from_value(value: &Value) -> Self {
        // Google's compatible API wraps its errors in an array.
        let outer = value.get(0).unwrap_or(value);
        let inner = match outer.get("error") {
            Some(inner @ Value::Object(_)) => inner,
            _ => outer,
        };
        let texts = |name: &str| [inner, outer].into_iter().find_map(|place| text(place.get(name)?));
        let message = ["message", "detail", "error", "msg"].iter().find_map(|name| texts(name));
        let code = ["code", "type", "status"].map(|name| texts(name).filter(|text| text != "error"));
        let status = [inner.get("status"), inner.get("code"), outer.get("status"), outer.get("status_code")];
        let status = status.into_iter().flatten().filter_map(Value::as_u64);
        let status =
            status.filter_map(|code| u16::try_from(code).ok()).find(|code| (400..600).contains(code));
        let [by_code, by_type, by_status] = code;
        let words = [&by_code, &by_type, &by_status, &message];
        let mut words = words.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ");
        let (mut retry_after, details) = (None, inner.get("details").and_then(Value::as_array));
        for detail in details.into_iter().flatten() {
            retry_after =
                retry_after.or_else(|| seconds(detail.get("retryDelay")?.as_str()?.strip_suffix('s')?));
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                words.push(' ');
                words.push_str(reason);
            }
        }
        let is_word = |code: &String| code.parse::<u16>().is_err();
        let code = by_code.clone().filter(is_word).or(by_type).or(by_status.filter(is_word)).or(by_code);
        Self { message, code, words: words.to_lowercase(), status, retry_after }
    }

    fn says(&self, any: &[&str]) -> bool {
        any.iter().any(|word| self.words.contains(word))
    }
}

/// The error that an HTTP status and its body mean. `now` is used for a
/// `retry-after` date when the answer has no date of its own.
pub(crate) fn from_status(status: u16, headers: &HeaderMap, body: &[u8], now: Timestamp) -> CallError {
    let body_says = ErrorBody::parse(body);
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let mut failure = classify(status, &body_says);
    if failure == CallFailure::Server && header("x-should-retry") == Some("false") {
        failure = CallFailure::Refused;
    }
    let wait = header("retry-after-ms").and_then(milliseconds);
    let wait = wait.or_else(|| {
        let value = header("retry-after")?;
        seconds(value).or_else(|| until(value, header("date"), now))
    });
    CallError {
        failure,
        message: body_says
            .message
            .unwrap_or_else(|| format!("the provider answered {status} without a reason")),
        status: Some(status),
        code: body_says.code,
        retry_after: wait.or(body_says.retry_after),
        rates: None,
    }
}

/// The error that stands inside an answer with a good status, or in a stream.
pub(crate) fn from_error(status: Option<u16>, body: ErrorBody) -> CallError {
    let failure = match body.status {
        Some(status) => classify(status, &body),
        None => by_words(&body).unwrap_or(CallFailure::Malformed),
    };
    CallError {
        failure,
        status: body.status.or(status),
        message: body.message.unwrap_or_else(|| "the provider reported an error without a reason".to_owned()),
        code: body.code,
        retry_after: body.retry_after,
        rates: None,
    }
}

const KEY_WORDS: &[&str] = &[
    "api key",
    "api_key",
    "apikey",
    "permission",
    "credential",
    "unauthorized",
    "unauthenticated",
    "authentication",
    "access token",
    "access denied",
    "invalid token",
    "invalid_token",
];
const MODEL_WORDS: &[&str] = &[
    "model_not_found",
    "model_not_exist",
    "model not exist",
    "is not a valid model",
    "invalid_model",
    "model not found",
    "unknown_model",
    "unknown model",
    "deploymentnotfound",
    "model_not_available",
];
const BAD_KEY_WORDS: &[&str] =
    &["invalid_api_key", "api_key_invalid", "api key not valid", "incorrect api key", "invalid api key"];

/// How content filters of vendors name themselves in errors.
const FILTER_WORDS: &[&str] = &[
    "content_filter",
    "content filtering policy",
    "content_policy_violation",
    "content management policy",
    "responsibleaipolicyviolation",
];

fn classify(status: u16, body: &ErrorBody) -> CallFailure {
    match status {
        400 | 403 | 422 if body.says(FILTER_WORDS) => CallFailure::Filtered,
        401 => CallFailure::Unauthorized,
        403 if body.says(KEY_WORDS) => CallFailure::Unauthorized,
        404 => CallFailure::UnknownModel,
        429 => CallFailure::RateLimited,
        408 | 409 | 425 | 500..=599 => CallFailure::Server,
        _ if body.says(BAD_KEY_WORDS) => CallFailure::Unauthorized,
        _ if body.says(MODEL_WORDS) => CallFailure::UnknownModel,
        _ => CallFailure::Refused,
    }
}

/// What an error without a status means.
fn by_words(body: &ErrorBody) -> Option<CallFailure> {
    let table: [(&[&str], CallFailure); 7] = [
        (FILTER_WORDS, CallFailure::Filtered),
        (
            &["rate_limit", "insufficient_quota", "resource_exhausted", "too many requests"],
            CallFailure::RateLimited,
        ),
        (MODEL_WORDS, CallFailure::UnknownModel),
        (&["not_found_error"], CallFailure::UnknownModel),
        (&["authentication_error", "permission_error", "invalid_api_key"], CallFailure::Unauthorized),
        (
            &[
                "overloaded",
                "server_error",
                "api_error",
                "internal",
                "unavailable",
                "timeout",
                "limit_reached",
            ],
            CallFailure::Server,
        ),
        (
            &["invalid_request", "invalid_argument", "context_length", "invalid_prompt", "billing_error"],
            CallFailure::Refused,
        ),
    ];
    table.iter().find(|(words, _)| body.says(words)).map(|(_, failure)| *failure)
}

/// Turns failures into errors that name the address and hold no secret.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    pub(crate) connection: Connection,
    pub(crate) address: String,
}

impl Reporter {
    /// An answer with a bad status.
    pub(crate) fn status(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> CallError {
        let mut error = from_status(status, headers, body, Timestamp::now());
        if status == 404 {
            // Often the base URL is wrong, and only the address shows it.
            error.message = format!("{} ({} answered 404)", cut(&error.message), self.address);
        }
        if let (CallFailure::Unauthorized, Some(variable)) = (error.failure, &self.connection.key_variable) {
            error.message = format!("{} (the key is the one in `{variable}`)", cut(&error.message));
        }
        self.clean(error)
    }

    /// An answer with a good status that is none.
    pub(crate) fn unread(&self, status: u16, unread: Unread, body: &[u8]) -> CallError {
        match unread {
            Unread::Error(error) => self.clean(from_error(Some(status), error)),
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

    /// No answer, or not all of one.
    pub(crate) fn transport(&self, failure: &HttpFailure) -> CallError {
        self.clean(match failure {
            HttpFailure::Connect(what) => {
                CallError::new(CallFailure::Connect, format!("no connection to {}: {what}", self.address))
            }
            HttpFailure::Broken(what) => CallError::new(
                CallFailure::Broken,
                format!("the connection to {} broke: {what}", self.address),
            ),
        })
    }

    /// Removes credentials first, so that cutting cannot leave a part of one.
    pub(crate) fn clean(&self, error: CallError) -> CallError {
        CallError {
            message: cut(&self.connection.redact(&error.message)),
            code: error.code.map(|code| cut(&self.connection.redact(&code))),
            ..error
        }
    }
}

/// The text of a value that may be a string, a number, or a list of messages.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(items) => items.iter().find_map(text),
        Value::Object(fields) => {
            ["message", "msg", "detail"].iter().find_map(|name| text(fields.get(*name)?))
        }
        _ => None,
    }
}

/// A body that is not JSON, as one line of text.
fn plain(body: &[u8]) -> Option<String> {
    let start = body.get(..body.len().min(4 * MESSAGE_LIMIT)).unwrap_or_default();
    let text = String::from_utf8_lossy(start);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| cut(&line))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_LIMIT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

fn milliseconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse::<f64>().ok()? / 1e3).ok()
}

/// The time until a date, measured by the provider's own clock where it told it.
fn until(date: &str, provider_now: Option<&str>, now: Timestamp) -> Option<Duration> {
    let parse = |text: &str| Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp());
    let start = provider_now.and_then(parse).unwrap_or(now);
    Duration::try_from(parse(date)?.duration_since(start)).ok().or(Some(Duration::ZERO))
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
