//! What stops a command, told so that a person can act on it.

use std::fmt;

use crate::{ExitCode, ProblemCode};

/// Why a command could not start or had to stop: what was wrong, where, and
/// what to do next.
///
/// ```
/// # use rowmill_types::{Problem, ProblemCode};
/// let problem = Problem::new(ProblemCode::InputNotFound, "input file not found: `rows.jsonl`")
///     .hint("check the path given to `--input`");
/// assert_eq!(problem.to_string(), "input file not found: `rows.jsonl`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The permanent code; the error index explains it.
    pub code: ProblemCode,
    /// What was wrong and where.
    pub message: String,
    /// The underlying cause, where another system reported one.
    pub cause: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem with a message.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), cause: None, hint: None }
    }

    /// Adds what another system reported.
    #[must_use]
    pub fn cause(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// How the process ends when this is what stopped it.
    #[must_use]
    pub fn exit(&self) -> ExitCode {
        match self.code {
            ProblemCode::Usage => ExitCode::Usage,
            ProblemCode::Interrupted => ExitCode::Interrupted,
            ProblemCode::DeadlinePassed => ExitCode::LimitReached,
            _ => ExitCode::Stopped,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}
