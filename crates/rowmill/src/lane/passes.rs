//! A run in the batch lane: passes over the input, and jobs in between.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::history::UsageHistory;
use rowmill_core::jobs::{JobRecord, JobStage};
use rowmill_core::ports::{JobState, LedgerPosition};
use rowmill_core::summary::RunTally;
use rowmill_engine::StopCause;
use rowmill_types::settings::{LANE, OUTPUT, RESUME};
use rowmill_types::{Money, Problem, ProblemCode};
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

use super::driver::JobDriver;
use super::failures::KnownFailures;
use super::handle::BatchLaneHandle;
use super::job_files::{JobPaths, write_problem};
use super::journal::{JobJournal, read_jobs};
use super::lane_state::{BatchLane, LaneState};
use super::options::BatchScope;
use super::outages::{OutageLimits, ProviderOutages};
use super::reserve::JobReserve;
use super::results::ResultIndex;
use super::truncated::TruncatedAnswers;
use crate::batch_runs::RunMemory;
use crate::control::{RunControl, RunNotice};
use crate::report::{RunReport, UnusedAnswers};
use crate::run::{run_on_thread, run_pass};
use crate::run_storage::RunStorage;
use crate::spec::{ExistingOutput, KeptFiles, RunSpec};

/// Why jobs are no longer waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// Rows can be worked on.
    Results,
    /// All jobs are submitted, and nobody waits for them.
    Detached,
    /// The user has stopped the run.
    Stopped,
    /// The time of the run is over.
    Deadline,
}

/// Runs a spec in the batch lane.
///
/// # Errors
///
/// The run could not start, or could not continue. Jobs that were submitted stay as they are.
pub(crate) async fn run_in_rounds(spec: RunSpec, control: &RunControl) -> Result<RunReport, Problem> {
    check_lane(&spec)?;
    let deadline = spec.work.stop_rules.deadline.map(|limit| (limit, Instant::now() + limit));
    let folder = spec.work_folder().ok_or_else(no_output_file)?;
    let lane = open_lane(&spec, &folder, control).await?;
    let done = Box::pin(work_in_rounds(spec, &lane, (&folder, deadline), control)).await;
    if done.is_err() {
        lane.discard_unstarted(&folder);
    }
    done
}

/// Makes passes and works on jobs in turn, until nothing is left to do or to wait for.
async fn work_in_rounds(
    spec: RunSpec,
    lane: &Arc<BatchLane>,
    (folder, deadline): (&Path, Option<(Duration, Instant)>),
    control: &RunControl,
) -> Result<RunReport, Problem> {
    let mut existing = spec.existing;
    let notice = each_notice_once(control.notice.clone());
    loop {
        let mut pass = spec_of_pass(&spec, existing);
        pass.work.stop_rules.deadline =
            deadline.map(|(_, end)| end.saturating_duration_since(Instant::now()));
        let stop = control.stop.child();
        lane.begin_pass(&stop)?;
        let handle = BatchLaneHandle(Some(Arc::clone(lane)));
        let pass_control = RunControl { stop, lane: handle, notice: notice.clone(), ..control.clone() };
        let report = Box::pin(run_pass(pass, &pass_control)).await?;
        existing = ExistingOutput::Resume;
        lane.notify_unused(&*notice);
        let open = lane.end_pass(&report)?;
        lane.notify_held_back(&*notice);
        if let Some(StopCause::Problem(_)) = &report.stopped {
            return Ok(lane.report(report, WaitEnd::Results));
        }
        let is_done = open.is_empty() && report.parked_rows == 0 && report.stopped.is_none();
        let keeps_events = !is_done || spec.keep_temp == KeptFiles::Ledger;
        let journal = if keeps_events { open_journal(lane, &spec).await? } else { None };
        let Some(journal) = journal else { return Ok(lane.finish(report, folder)) };
        lane.record_pass(&journal, open, &report).await?;
        let is_stopped = matches!(report.stopped, Some(StopCause::Interrupted | StopCause::Deadline(_)));
        if is_stopped {
            return Ok(lane.report(report, WaitEnd::Stopped));
        }
        if !lane.lock().jobs.has_jobs_out() {
            drop(journal);
            return Ok(lane.finish(report, folder));
        }
        lane.remember(&report);
        let limits = OutageLimits { patience: spec.work.max_outage, retries: spec.work.retries };
        let outages = ProviderOutages::new(limits);
        let mut driver = JobDriver::new(lane, &journal, control, (spec.work.lane.poll_every, outages));
        let end = wait_for_jobs(&mut driver, (&spec, control), deadline.map(|(_, end)| end)).await?;
        match end {
            WaitEnd::Results => {}
            WaitEnd::Detached | WaitEnd::Stopped => return Ok(lane.report(report, end)),
            WaitEnd::Deadline => {
                let limit = deadline.map_or(Duration::ZERO, |(limit, _)| limit);
                let stopped = Some(StopCause::Deadline(limit));
                return Ok(lane.report(RunReport { stopped, ..report }, end));
            }
        }
    }
}

