//! Why no answer came.

use std::error::Error;
use std::fmt;

/// Why no (complete) answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpFailure {
    /// No connection could be made; nothing was sent.
    Connect(String),
    /// The connection broke after something was sent.
    Broken(String),
    /// The connection stands but nothing came on it for too long.
    Silent(String),
}

impl fmt::Display for HttpFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(what) | Self::Broken(what) | Self::Silent(what) => out.write_str(what),
        }
    }
}

impl Error for HttpFailure {}

impl From<reqwest::Error> for HttpFailure {
    fn from(error: reqwest::Error) -> Self {
        if error.is_connect() { Self::Connect(root_cause(&error)) } else { Self::Broken(root_cause(&error)) }
    }
}

impl From<hyper_util::client::legacy::Error> for HttpFailure {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        if error.is_connect() { Self::Connect(root_cause(&error)) } else { Self::Broken(root_cause(&error)) }
    }
}

impl From<hyper::Error> for HttpFailure {
    fn from(error: hyper::Error) -> Self {
        Self::Broken(root_cause(&error))
    }
}

/// The innermost cause, which is the part a person can act on.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
