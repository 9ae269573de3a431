//! The error body of a provider, in any format.

use std::time::Duration;

use serde_json::Value;

use crate::call_error::{MESSAGE_LIMIT, cut_message};
use crate::duration_words;

/// The error body of a provider, in any format.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ErrorBody {
    /// The message.
    pub(crate) message: Option<String>,
    /// The code, or else the type.
    pub(crate) code: Option<String>,
    /// All words that can indicate the kind of error, in lower case.
    pub(crate) words: String,
    /// An HTTP status in the body.
    pub(crate) status: Option<u16>,
    /// The wait that the body asks for.
    pub(crate) retry_after: Option<Duration>,
    /// When a limit is reset, in OpenRouter's format: a header inside the body.
    pub(crate) reset: Option<String>,
    /// Whether a daily quota is used up, as reported by Google.
    pub(crate) day_used_up: bool,
}

impl ErrorBody {
    /// Parses an error body; one that is not JSON becomes the message itself.
    pub(crate) fn parse(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::from_value(&value),
            Err(_) => Self { message: plain_text(body), ..Self::default() },
        }
    }

    /// Parses the value of an `error` field.
    pub(crate) fn from_error_field(error: &str) -> Self {
        Self::parse(format!("{{\"error\":{error}}}").as_bytes())
    }

    /// An error with only a code and a message.
    pub(crate) fn from_code(code: &str, message: &str) -> Self {
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
        let details = GoogleErrorDetails::read(inner, &mut words);
        let is_word = |code: &String| code.parse::<u16>().is_err();
        let code = by_code.clone().filter(is_word).or(by_type).or(by_status.filter(is_word)).or(by_code);
        Self {
            message,
            code,
            words: words.to_lowercase(),
            status,
            retry_after: details.retry_after,
            reset: inner.pointer("/metadata/headers/X-RateLimit-Reset").and_then(text),
            day_used_up: details.day_used_up,
        }
    }

    pub(crate) fn contains_any(&self, any: &[&str]) -> bool {
        any.iter().any(|word| self.words.contains(word))
    }
}

/// The `details` of Google's errors.
#[derive(Debug, Default)]
struct GoogleErrorDetails {
    retry_after: Option<Duration>,
    day_used_up: bool,
}

impl GoogleErrorDetails {
    /// Parses them; reasons are appended to `words`.
    fn read(error: &Value, words: &mut String) -> Self {
        let mut read = Self::default();
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            let delay = || duration_words::leading(detail.get("retryDelay")?.as_str()?);
            read.retry_after = read.retry_after.or_else(|| delay().map(|(span, _)| span));
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                words.push(' ');
                words.push_str(reason);
            }
            let violations = detail.get("violations").and_then(Value::as_array);
            let mut quotas = violations.into_iter().flatten().filter_map(|one| one.get("quotaId")?.as_str());
            read.day_used_up |= quotas.any(|quota| quota.contains("PerDay"));
        }
        read
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
pub(crate) fn plain_text(body: &[u8]) -> Option<String> {
    let start = body.get(..body.len().min(4 * MESSAGE_LIMIT)).unwrap_or_default();
    let text = String::from_utf8_lossy(start);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| cut_message(&line))
}
