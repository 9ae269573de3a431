//! The timeouts of a request, and their error messages.

use std::time::Duration;

use rowmill_types::settings::{CONNECT_TIMEOUT, FIRST_BYTE_TIMEOUT, IDLE_TIMEOUT};
use rowmill_types::{TimeText, time_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::HttpFailure;

/// How long a call waits for each of its steps. The answer as a whole has no limit here.
///
/// ```
/// # use {rowmill_http::Timeouts, std::time::Duration};
/// let timeouts = Timeouts { idle: Duration::from_secs(5), ..Timeouts::default() };
/// assert_eq!(timeouts.connect, Duration::from_secs(10));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// For a connection: name resolution, TCP and TLS together.
    #[serde(with = "time_text")]
    #[schemars(with = "TimeText")]
    pub connect: Duration,
    /// For the head of the answer, from the start of the call.
    #[serde(with = "time_text")]
    #[schemars(with = "TimeText")]
    pub first_byte: Duration,
    /// For each further piece of the answer.
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
            "no connection within {}; {CONNECT_TIMEOUT} allows more",
            shown(self.connect)
        ))
    }

    /// The request was sent and no response began in time.
    #[must_use]
    pub fn not_begun(&self) -> HttpFailure {
        HttpFailure::Silent(format!(
            "no answer began within {}; {FIRST_BYTE_TIMEOUT} allows more",
            shown(self.first_byte)
        ))
    }

    /// The response began and then stalled.
    #[must_use]
    pub fn stalled(&self) -> HttpFailure {
        HttpFailure::Silent(format!(
            "the answer stalled: nothing came for {}; {IDLE_TIMEOUT} allows more",
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
            (timeouts.not_connected(), "no connection within 50 ms; `connect_timeout` allows more"),
            (timeouts.not_begun(), "no answer began within 1.5 s; `first_byte_timeout` allows more"),
            (timeouts.stalled(), "the answer stalled: nothing came for 60 s; `idle_timeout` allows more"),
        ] {
            assert_eq!(Words::from(failure.to_string()), expected);
        }
    }
}
