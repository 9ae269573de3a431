//! Ends a run in the batch lane, or a part of it.

use std::collections::HashSet;
use std::path::Path;

use rowmill_core::jobs::JobRecord;
use rowmill_core::stats::round_to_three_decimals;
use rowmill_engine::StopCause;
use rowmill_types::ExitCode;

use super::job_files::JobPaths;
use super::journal::{RecordedJobs, read_jobs};
use super::lane_state::BatchLane;
use super::options::BatchContinuationMode;
use super::waiting::WaitEnd;
use crate::report::{BatchLaneReport, RunReport};
use crate::run::timestamp_text;
use crate::run_storage::RunStorage;

/// Removes the files of jobs that a process left which was ended at the very end of a run.
pub(crate) fn remove_leftover_job_files(work_folder: &Path) {
    let paths = JobPaths::in_work_folder(work_folder);
    if !paths.folder().exists() {
        return;
    }
    // Whoever holds the lock works on a later run, whose files these are.
    let Ok(storage) = RunStorage::open_locked(work_folder) else { return };
    let Ok(RecordedJobs { jobs, .. }) = read_jobs(&*storage.store) else { return };
    if jobs.has_blocking_jobs() || jobs.has_collectable() {
        return;
    }
    paths.remove_all();
    // The folder is removed only if nothing else is in it.
    drop(std::fs::remove_dir(work_folder));
}

impl BatchLane {
    /// The report of a run that is complete: nothing of the lane is needed any more.
    pub(super) fn finish(&self, report: RunReport, folder: &Path) -> RunReport {
        let mut report = self.report(report, WaitEnd::Results);
        if report.parked_rows > 0 {
            return report;
        }
        self.paths.remove_all();
        // The folder is removed only if nothing else is in it.
        if std::fs::remove_dir(folder).is_ok() {
            report.kept = None;
        }
        report
    }

    /// Removes what was made for a run that did not start.
    pub(super) fn discard_unstarted(&self, folder: &Path) {
        if matches!(self.storage.store.header(), Ok(None)) {
            self.paths.remove_all();
            // The folder is removed only if nothing else is in it.
            drop(std::fs::remove_dir(folder));
        }
    }

    pub(super) fn report(&self, mut report: RunReport, end: WaitEnd) -> RunReport {
        let counts = self.job_counts();
        let state = self.lock();
        let is_out = state.jobs.has_blocking_jobs() || state.jobs.has_collectable();
        let (started, began) = self.started;
        report.summary.started_at = timestamp_text(started);
        report.summary.numbers.duration_ms = round_to_three_decimals(began.elapsed().as_secs_f64() * 1_000.0);
        let is_cancelled = self.scope == BatchContinuationMode::Cancel && report.parked_rows > 0;
        report.batch = Some(BatchLaneReport {
            rounds: rounds_with_jobs(state.jobs.jobs()),
            jobs: counts,
            rows_out: report.parked_rows,
            saved: state.saved,
            unused: state.unused,
            spent_before: state.spent_before.unwrap_or_default().cost,
            is_cancelled,
        });
        if is_cancelled && report.stopped.is_none() {
            report.exit = ExitCode::Interrupted;
            report.summary.status = "cancelled";
        }
        if report.stopped.is_none()
            && report.parked_rows > 0
            && let Some(worst) = state.reserve.refused().filter(|_| !is_out)
        {
            report.stopped = Some(StopCause::Budget { spent: report.spent, worst });
            report.exit = ExitCode::LimitReached;
            report.summary.status = "budget";
        }
        let is_paid = state.jobs.has_paid_jobs();
        if end == WaitEnd::Stopped && is_out && !is_paid {
            // Nothing goes on anywhere.
            report.stopped.get_or_insert(StopCause::Interrupted);
            report.exit = ExitCode::Interrupted;
            report.summary.status = "interrupted";
        }
        let waits = end == WaitEnd::Detached || end == WaitEnd::Stopped && is_paid;
        if waits && is_out && matches!(report.stopped, None | Some(StopCause::Interrupted)) {
            report.stopped = None;
            report.exit = ExitCode::Submitted;
            report.summary.status = "submitted";
        }
        if matches!(report.stopped, Some(StopCause::Deadline(_))) {
            report.exit = ExitCode::LimitReached;
            report.summary.status = "deadline";
        }
        drop(state);
        self.remember(&report);
        report
    }
}

/// The number of passes in which jobs were made.
fn rounds_with_jobs(jobs: &[JobRecord]) -> u32 {
    let rounds: HashSet<u32> = jobs.iter().map(|job| job.round).collect();
    u32::try_from(rounds.len()).unwrap_or(u32::MAX)
}
