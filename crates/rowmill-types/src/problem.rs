//! The reason why a command stops, worded so that users can act on it.

use std::fmt;

use crate::{DiagnosticText, ExitCode, ProblemCode, SettingVocabulary};

/// Why a command could not start or had to stop: what was wrong, where, and what to do next.
///
/// ```
/// # use rowmill_types::{Problem, ProblemCode, settings::INPUT};
/// let problem = Problem::new(ProblemCode::InputNotFound, "input file not found: `rows.jsonl`")
///     .hint(format!("check the path given to {INPUT}"));
/// assert_eq!(problem.to_string(), "input file not found: `rows.jsonl`");
/// assert_eq!(problem.hint.as_deref(), Some("check the path given to `input`"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The permanent code; the error index explains it.
    pub code: ProblemCode,
    /// What was wrong and where.
    pub message: DiagnosticText,
    /// The underlying cause, if another system reported one.
    pub cause: Option<DiagnosticText>,
    /// What to do next.
    pub hint: Option<DiagnosticText>,
}

impl Problem {
    /// A problem with a message.
    pub fn new(code: ProblemCode, message: impl Into<DiagnosticText>) -> Self {
        Self { code, message: message.into(), cause: None, hint: None }
    }

    /// Adds the cause that another system reported.
    #[must_use]
    pub fn cause(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string().into());
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<DiagnosticText>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The problem worded for an entry point.
    #[must_use]
    pub fn with_vocabulary(self, vocabulary: SettingVocabulary) -> Self {
        Self {
            code: self.code,
            message: self.message.with_vocabulary(vocabulary),
            cause: self.cause.map(|cause| cause.with_vocabulary(vocabulary)),
            hint: self.hint.map(|hint| hint.with_vocabulary(vocabulary)),
        }
    }

    /// The exit code if this problem stopped the process.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
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