/// Shows every notice once: passes have much to say that is the same.
fn each_notice_once(notice: Arc<dyn Fn(RunNotice) + Send + Sync>) -> Arc<dyn Fn(RunNotice) + Send + Sync> {
    let shown = Mutex::new(HashSet::new());
    Arc::new(move |new| {
        let (RunNotice::Info(text) | RunNotice::Warning(text) | RunNotice::SignIn(text)) = &new;
        if shown.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_string()) {
            notice(new);
        }
    })
}

/// Works on jobs until rows can be worked on, or nobody waits any more.
async fn wait_for_jobs(
    driver: &mut JobDriver<'_>,
    (spec, control): (&RunSpec, &RunControl),
    deadline: Option<Instant>,
) -> Result<WaitEnd, Problem> {
    let over = async {
        match deadline {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
    };
    let mut over = std::pin::pin!(over);
    loop {
        tokio::select! {
            biased;
            () = control.stop.wait_for_drain() => return Ok(WaitEnd::Stopped),
            () = &mut over => return Ok(WaitEnd::Deadline),
            advanced = driver.advance() => advanced?,
        }
        let has_results = driver.lane.lock().jobs.has_collectable();
        let has_unsubmitted = driver.has_jobs_to_submit();
        if has_results {
            return Ok(WaitEnd::Results);
        }
        if spec.work.lane.detach && !has_unsubmitted {
            return Ok(WaitEnd::Detached);
        }
        let wait = driver.next_wait();
        tokio::select! {
            biased;
            () = control.stop.wait_for_drain() => return Ok(WaitEnd::Stopped),
            () = &mut over => return Ok(WaitEnd::Deadline),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Checks what the batch lane needs.
fn check_lane(spec: &RunSpec) -> Result<(), Problem> {
    if spec.output.is_stdout() {
        return Err(no_output_file());
    }
    Ok(())
}

fn no_output_file() -> Problem {
    let message =
        format!("{} needs an output file: results arrive in several parts", LANE.with_value("batch"));
    Problem::new(ProblemCode::Usage, message).hint(format!("name one with {OUTPUT}"))
}

/// The spec of a pass: what the lane decides itself is switched off in the engine.
fn spec_of_pass(spec: &RunSpec, existing: ExistingOutput) -> RunSpec {
    let mut pass = spec.clone();
    pass.existing = existing;
    pass.work.agents.checkpoint_turns = true;
    // Retries are requests in a later job, and a pass makes no calls that could be limited.
    pass.work.retries = 0;
    pass.work.max_outage = Duration::ZERO;
    pass.work.budget = Default::default();
    pass
}

async fn open_lane(spec: &RunSpec, folder: &Path, control: &RunControl) -> Result<Arc<BatchLane>, Problem> {
    let memory = RunMemory::new(spec, folder, control);
    let (spec, folder) = (spec.clone(), folder.to_owned());
    run_on_thread(move || BatchLane::open(&spec, &folder, memory).map(Arc::new)).await
}

async fn open_journal(lane: &BatchLane, spec: &RunSpec) -> Result<Option<JobJournal>, Problem> {
    let (storage, durability) = (lane.storage.clone(), spec.work.durability);
    run_on_thread(move || JobJournal::open(&*storage.store, durability)).await
}

impl BatchLane {
    /// The lane of a run that begins or is resumed.
    fn open(spec: &RunSpec, folder: &Path, memory: RunMemory) -> Result<Self, Problem> {
        let paths = JobPaths::in_work_folder(folder);
        // Locked before anything is read: what another process records afterwards would not be known here.
        let storage = RunStorage::open_locked(folder)?;
        let (jobs, end) = read_jobs(&*storage.store)?;
        if !spec.existing.resumes() && jobs.may_be_at_provider() {
            return Err(jobs_out_problem());
        }
        let resumes = spec.existing.resumes();
        let (jobs, end) = if resumes { (jobs, end) } else { Default::default() };
        let paths_of_truncated = paths.truncated();
        let mut failures = KnownFailures::read(paths.failures());
        let scope = spec.work.lane.scope;
        if scope == BatchScope::All && !jobs.has_jobs_out() && !jobs.has_collectable() {
            // Every row that failed is tried again.
            failures.clear();
        }
        let started = (Timestamp::now(), Instant::now());
        let seed = format!("{}-{}-{}", folder.display(), started.0.as_nanosecond(), std::process::id());
        Ok(Self {
            storage,
            paths,
            retries: spec.work.retries,
            limits: spec.work.budget,
            prefix: format!("rowmill-{:016x}", xxh3_64(seed.as_bytes())),
            failures_final_from: if scope == BatchScope::All { end } else { LedgerPosition::START },
            started,
            scope,
            memory,
            state: Mutex::new(LaneState {
                jobs,
                endpoints: Default::default(),
                index: ResultIndex::default(),
                failures,
                truncated: TruncatedAnswers::read(paths_of_truncated),
                reserve: JobReserve::default(),
                round: 0,
                most_requests: Default::default(),
                made: 0,
                written: Vec::new(),
                problem: None,
                stop: Default::default(),
                is_first_pass: true,
                retries_earlier_failures: scope == BatchScope::All,
                saved: Money::ZERO,
                unused: UnusedAnswers::default(),
                spent_before: None,
                has_sent_a_round: false,
                held_back: None,
                earlier: None,
            }),
        })
    }

    /// Prepares a pass: what finished jobs have is found in it.
    fn begin_pass(&self, stop: &rowmill_engine::StopHandle) -> Result<(), Problem> {
        let mut state = self.lock();
        // Passes in which no job was made do not count.
        state.round = 1 + state.jobs.jobs().iter().map(|job| job.round).max().unwrap_or(0);
        state.stop = stop.clone();
        // Two indexes at once would take twice the memory.
        state.index = ResultIndex::default();
        state.index = ResultIndex::open(state.jobs.jobs(), &self.paths)?;
        let made = std::fs::create_dir_all(self.paths.folder().parent().unwrap_or(Path::new("")));
        made.and_then(|()| make_jobs_folder(self.paths.folder()))
            .map_err(|error| write_problem(self.paths.folder(), &error))?;
        // Requests of a process that was ended before it recorded their job were never sent.
        // A process that was ended after it recorded a job as collected may have left its files.
        let state = &*state;
        let is_needed = |job: &&JobRecord| !matches!(job.stage, JobStage::Collected { .. });
        let needed: HashSet<&str> =
            state.jobs.jobs().iter().filter(is_needed).map(|job| job.key.0.as_str()).collect();
        self.paths.remove_unknown(|name| needed.contains(name));
        Ok(())
    }

    /// Completes the jobs of a pass. If the pass was stopped by a problem, their rows may not be recorded as waiting for
    /// them, so they are dropped; nothing of them was sent.
    fn end_pass(&self, report: &RunReport) -> Result<Vec<JobRecord>, Problem> {
        let mut state = self.lock();
        state.is_first_pass = false;
        if let Some(problem) = state.problem.take() {
            return Err(problem);
        }
        if matches!(report.stopped, Some(StopCause::Problem(_))) {
            state.drop_new_jobs(&self.paths);
            return Ok(Vec::new());
        }
        if state.is_round_too_small() {
            state.drop_new_jobs(&self.paths);
        }
        state.complete_all()?;
        Ok(std::mem::take(&mut state.written))
    }

    /// Records the jobs that a pass has made, and those whose rows it has worked on.
    async fn record_pass(
        &self,
        journal: &JobJournal,
        written: Vec<JobRecord>,
        report: &RunReport,
    ) -> Result<(), Problem> {
        let reached_end = report.stopped.is_none();
        let mut changed = written;
        let mut collected = Vec::new();
        if reached_end {
            let state = self.lock();
            collected.extend(state.jobs.jobs().iter().filter(|job| job.is_collectable()).map(collected_job));
        }
        changed.extend(collected.iter().cloned());
        journal.record(&changed).await?;
        let mut state = self.lock();
        changed.into_iter().for_each(|job| state.jobs.put(job));
        drop(state);
        collected.iter().for_each(|job| self.paths.remove(&job.key));
        Ok(())
    }

    /// Adds what earlier passes have counted to the counts of a pass.
    pub(crate) fn add_earlier_passes(&self, tally: &mut RunTally, history: &mut UsageHistory) {
        let mut state = self.lock();
        if let Some((earlier, before)) = &state.earlier {
            tally.add_earlier_pass(earlier);
            history.merge(before);
        }
        state.earlier = Some((tally.clone(), history.clone()));
    }
}

/// A job whose rows have been worked on.
fn collected_job(job: &JobRecord) -> JobRecord {
    let (id, state) = match &job.stage {
        JobStage::Downloaded { id, state } => (Some(id.clone()), *state),
        JobStage::Refused { id, lost, .. } => (id.clone(), lost.job_state()),
        _ => {
            debug_assert!(false, "only these are collected");
            (job.provider_id().map(str::to_owned), JobState::Failed)
        }
    };
    JobRecord { stage: JobStage::Collected { id, state }, ..job.clone() }
}

/// The problem that a run whose jobs are at the provider would be forgotten.
pub(super) fn jobs_out_problem() -> Problem {
    Problem::new(ProblemCode::OutputExists, "batch jobs of an earlier run with this output are not finished")
        .hint(format!("continue it with {} {RESUME}, or cancel its jobs first", LANE.with_value("batch")))
}

fn make_jobs_folder(folder: &Path) -> std::io::Result<()> {
    rowmill_types::make_private_folder(folder)
}
