//! What is kept of a run in the batch lane for its user.

use std::path::{Path, PathBuf};

use rowmill_store::file::WorkFolder;
use rowmill_types::settings::RESUME;
use rowmill_types::{Money, Problem, ProblemCode};
use serde::{Deserialize, Serialize};

use super::job_info::{BatchJobInfo, overall_batch_state};
use crate::lane::{RecordedJobs, read_jobs};
use crate::run_storage::RunStorage;
use crate::spec::RunSpec;

/// The names of files that mark the top folder of a project.
const PROJECT_FILES: [&str; 2] = ["rowmill.toml", "agent_actions.yml"];

/// A run in the batch lane that has submitted jobs, as it was when a process last worked on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownBatchRun {
    /// The id of the run.
    pub run: String,
    /// The folder that it was started in; relative paths of its spec are resolved from it.
    pub folder: PathBuf,
    /// The top folder of the project that this folder is in.
    pub project: Option<PathBuf>,
    /// The work folder.
    pub work_folder: PathBuf,
    /// The output.
    pub output: PathBuf,
    /// The model string; empty if agent cards name the models.
    pub model: String,
    /// When its last job was submitted, in milliseconds since 1970.
    pub submitted_at_ms: i64,
    /// Whether it goes on.
    pub state: KnownRunState,
    /// Its rows.
    pub rows: BatchRunRowCounts,
    /// What it has spent.
    pub spent_usd: Money,
    /// Its jobs.
    pub jobs: Vec<BatchJobInfo>,
    /// Its spec; missing if it contains a credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) spec: Option<serde_json::Value>,
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownRunState {
    /// Rows are still to be worked on.
    Open,
    /// Its jobs were cancelled by the user; rows that they had not finished are not sent again by themselves.
    Cancelled,
    /// Every row has a result or an error.
    Ended,
}

/// The rows of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchRunRowCounts {
    /// Rows that the run selects.
    pub selected: u64,
    /// Rows that failed.
    pub failed: u64,
    /// Rows without a result.
    pub out: u64,
}

impl KnownBatchRun {
    /// The one state that describes all jobs of the run, as last seen.
    #[must_use]
    pub fn overall_job_state(&self) -> &str {
        overall_batch_state(&self.jobs)
    }

    /// What its jobs may still cost.
    #[must_use]
    pub fn reserved_cost(&self) -> Money {
        self.jobs.iter().map(BatchJobInfo::reserved_cost).sum()
    }

    /// Its spec, as it goes on: existing results are kept.
    ///
    /// # Errors
    ///
    /// The spec was not kept, because it contains a credential, or is that of another version.
    pub fn spec(&self) -> Result<RunSpec, Problem> {
        let Some(spec) = &self.spec else {
            let message =
                format!("the spec of run `{}` is not kept, because it contains a credential", self.run);
            return Err(Problem::new(ProblemCode::UnknownBatch, message)
                .hint(format!("repeat the command of the run with {RESUME}")));
        };
        RunSpec::from_json(&spec.to_string(), &format!("the spec of run {}", self.run))
    }

    /// The file with the results that are there while rows are out: a table is written at the end of the run, and until
    /// then there are only its envelopes.
    #[must_use]
    pub fn results_so_far(&self) -> PathBuf {
        let envelopes = WorkFolder::envelopes_path_in(&self.work_folder);
        if envelopes.is_file() { envelopes } else { self.output.clone() }
    }

    /// Its jobs as they are in its ledger, as long as there is one.
    pub(super) fn recorded_jobs(&self) -> Option<RecordedJobs> {
        let store = RunStorage::look_at(&self.work_folder).store;
        let is_same = store.header().ok().flatten().is_some_and(|header| header.run == self.run);
        if !is_same {
            return None;
        }
        let recorded = read_jobs(&*store).ok()?;
        (!recorded.jobs.jobs().is_empty()).then_some(recorded)
    }

    /// Takes over what its ledger says of its jobs: a process may have been killed before it updated what is known.
    pub(super) fn refresh(&mut self) {
        if let Some(recorded) = self.recorded_jobs() {
            self.jobs = recorded.jobs.jobs().iter().map(BatchJobInfo::of).collect();
        }
    }

    pub(super) fn has_job(&self, id: &str) -> bool {
        self.jobs.iter().any(|job| job.id.as_deref() == Some(id))
    }
}

/// The top folder of the project that a folder is in: the nearest one upward with a file of a project.
pub(super) fn project_of(folder: &Path) -> Option<PathBuf> {
    let is_top = |folder: &&Path| PROJECT_FILES.iter().any(|name| folder.join(name).is_file());
    folder.ancestors().find(is_top).map(Path::to_owned)
}
