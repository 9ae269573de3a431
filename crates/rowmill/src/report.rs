//! What a run came to, for people, programs and the shell.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rowmill_core::history::History;
use rowmill_core::limits::RateFlags;
use rowmill_core::resume::ResumeCounts;
use rowmill_core::summary::{FailureExample, FailureGroup, Numbers};
use rowmill_engine::StopCause;
use rowmill_types::ExitCode;
use serde::Serialize;

/// How a run ended.
#[derive(Debug)]
pub struct RunReport {
    /// What it came to.
    pub summary: RunSummary,
    /// How the process should end.
    pub exit: ExitCode,
    /// Why it ended before its input did, if it did.
    pub stopped: Option<StopCause>,
    /// Rows whose calls were aborted; a resume sends them again.
    pub unknown_rows: u64,
    /// A failed row of each group of failures that say the same.
    pub failure_examples: BTreeMap<FailureGroup, FailureExample>,
    /// What rows used, to estimate another run.
    pub history: History,
    /// The limits of the model that are known by now, per minute.
    pub limits: RateFlags,
    /// What was done to the output once the last row had ended.
    pub output: OutputChanges,
    /// What a resume found before it began.
    pub resumed: Option<ResumeCounts>,
    /// The work folder, if something is kept in it.
    pub kept: Option<PathBuf>,
}

/// What was done to an output once the last row had ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputChanges {
    /// Rows that have another place in the input than before, and so in the output.
    pub moved_rows: u64,
    /// Rows that are not in the input any more, whose envelopes stay.
    pub removed_rows: u64,
    /// Rows that are not in the input any more, whose envelopes were left out.
    pub dropped_rows: u64,
    /// Whether somebody had changed it meanwhile, so that it was rebuilt from the ledger.
    pub made_whole: bool,
    /// Where the changed file is now, if it had lines that are no envelopes.
    pub set_aside: Option<PathBuf>,
}

/// The summary of a run, in the documented order.
#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    /// The id of the run.
    pub run: String,
    /// The model string.
    pub model: String,
    /// Where rows came from.
    pub input: String,
    /// Where envelopes went.
    pub output: String,
    /// The source of the schema.
    pub schema: Option<String>,
    /// The pydantic model that gave the schema.
    pub schema_model: Option<String>,
    /// The source of the instruction.
    pub instruction: Option<String>,
    /// The sources of the agent cards, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agent_card: Vec<String>,
    /// The agent that worked on the rows, where a card describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The names of its variables.
    pub variables: Vec<String>,
    /// The source of the template; `<default>` or `<inline>` where there is none.
    pub template: String,
    /// `text` or `structured`.
    pub output_mode: &'static str,
    /// The folder of traces, if they were wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export_traces: Option<String>,
    /// Rows worked on at once: `auto`, or so many at most.
    pub parallel: serde_json::Value,
    /// When it started, UTC.
    pub started_at: String,
    /// When it ended, UTC.
    pub completed_at: String,
    /// How it ended: `finished`, `interrupted`, `max_errors`, `max_error_rate`, `deadline`,
    /// `budget`, `first_result` or `stopped`.
    pub status: &'static str,
    /// Why it was stopped, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// Rows whose calls were aborted.
    pub outcome_unknown_rows: u64,
    /// What the run and its earlier parts spent, or may have: calls that were cut count in full.
    pub spent_usd: rowmill_types::Money,
    /// What was counted.
    #[serde(flatten)]
    pub numbers: Numbers,
}

/// How the run ended, for the summary.
pub(crate) fn status(stopped: Option<&StopCause>) -> &'static str {
    match stopped {
        None => "finished",
        Some(StopCause::Interrupted) => "interrupted",
        Some(StopCause::MaxErrors(_)) => "max_errors",
        Some(StopCause::ErrorRate { .. }) => "max_error_rate",
        Some(StopCause::Deadline(_)) => "deadline",
        Some(StopCause::Budget { .. }) => "budget",
        Some(StopCause::FirstResult) => "first_result",
        Some(StopCause::Problem(_)) => "stopped",
    }
}

/// How the process should end.
pub(crate) fn exit_code(stopped: Option<&StopCause>, failed_rows: u64) -> ExitCode {
    match stopped {
        Some(StopCause::Problem(problem)) => problem.exit(),
        Some(StopCause::Interrupted) => ExitCode::Interrupted,
        Some(
            StopCause::MaxErrors(_)
            | StopCause::ErrorRate { .. }
            | StopCause::Deadline(_)
            | StopCause::Budget { .. },
        ) => ExitCode::LimitReached,
        // What was wanted is there; that the rest was cancelled is no failure.
        Some(StopCause::FirstResult) => ExitCode::Ok,
        None if failed_rows > 0 => ExitCode::RowsFailed,
        None => ExitCode::Ok,
    }
}
