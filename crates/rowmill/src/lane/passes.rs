//! A run in the batch lane: passes over the input, and jobs in between.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rowmill_core::history::AnsweredRowUsage;
use rowmill_core::jobs::{JobRecord, JobStage};
use rowmill_core::ports::JobState;
use rowmill_core::summary::RunTally;
use rowmill_engine::StopCause;
use rowmill_types::settings::{LANE, OUTPUT};
use rowmill_types::{Problem, ProblemCode};
use tokio::time::Instant;

use super::adapters::LaneAdapters;
use super::driver::JobDriver;
use super::handle::BatchLaneHandle;
use super::job_files::write_problem;
use super::jobs_out::{RequestsOut, WaitsPerRow};
use super::journal::JobJournal;
use super::lane_state::BatchLane;
use super::options::{BatchContinuationMode, Lane};
use super::outages::{OutageLimits, ProviderOutages};
use super::phase::LanePhase;
use super::results::ResultIndex;
use super::switching::{CancelEnd, SwitchPlan};
use super::waiting::{WaitEnd, wait_for_jobs};
use crate::batch_runs::RunMemory;
use crate::control::{RunControl, RunNotice};
use crate::report::RunReport;
use crate::run::{run_on_thread, run_pass};
use crate::spec::{ExistingOutput, KeptFiles, RunSpec};

/// Runs a spec in the batch lane.
///
/// # Errors
///
/// The run could not start, or could not continue. Jobs that were submitted stay as they are.
pub(crate) async fn run_in_rounds(spec: RunSpec, control: &RunControl) -> Result<RunReport, Problem> {
    Box::pin(run_with_adapters(spec, control, LaneAdapters::default())).await
}

/// Runs a spec in the batch lane, with these providers.
pub(super) async fn run_with_adapters(
    spec: RunSpec,
    control: &RunControl,
    adapters: LaneAdapters,
) -> Result<RunReport, Problem> {
    check_lane(&spec)?;
    let deadline = spec.work.stop_rules.deadline.map(|limit| (limit, Instant::now() + limit));
    let switches = spec.work.lane.lane == Lane::Auto && spec.work.lane.scope == BatchContinuationMode::All;
    let switch = deadline.filter(|_| switches).map(|(_, end)| SwitchPlan::new(&spec, end));
    let folder = spec.work_folder().ok_or_else(no_output_file)?;
    let lane = open_lane(&spec, &folder, (control, adapters)).await?;
    let rounds = LaneRounds { spec, control, folder, lane: Arc::clone(&lane), deadline, switch };
    let folder = rounds.folder.clone();
    let done = Box::pin(work_in_rounds(rounds)).await;
    if done.is_err() {
        lane.discard_unstarted(&folder);
    }
    done
}

/// Makes passes and works on jobs in turn, until nothing is left to do or to wait for.
async fn work_in_rounds(mut rounds: LaneRounds<'_>) -> Result<RunReport, Problem> {
    let (control, mut existing) = (rounds.control, rounds.spec.existing);
    let notice = each_notice_once(control.notice.clone());
    loop {
        let report = rounds.work(existing, &notice).await?;
        existing = ExistingOutput::Resume;
        if let Some(report) = rounds.after_pass(report).await? {
            return Ok(report);
        }
    }
}

/// A run in the batch lane.
struct LaneRounds<'c> {
    spec: RunSpec,
    control: &'c RunControl,
    folder: PathBuf,
    lane: Arc<BatchLane>,
    deadline: Option<(Duration, Instant)>,
    switch: Option<SwitchPlan>,
}

impl LaneRounds<'_> {
    /// Makes a pass over the input.
    async fn work(&mut self, existing: ExistingOutput, notice: &NoticeFn) -> Result<RunReport, Problem> {
        let (lane, control) = (&self.lane, self.control);
        let phase = lane.phase();
        let mut pass = spec_of_pass(&self.spec, (existing, phase));
        pass.work.stop_rules.deadline =
            self.deadline.map(|(_, end)| end.saturating_duration_since(Instant::now()));
        let stop = control.stop.child();
        lane.begin_pass(&stop)?;
        let handle = BatchLaneHandle(Some(Arc::clone(lane)));
        let pass_control = RunControl { stop, lane: handle, notice: notice.clone(), ..control.clone() };
        let (began, answered) = (Instant::now(), lane.answered_time());
        let report = Box::pin(run_pass(pass, &pass_control)).await?;
        match phase.is_live() {
            true => lane.note_live_calls(report.limits, answered),
            false => lane.lock().pass_time = began.elapsed(),
        }
        lane.notify_unused(&**notice);
        Ok(report)
    }

    /// Records what a pass has made, and works on jobs until the next pass; a report if there is none.
    async fn after_pass(&mut self, report: RunReport) -> Result<Option<RunReport>, Problem> {
        let (lane, spec, folder) = (&self.lane, &self.spec, &self.folder);
        let open = lane.end_pass(&report)?;
        lane.notify_held_back(&*self.control.notice);
        if let Some(StopCause::Problem(_)) = &report.stopped {
            return Ok(Some(lane.report(report, WaitEnd::Results)));
        }
        let is_done = open.is_empty() && report.parked_rows == 0 && report.stopped.is_none();
        let keeps_events = !is_done || spec.keep_temp == KeptFiles::Ledger;
        let journal = if keeps_events { open_journal(lane, spec).await? } else { None };
        let Some(journal) = journal else { return Ok(Some(lane.finish(report, folder))) };
        lane.record_pass(&journal, open, &report).await?;
        // Rows may be left that a finished job has answers for: the next process reads them.
        if report.stopped.is_some() {
            return Ok(Some(lane.report(report, WaitEnd::Stopped)));
        }
        if lane.begins_another_pass() {
            return Ok(None);
        }
        if lane.phase() != LanePhase::Leaving && !lane.lock().jobs.has_blocking_jobs() {
            drop(journal);
            return Ok(Some(lane.finish(report, folder)));
        }
        lane.remember(&report);
        self.wait(report, &journal).await
    }

    /// Works on jobs until the next pass; a report if there is none.
    async fn wait(&self, report: RunReport, journal: &JobJournal) -> Result<Option<RunReport>, Problem> {
        let (lane, spec, control) = (&self.lane, &self.spec, self.control);
        let limits = OutageLimits { patience: spec.work.max_outage, retries: spec.work.retries };
        let outages = ProviderOutages::new(limits);
        let mut driver = JobDriver::new(lane, journal, control, (spec.work.lane.poll_every, outages));
        let mut end = WaitEnd::Switch;
        if lane.phase() == LanePhase::Jobs {
            let limits = (self.deadline.map(|(_, end)| end), self.switch.as_ref());
            end = wait_for_jobs(&mut driver, (spec, control), limits).await?;
        }
        if let (WaitEnd::Switch, Some(plan)) = (end, &self.switch) {
            if driver.leave_jobs(plan, control).await? == CancelEnd::Stopped {
                return Ok(Some(lane.report(report, WaitEnd::Stopped)));
            }
            if !lane.lock().jobs.has_collectable() {
                lane.set_phase(LanePhase::Live);
            }
            lane.remember(&report);
        }
        match end {
            WaitEnd::Results | WaitEnd::Switch => Ok(None),
            WaitEnd::Detached | WaitEnd::Stopped => Ok(Some(lane.report(report, end))),
            WaitEnd::Deadline => {
                let limit = self.deadline.map_or(Duration::ZERO, |(limit, _)| limit);
                let stopped = Some(StopCause::Deadline(limit));
                Ok(Some(lane.report(RunReport { stopped, ..report }, end)))
            }
        }
    }
}

