//! Calls that got no answer, and whether they may have run.

use std::error::Error;

use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use rowmill_core::known_secrets::strip_address_secrets;

use super::http::was_refused_unread;

/// A call without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LostCall {
    /// The connection is no longer usable.
    Broken {
        /// What happened.
        why: String,
        /// Whether the tool may have run.
        maybe_ran: bool,
    },
    /// No answer came in time.
    TimedOut {
        /// Whether the tool may have run.
        maybe_ran: bool,
    },
    /// The server's response is not a valid answer; a new connection would not change that.
    Refused {
        /// The server's message.
        why: String,
        /// Whether the tool may have run.
        maybe_ran: bool,
    },
}

impl LostCall {
    pub(super) fn broken(why: impl Into<String>, maybe_ran: bool) -> Self {
        Self::Broken { why: why.into(), maybe_ran }
    }
}

/// The failure for a failed transmission. `left` says whether the request had been sent, as far as the
/// transport knows.
pub(super) fn failed_to_send(error: &DynamicTransportError, left: bool) -> LostCall {
    let Some(failure) = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() else {
        return LostCall::broken(error_chain(error.error.as_ref()), left);
    };
    let refused = |why: &str, maybe_ran| LostCall::Refused { why: why.to_owned(), maybe_ran };
    match failure {
        StreamableHttpError::AuthRequired(_) => {
            refused("the server refuses the credential (HTTP 401)", false)
        }
        StreamableHttpError::InsufficientScope(_) => refused("the server forbids it (HTTP 403)", false),
        StreamableHttpError::Auth(error) => refused(&format!("no token: {}", error_chain(error)), false),
        StreamableHttpError::HttpStatus(status) if status.status == 429 => {
            refused("the server limits requests (HTTP 429)", false)
        }
        // A status below 500 means that the server did not start the call.
        StreamableHttpError::UnexpectedServerResponse(text) => refused(text, !text.starts_with("HTTP ")),
        StreamableHttpError::UnexpectedContentType(_) => refused(&error_chain(failure), left),
        failure => LostCall::broken(
            strip_address_secrets(&error_chain(failure)),
            left && !was_refused_unread(failure),
        ),
    }
}

/// An error with its causes, without repetitions.
pub(super) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}
