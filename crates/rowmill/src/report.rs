//! The report of a run, for people, programs and the shell.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rowmill_core::history::AnsweredRowUsage;
use rowmill_core::limits::{MinuteLimits, Spend};
use rowmill_core::ports::RunJobCounts;
use rowmill_core::resume::ResumeCounts;
use rowmill_core::summary::{FailureExample, FailureGroup, SummaryNumbers};
use rowmill_engine::StopCause;
use rowmill_types::{ExitCode, Money};
use serde::Serialize;

/// The report of a run that has ended.
#[derive(Debug)]
pub struct RunReport {
    /// The summary.
    pub summary: RunSummary,
    /// The exit code for the process.
    pub exit: ExitCode,
    /// Why the run ended before its input did, if it did.
    pub stopped: Option<StopCause>,
    /// Rows whose calls were aborted; a resume sends them again.
    pub unknown_rows: u64,
    /// An example of a failed row for each group of equal failures.
    pub failure_examples: BTreeMap<FailureGroup, FailureExample>,
    /// The usage and times of rows, for estimates of later runs.
    pub history: AnsweredRowUsage,
    /// The limits of the model per minute, as far as known.
    pub limits: MinuteLimits,
    /// What was done to the output once the last row had ended.
    pub output: OutputChanges,
    /// What a resume found before it started.
    pub resumed: Option<ResumeCounts>,
    /// The work folder, if something is kept in it.
    pub kept: Option<PathBuf>,
    /// The corrections that a resume takes only if it may accept changes.
    pub noticed: NoticedCorrections,
    /// Rows that wait for batch jobs.
    pub parked_rows: u64,
    /// What the run and its earlier parts spent, or may have.
    pub spent: Spend,
    /// The batch jobs of the run, if it used the batch lane.
    pub batch: Option<BatchLaneReport>,
}

/// The corrections of what the user provided that a resume takes for a change of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticedCorrections {
    /// Another content of the input: not if rows have ids, and not of a stream.
    pub input: bool,
    /// Another template: not as long as no row is ok.
    pub template: bool,
}

/// The batch jobs of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLaneReport {
    /// How many times requests were put into jobs: once, and again for retries, repairs and further turns.
    pub rounds: u32,
    /// What the jobs are doing.
    pub jobs: RunJobCounts,
    /// Rows that wait for jobs.
    pub rows_out: u64,
    /// What the answers would have cost more as live calls.
    pub saved: Money,
    /// Answers that were paid for, and that no row wanted.
    pub unused: UnusedAnswers,
    /// What earlier processes had spent on the run.
    pub spent_before: Money,
    /// Whether the jobs of the run were cancelled, so that its remaining rows are not sent by themselves.
    pub is_cancelled: bool,
}

/// Answers of batch jobs that were paid for, and that no row wanted: their rows were changed or removed meanwhile, or
/// the settings were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnusedAnswers {
    /// The number of answers.
    pub answers: u64,
    /// What they cost.
    pub cost: Money,
}

/// What was done to an output once the last row had ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputChanges {
    /// Rows whose position in the input changed, and so their position in the output.
    pub moved_rows: u64,
    /// Rows that are no longer in the input, whose envelopes were kept.
    pub removed_rows: u64,
    /// Rows that are no longer in the input, whose envelopes were dropped.
    pub dropped_rows: u64,
    /// Whether the output was changed during the run, so that it was rebuilt from the ledger.
    pub made_whole: bool,
    /// Where the changed file is now, if it had lines that are not envelopes.
    pub set_aside: Option<PathBuf>,
}

/// The summary of a run, in the documented order.
#[derive(Debug, Clone, Serialize)]
pub struct RunSummary {
    /// The id of the run.
    pub run: String,
    /// The model string.
    pub model: String,
    /// The source of the rows.
    pub input: String,
    /// The destination of the envelopes.
    pub output: String,
    /// The source of the schema.
    pub schema: Option<String>,
    /// The pydantic model that the schema comes from.
    pub schema_model: Option<String>,
    /// The source of the instruction.
    pub instruction: Option<String>,
    /// The sources of the agent cards, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agent_card: Vec<String>,
    /// The agent that worked on the rows, if a card describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The names of the template's variables.
    pub variables: Vec<String>,
    /// The source of the template; `<default>` or `<inline>` if there is no file.
    pub template: String,
    /// `text` or `structured`.
    pub output_mode: &'static str,
    /// The folder of traces, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export_traces: Option<String>,
    /// Rows worked on at once: `auto`, or the maximum number.
    pub parallel: serde_json::Value,
    /// The start time in UTC.
    pub started_at: String,
    /// The end time in UTC.
    pub completed_at: String,
    /// How the run ended: `finished`, `interrupted`, `max_errors`, `max_error_rate`, `deadline`,
    /// `budget`, `first_result`, `submitted`, `cancelled` or `stopped`.
    pub status: &'static str,
    /// Why the run was stopped, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// Rows whose calls were aborted.
    pub outcome_unknown_rows: u64,
    /// What the run and its earlier parts spent, or may have: interrupted calls count in full.
    pub spent_usd: Money,
    /// All counts.
    #[serde(flatten)]
    pub numbers: SummaryNumbers,
}

/// The status of the run for the summary.
pub(crate) fn run_status(stopped: Option<&StopCause>) -> &'static str {
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

/// The exit code for the process.
pub(crate) fn run_exit_code(stopped: Option<&StopCause>, failed_rows: u64) -> ExitCode {
    match stopped {
        Some(StopCause::Problem(problem)) => problem.exit_code(),
        Some(StopCause::Interrupted) => ExitCode::Interrupted,
        Some(
            StopCause::MaxErrors(_)
            | StopCause::ErrorRate { .. }
            | StopCause::Deadline(_)
            | StopCause::Budget { .. },
        ) => ExitCode::LimitReached,
        // The wanted result is there; cancelling the rest is not a failure.
        Some(StopCause::FirstResult) => ExitCode::Ok,
        None if failed_rows > 0 => ExitCode::RowsFailed,
        None => ExitCode::Ok,
    }
}
