//! Why a task failed.

use std::fmt;
use std::io;

/// An error message that a person can act on.
#[derive(Debug)]
pub struct TaskFailure(String);

impl TaskFailure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// For `map_err`: puts the attempted action before the system's error.
    pub(crate) fn context<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Self {
        move |error| Self(format!("{what}: {error}"))
    }
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for TaskFailure {}

impl From<io::Error> for TaskFailure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}
