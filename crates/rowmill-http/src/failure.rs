//! Why no response arrived.

use std::error::Error;
use std::fmt;

use rowmill_types::is_open_file_limit;

/// Why no (complete) response arrived. If the text mentions a setting, `rowmill_types::DiagnosticText` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpFailure {
    /// No connection could be made; nothing was sent.
    Connect(String),
    /// This machine allows no more open files, so no connection could be made.
    TooManyOpenFiles(String),
    /// The connection broke after something was sent.
    Broken(String),
    /// The connection is open but nothing arrived on it for too long.
    TimedOut(String),
}

impl fmt::Display for HttpFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(what)
            | Self::TooManyOpenFiles(what)
            | Self::Broken(what)
            | Self::TimedOut(what) => out.write_str(what),
        }
    }
}

impl Error for HttpFailure {}

impl HttpFailure {
    /// Why a connection could not be made.
    #[must_use]
    pub fn connecting(error: &(dyn Error + 'static)) -> Self {
        if is_open_files(error) {
            Self::TooManyOpenFiles(root_cause(error))
        } else {
            Self::Connect(root_cause(error))
        }
    }
}

/// Whether the cause is the limit on open files, of the process or of the system.
fn is_open_files(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(is_open_file_limit) {
            return true;
        }
        cause = error.source();
    }
    false
}

impl From<reqwest::Error> for HttpFailure {
    fn from(error: reqwest::Error) -> Self {
        if error.is_connect() { Self::connecting(&error) } else { Self::Broken(root_cause(&error)) }
    }
}

impl From<hyper_util::client::legacy::Error> for HttpFailure {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        if error.is_connect() { Self::connecting(&error) } else { Self::Broken(root_cause(&error)) }
    }
}

impl From<hyper::Error> for HttpFailure {
    fn from(error: hyper::Error) -> Self {
        Self::Broken(root_cause(&error))
    }
}

/// The innermost cause, which is the part that users can act on.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_open_files_is_no_failure_of_the_other_side() {
        let error = std::io::Error::from_raw_os_error;
        assert!(matches!(HttpFailure::connecting(&error(24)), HttpFailure::TooManyOpenFiles(_)));
        assert!(matches!(HttpFailure::connecting(&error(111)), HttpFailure::Connect(_)));
    }
}
