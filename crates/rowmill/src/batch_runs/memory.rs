//! Remembers a run for its user, so that it is found from any folder.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use rowmill_core::jobs::JobRecord;
use rowmill_types::Money;

use super::job_info::{BatchJobInfo, BatchJobProgress};
use super::known_run::{BatchRunRowCounts, KnownBatchRun, KnownRunState, project_of};
use super::registry::KnownBatchRuns;
use crate::control::{RunControl, RunNotice};
use crate::lane::{BatchContinuationMode, LaneOptions};
use crate::report::RunReport;
use crate::spec::{ExistingOutput, RunSpec};

/// Keeps what is known of a run up to date. That it cannot is a warning.
#[derive(Debug)]
pub(crate) struct RunMemory {
    runs: Option<KnownBatchRuns>,
    control: RunControl,
    /// The run before anything is known of it.
    blank: KnownBatchRun,
    scope: BatchContinuationMode,
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    /// What is in the file.
    known: Option<KnownBatchRun>,
    /// Rows that had failed before this process and stay as they are.
    failed_before: Option<u64>,
    has_warned: bool,
}

impl RunMemory {
    /// For a run of this spec; nothing is written before the run has jobs.
    pub(crate) fn new(spec: &RunSpec, work_folder: &Path, control: &RunControl) -> Self {
        let folder = std::path::absolute(".").unwrap_or_default();
        let blank = KnownBatchRun {
            run: String::new(),
            project: project_of(&folder),
            work_folder: full(work_folder),
            output: full(Path::new(&spec.output.name())),
            folder,
            model: spec.work.model.clone(),
            submitted_at_ms: 0,
            state: KnownRunState::Open,
            rows: BatchRunRowCounts::default(),
            spent_usd: Money::ZERO,
            jobs: Vec::new(),
            spec: kept_spec(spec, control),
        };
        Self {
            runs: KnownBatchRuns::of_user(&control.environment),
            control: control.clone(),
            blank,
            scope: spec.work.lane.scope,
            state: Mutex::default(),
        }
    }

    /// Remembers the run as it is after a pass.
    pub(crate) fn remember(&self, report: &RunReport, jobs: &[JobRecord]) {
        let Some(runs) = &self.runs else { return };
        let run = &report.summary.run;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = report.resumed.map_or(0, |rows| rows.given_up + rows.undecided);
        let failed_before = *state.failed_before.get_or_insert(before);
        let is_new = state.known.is_none();
        let known = state.known.take().or_else(|| runs.read(run));
        if known.is_none() && jobs.is_empty() {
            return;
        }
        if is_new {
            runs.forget_old(now_ms());
        }
        let numbers = &report.summary.numbers;
        let rows = BatchRunRowCounts {
            selected: numbers.selected_rows,
            failed: numbers.failed_rows + failed_before,
            out: report.parked_rows,
        };
        let over = report.stopped.is_none() && report.parked_rows == 0;
        let known = KnownBatchRun {
            run: run.clone(),
            state: match self.scope {
                _ if over => KnownRunState::Ended,
                BatchContinuationMode::Cancel => KnownRunState::Cancelled,
                BatchContinuationMode::All | BatchContinuationMode::Collect => KnownRunState::Open,
            },
            rows,
            spent_usd: report.spent.cost,
            submitted_at_ms: known.as_ref().map_or_else(now_ms, |known| known.submitted_at_ms),
            jobs: known.map(|known| known.jobs).unwrap_or_default(),
            ..self.blank.clone()
        };
        self.store(&mut state, known, jobs);
        if over && let Some(mut known) = state.known.take() {
            // The last pass of a finished run is recorded nowhere else.
            known.jobs.iter_mut().for_each(|job| job.progress = BatchJobProgress::Collected);
            self.store(&mut state, known, &[]);
        }
    }

    /// Remembers what has become of the jobs of the run.
    pub(crate) fn remember_jobs(&self, jobs: &[JobRecord]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = state.known.take() else { return };
        self.store(&mut state, known, jobs);
    }

    /// The provider's ids of all jobs that are known, of whichever run.
    pub(crate) fn ids_of_all_jobs(&self) -> HashSet<String> {
        let mut ids = HashSet::new();
        for mut known in self.runs.iter().flat_map(KnownBatchRuns::all) {
            known.refresh();
            ids.extend(known.jobs.into_iter().filter_map(|job| job.id));
        }
        ids
    }

    fn store(&self, state: &mut MemoryState, mut known: KnownBatchRun, jobs: &[JobRecord]) {
        let Some(runs) = &self.runs else { return };
        if !jobs.is_empty() {
            let before = submitted(&known);
            known.jobs = jobs.iter().map(BatchJobInfo::of).collect();
            if submitted(&known) > before {
                known.submitted_at_ms = now_ms();
            }
        }
        if runs.read(&known.run).as_ref() != Some(&known)
            && let Err(error) = runs.store(&known)
            && !std::mem::replace(&mut state.has_warned, true)
        {
            (self.control.notice)(RunNotice::warning(format!(
                "the run cannot be remembered for later commands on its batch jobs: {error}"
            )));
        }
        state.known = Some(known);
    }
}

/// The number of jobs that the provider has, or had.
fn submitted(known: &KnownBatchRun) -> usize {
    known.jobs.iter().filter(|job| job.id.is_some()).count()
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

fn full(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The spec as it goes on later; `None` if it contains a credential.
fn kept_spec(spec: &RunSpec, control: &RunControl) -> Option<serde_json::Value> {
    let mut spec = spec.clone();
    spec.existing = ExistingOutput::Resume;
    spec.work.lane = LaneOptions { detach: false, scope: BatchContinuationMode::All, ..spec.work.lane };
    if spec.notify.has_credential() {
        return None;
    }
    let text = spec.to_json().ok()?;
    match control.environment.redact(&text) {
        Cow::Borrowed(same) if same == text => serde_json::from_str(&text).ok(),
        _ => None,
    }
}
