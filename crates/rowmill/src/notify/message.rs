//! The message about a run.

use rowmill_types::{Problem, SettingVocabulary};
use serde::Serialize;

use crate::report::{BatchLaneReport, RunReport, RunSummary};
use crate::spec::RunSpec;

/// The message about a run that has ended: its summary, with what only the process knows.
#[derive(Debug, Serialize)]
pub struct RunNotification<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<BatchContent>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Summary(&'a RunSummary),
    /// A run that could not begin, or not go on.
    Stopped {
        output: String,
        status: &'static str,
        stopped_by: String,
    },
}

/// The batch jobs of a run.
#[derive(Debug, Serialize)]
struct BatchContent {
    jobs: u64,
    jobs_out: u64,
    rows_out: u64,
    reserved_usd: rowmill_types::Money,
    saved_usd: rowmill_types::Money,
}

impl<'a> RunNotification<'a> {
    /// The message about a run with this report.
    #[must_use]
    pub fn of_report(report: &'a RunReport) -> Self {
        Self {
            content: Content::Summary(&report.summary),
            exit_code: report.exit as u8,
            batch: report.batch.as_ref().map(batch_content),
        }
    }

    /// The message about a run that could not begin, or not go on.
    pub(crate) fn of_problem(spec: &RunSpec, problem: &Problem, vocabulary: SettingVocabulary) -> Self {
        let content = Content::Stopped {
            output: spec.output.name(),
            status: "stopped",
            stopped_by: problem.message.render(vocabulary),
        };
        Self { content, exit_code: problem.exit_code() as u8, batch: None }
    }
}

fn batch_content(batch: &BatchLaneReport) -> BatchContent {
    BatchContent {
        jobs: batch.jobs.jobs,
        jobs_out: batch.jobs.submitted + batch.jobs.waiting,
        rows_out: batch.rows_out,
        reserved_usd: batch.jobs.reserved,
        saved_usd: batch.saved,
    }
}
