//! Why a request is rejected.

use serde_json::Value;

use crate::outgoing_answer::Headers;

/// Why a request is rejected, before it is written in the vendor's format.
#[derive(Debug, Clone)]
pub(crate) struct RequestRefusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    /// The vendor's code, if it differs from the one that follows from the status.
    pub(crate) code: Option<&'static str>,
    /// The vendor's kind of error, if it differs likewise.
    pub(crate) kind: Option<&'static str>,
    /// Details that Google adds.
    pub(crate) details: Vec<Value>,
    pub(crate) headers: Headers,
}

impl RequestRefusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        let (details, headers) = (Vec::new(), Headers::new());
        Self { status, message: message.into(), code: None, kind: None, details, headers }
    }

    /// The vendors' usual message for an error status.
    pub(crate) fn from_status(status: u16) -> Self {
        let message = match status {
            429 => "Rate limit reached.",
            401 | 403 => "The credential was refused.",
            404 => "Not found.",
            529 => "Overloaded",
            500.. => "The server had an error while processing your request.",
            _ => "The request was refused.",
        };
        Self::new(status, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }
}
