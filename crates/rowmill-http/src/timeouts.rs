//! The timeouts of a request, and their error messages.

use std::time::Duration;

use rowmill_types::settings::{CONNECT_TIMEOUT, FIRST_BYTE_TIMEOUT, IDLE_TIMEOUT};
use rowmill_types::{TimeText, time_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HttpFailure;

/// Timeouts for the steps of a call. There is no limit for the whole answer here.
///
/// ```
/// # use {rowmill_http::Timeouts, std::time::Duration};
/// let timeouts = Timeouts { idle: Duration::from_secs(5), ..Timeouts::default() };
/// assert_eq!(timeouts.connect, Duration::from_secs(10));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Connecting: name resolution, TCP and TLS together.
    #[serde(with = "time_text")]
    #[schemars(with = "TimeText")]
    pub connect: Duration,
    /// The head of the answer, from the start of the call.
    #[serde(with = "time_text")]
    #[schemars(with = "TimeText")]
    pub first_byte: Duration,
    /// Each further chunk of the answer.
    #[serde(with = "time_text")]
    #[schemars(with = "TimeText")]
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(600),
            // Models may think for minutes without sending anything, even in a stream.
            idle: Duration::from_secs(300),
        }
    }
}

impl Timeouts {
    /// No connection was made in time; nothing was sent.
    #[must_use]
    pub fn not_connected(&self) -> HttpFailure {
        HttpFailure::Connect(format!(
            "no connection within {}; allow more with {CONNECT_TIMEOUT}",
            shown(self.connect)
        ))
    }

    /// The request was sent and no response began in time.
    #[must_use]
    pub fn not_begun(&self) -> HttpFailure {
        HttpFailure::Silent(format!(
            "no response began within {}; allow more with {FIRST_BYTE_TIMEOUT}",
            shown(self.first_byte)
        ))
    }

    /// The response began and then stalled.
    #[must_use]
    pub fn stalled(&self) -> HttpFailure {
        HttpFailure::Silent(format!(
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
    use rowmill_types::Words;

    use super::*;

    #[test]
    fn every_limit_names_itself_and_the_setting_that_raises_it() {
        let timeouts = Timeouts {
            connect: Duration::from_millis(50),
            first_byte: Duration::from_millis(1500),
            idle: Duration::from_secs(60),
        };
        for (failure, expected) in [
            (timeouts.not_connected(), "no connection within 50 ms; allow more with `connect_timeout`"),
            (timeouts.not_begun(), "no response began within 1.5 s; allow more with `first_byte_timeout`"),
            (timeouts.stalled(), "the response stalled: no data for 60 s; allow more with `idle_timeout`"),
        ] {
            assert_eq!(Words::from(failure.to_string()), expected);
        }
    }
}
