//! What became of a call that got no answer.

use std::error::Error;

use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::http::refused_unread;

/// A call without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// The connection is no good any more.
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
    /// The server does not want to be asked, and another connection would not change that.
    Refused {
        /// What it said.
        why: String,
    },
}

impl Lost {
    pub(super) fn broken(why: impl Into<String>, maybe_ran: bool) -> Self {
        Self::Broken { why: why.into(), maybe_ran }
    }
}

/// What a failed transmission means. `left` tells whether the request had left as far as the
/// transport knows.
pub(super) fn failed_to_send(error: &DynamicTransportError, left: bool) -> Lost {
    let Some(failure) = error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() else {
        return Lost::broken(chain(error.error.as_ref()), left);
    };
    match failure {
        StreamableHttpError::AuthRequired(_) => Lost::Refused { why: "the server refuses the credential (HTTP 401)".to_owned() },
        StreamableHttpError::InsufficientScope(_) => Lost::Refused { why: "the server forbids it (HTTP 403)".to_owned() },
        StreamableHttpError::Auth(error) => Lost::Refused { why: format!("no token: {}", chain(error)) },
        StreamableHttpError::HttpStatus(status) if status.status == 429 => {
            Lost::Refused { why: "the server limits requests (HTTP 429)".to_owned() }
        }
        failure => Lost::broken(chain(failure), left && !refused_unread(failure)),
    }
}

/// An error with its causes, each said once.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
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
