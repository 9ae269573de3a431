//! The timeouts of a request, and their error messages.

use std::time::Duration;

use rowmill_types::settings::{CONNECT_TIMEOUT, FIRST_BYTE_TIMEOUT, IDLE_TIMEOUT};
use rowmill_types::{DurationText, duration_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HttpFailure;

/// Timeouts for the steps of a call. There is no limit for the whole answer here.
///
/// ```
/// # use {rowmill_http::HttpTimeouts, std::time::Duration};
/// let timeouts = HttpTimeouts { idle: Duration::from_secs(5), ..HttpTimeouts::default() };
/// assert_eq!(timeouts.connect, Duration::from_secs(10));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpTimeouts {
    /// Connecting: name resolution, TCP and TLS together.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub connect: Duration,
    /// The head of the answer, from the start of the call.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub first_byte: Duration,
    /// Each further chunk of the answer.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub idle: Duration,
}

impl Default for HttpTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(600),
            // Models may think for minutes without sending anything, even in a stream.
            idle: Duration::from_secs(300),
        }
    }
}

impl HttpTimeouts {
    /// No connection was made in time; nothing was sent.
    #[must_use]
    pub fn connect_timeout_failure(&self) -> HttpFailure {
        HttpFailure::Connect(format!(
            "no connection within {}; allow more with {CONNECT_TIMEOUT}",
            shown(self.connect)
        ))
    }

    /// The request was sent and no response began in time.
    #[must_use]
    pub fn first_byte_timeout_failure(&self) -> HttpFailure {
        HttpFailure::TimedOut(format!(
            "no response began within {}; allow more with {FIRST_BYTE_TIMEOUT}",
            shown(self.first_byte)
        ))
    }

    /// The response began and then stalled.
    #[must_use]
    pub fn idle_timeout_failure(&self) -> HttpFailure {
        HttpFailure::TimedOut(format!(
            "the response stalled: no data for {}; allow more with {IDLE_TIMEOUT}",
            shown(self.idle)
        ))
    }
}

/// `10 s`, `1.5 s` or `50 ms`.
fn shown(span: Duration) -> String {
    if span < Duration::from_secs(1) {
        return format!("{} ms", span.as_millis());
    }
    format!("{} s", span.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use rowmill_types::DiagnosticText;

    use super::*;

    #[test]
    fn every_limit_names_itself_and_the_setting_that_raises_it() {
        let timeouts = HttpTimeouts {
            connect: Duration::from_millis(50),
            first_byte: Duration::from_millis(1500),
            idle: Duration::from_secs(60),
        };
        for (failure, expected) in [
            (
                timeouts.connect_timeout_failure(),
                "no connection within 50 ms; allow more with `connect_timeout`",
            ),
            (
                timeouts.first_byte_timeout_failure(),
                "no response began within 1.5 s; allow more with `first_byte_timeout`",
            ),
            (
                timeouts.idle_timeout_failure(),
                "the response stalled: no data for 60 s; allow more with `idle_timeout`",
            ),
        ] {
            assert_eq!(DiagnosticText::from(failure.to_string()), expected);
        }
    }
}
