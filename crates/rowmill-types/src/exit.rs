//! The exit codes of the process.

use crate::DiagnosticText;

/// The exit codes of every command, documented in `docs/exit-codes.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ExitCode {
    /// Every row is ok.
    Ok = 0,
    /// The run could not start, or an error stopped it.
    Stopped = 1,
    /// The command line was wrong.
    Usage = 2,
    /// The run finished and some rows failed.
    RowsFailed = 3,
    /// The run stopped at a limit that the user set.
    LimitReached = 4,
    /// Batch jobs are at the provider and not finished.
    Submitted = 5,
    /// The run was interrupted.
    Interrupted = 130,
}

impl ExitCode {
    /// All codes, for the documentation.
    pub const ALL: &'static [Self] = &[
        Self::Ok,
        Self::Stopped,
        Self::Usage,
        Self::RowsFailed,
        Self::LimitReached,
        Self::Submitted,
        Self::Interrupted,
    ];

    /// The meaning of the code, for the documentation.
    #[must_use]
    pub fn meaning(self) -> DiagnosticText {
        DiagnosticText::from_template(match self {
            Self::Ok => "every row is ok",
            Self::Stopped => "the run could not start, or was stopped by an error; finished rows are kept",
            Self::Usage => "the command line was wrong; nothing was done",
            Self::RowsFailed => "the run finished, some rows failed; retry them with {resume}",
            Self::LimitReached => {
                "the run stopped at a limit you set (a budget, failed rows, a deadline); continue with {resume}"
            }
            Self::Submitted => {
                "batch jobs are submitted and not finished; collect them with `rowmill batch retrieve`, or continue with {resume}"
            }
            Self::Interrupted => "the run was interrupted; continue with {resume}",
        })
    }
}
