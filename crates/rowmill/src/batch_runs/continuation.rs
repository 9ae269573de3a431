//! Works on a known run for a moment: collects, cancels, or sends again.

use rowmill_types::{Problem, ProblemCode};

use super::job_info::BatchJobProgress;
use super::known_run::{KnownBatchRun, KnownRunState};
use super::registry::KnownBatchRuns;
use crate::control::RunControl;
use crate::lane::{BatchContinuationMode, Lane, LaneOptions, RecordedJobs, remove_leftover_job_files};
use crate::notify::NotifyOptions;
use crate::report::RunReport;
use crate::run::run;
use crate::run_storage::RunStorage;
use crate::spec::ExistingOutput;

/// What is to be done with a known run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchRunAction {
    /// Collects what its jobs have finished, and submits what follows from it. Nothing is waited for.
    Collect,
    /// Cancels its jobs, and collects what they had finished by the time they end.
    CancelAndWait,
    /// Cancels its jobs without waiting for their end.
    Cancel,
    /// Sends everything that has no result again, failed rows included.
    Retry,
}

/// What has become of a known run.
#[derive(Debug)]
pub enum ContinuedRunOutcome {
    /// It was over already, and every row is ok.
    AllOk,
    /// It was over already, and some rows failed.
    SomeFailed,
    /// It has been worked on.
    Ran(Box<RunReport>),
}

/// Works on a known run. The current folder must be that of the run.
///
/// # Errors
///
/// Another process works on the run, its spec is not kept, or the run could not be continued.
pub async fn continue_batch_run(
    known: &KnownBatchRun,
    action: BatchRunAction,
    control: &RunControl,
) -> Result<ContinuedRunOutcome, Problem> {
    if action != BatchRunAction::Retry
        && let Some(outcome) = finished(known)?
    {
        tidy_finished(known, control);
        return Ok(outcome);
    }
    let mut spec = known.spec()?;
    spec.existing = ExistingOutput::Resume;
    // The caller may take several actions, and tells of their end itself.
    spec.notify = NotifyOptions::default();
    // A run that has switched to live calls sends no more jobs by itself.
    let has_switched = spec.work.lane.lane == Lane::Auto
        && known.recorded_jobs().is_some_and(|recorded| recorded.has_switched());
    let is_cancelled = known.state == KnownRunState::Cancelled || has_switched;
    let scope = match action {
        BatchRunAction::Collect if is_cancelled => BatchContinuationMode::Cancel,
        BatchRunAction::Collect => BatchContinuationMode::Collect,
        BatchRunAction::CancelAndWait | BatchRunAction::Cancel => BatchContinuationMode::Cancel,
        BatchRunAction::Retry => BatchContinuationMode::All,
    };
    let detach = action != BatchRunAction::CancelAndWait;
    spec.work.lane = LaneOptions { lane: Lane::Batch, detach, scope, ..spec.work.lane };
    let report = Box::pin(run(spec, control)).await.map_err(|problem| in_plain_words(known, problem))?;
    Ok(ContinuedRunOutcome::Ran(Box::new(report)))
}

/// A process that was killed at the very end of the run has left files of its jobs, and what was known of it before.
fn tidy_finished(known: &KnownBatchRun, control: &RunControl) {
    remove_leftover_job_files(&known.work_folder);
    if known.state == KnownRunState::Ended {
        return;
    }
    let mut ended = KnownBatchRun { state: KnownRunState::Ended, ..known.clone() };
    ended.rows.out = 0;
    ended.jobs.iter_mut().for_each(|job| job.progress = BatchJobProgress::Collected);
    if let Some(runs) = KnownBatchRuns::of_user(&control.environment) {
        // What cannot be written now only looks older than it is.
        drop(runs.store(&ended));
    }
}

/// How a run ended that is over.
fn finished(known: &KnownBatchRun) -> Result<Option<ContinuedRunOutcome>, Problem> {
    let store = RunStorage::look_at(&known.work_folder).store;
    let header = store.header()?.filter(|header| header.run == known.run);
    let all_ok = match header {
        Some(header) if header.unfinished.is_some() => return Ok(None),
        Some(header) => header.finished,
        // Its work folder was removed when it ended, or now belongs to a later run.
        None => known.rows.failed == 0,
    };
    if known
        .recorded_jobs()
        .is_some_and(|RecordedJobs { jobs, .. }| jobs.has_blocking_jobs() || jobs.has_collectable())
    {
        return Ok(None);
    }
    Ok(Some(if all_ok { ContinuedRunOutcome::AllOk } else { ContinuedRunOutcome::SomeFailed }))
}

fn in_plain_words(known: &KnownBatchRun, problem: Problem) -> Problem {
    if problem.code != ProblemCode::OutputBusy {
        return problem;
    }
    Problem::new(ProblemCode::OutputBusy, format!("another process is working on run `{}`", known.run))
        .hint("it collects the results itself; wait for it, or interrupt it: its jobs go on at the provider")
}