/// Receives notices for the user.
type NoticeFn = Arc<dyn Fn(RunNotice) + Send + Sync>;

/// Shows every notice once: passes have much to say that is the same.
fn each_notice_once(notice: NoticeFn) -> NoticeFn {
    let shown = Mutex::new(HashSet::new());
    Arc::new(move |new| {
        let (RunNotice::Info(text) | RunNotice::Warning(text) | RunNotice::SignIn(text)) = &new;
        if shown.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_string()) {
            notice(new);
        }
    })
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
fn spec_of_pass(spec: &RunSpec, (existing, phase): (ExistingOutput, LanePhase)) -> RunSpec {
    let mut pass = spec.clone();
    pass.existing = existing;
    pass.work.agents.checkpoint_turns = true;
    if phase.is_live() {
        return pass;
    }
    // Retries are requests in a later job, and a pass makes no calls that could be limited.
    pass.work.retries = 0;
    pass.work.max_outage = Duration::ZERO;
    pass.work.budget = Default::default();
    pass
}

async fn open_lane(
    spec: &RunSpec,
    folder: &Path,
    (control, adapters): (&RunControl, LaneAdapters),
) -> Result<Arc<BatchLane>, Problem> {
    let memory = RunMemory::new(spec, folder, control);
    let (spec, folder) = (spec.clone(), folder.to_owned());
    run_on_thread(move || BatchLane::open(&spec, &folder, (memory, adapters)).map(Arc::new)).await
}

async fn open_journal(lane: &BatchLane, spec: &RunSpec) -> Result<Option<JobJournal>, Problem> {
    let (storage, durability) = (lane.storage.clone(), spec.work.durability);
    run_on_thread(move || JobJournal::open(&*storage.store, durability)).await
}

impl BatchLane {
    /// Prepares a pass: what finished jobs have is found in it.
    fn begin_pass(&self, stop: &rowmill_engine::StopHandle) -> Result<(), Problem> {
        let mut state = self.lock();
        // Passes in which no job was made do not count.
        state.round = 1 + state.jobs.jobs().iter().map(|job| job.round).max().unwrap_or(0);
        (state.wants_live_repairs, state.left_to_next_pass) = (false, false);
        state.stop = stop.clone();
        // Two indexes at once would take twice the memory.
        (state.index, state.out) = Default::default();
        state.index = ResultIndex::open(state.jobs.jobs(), &self.paths)?;
        if self.rows_wait_for == WaitsPerRow::Several {
            state.out = RequestsOut::read(state.jobs.jobs(), &self.paths)?;
        }
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

    /// Whether a pass follows at once, for which this chooses what it does with requests.
    fn begins_another_pass(&self) -> bool {
        let mut state = self.lock();
        match state.phase {
            LanePhase::Jobs if state.wants_live_repairs => {
                state.phase = LanePhase::LiveRepairs;
                true
            }
            LanePhase::LiveRepairs => {
                state.phase = LanePhase::Jobs;
                state.left_to_next_pass
            }
            LanePhase::Leaving if !state.jobs.has_blocking_jobs() => {
                state.phase = LanePhase::Live;
                true
            }
            LanePhase::Jobs | LanePhase::Leaving | LanePhase::Live => false,
        }
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
    pub(crate) fn add_earlier_passes(&self, tally: &mut RunTally, history: &mut AnsweredRowUsage) {
        let mut state = self.lock();
        if let Some((earlier, before)) = &state.earlier {
            tally.add_earlier_pass(earlier);
            history.merge(before);
        }
        state.earlier = Some((tally.clone(), history.clone()));
    }
}

/// A job whose rows have been worked on.
pub(super) fn collected_job(job: &JobRecord) -> JobRecord {
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

fn make_jobs_folder(folder: &Path) -> std::io::Result<()> {
    rowmill_types::make_private_folder(folder)
}
