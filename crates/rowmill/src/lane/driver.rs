//! Submits, polls and downloads the jobs of a run between two passes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::jobs::{JobKey, JobRecord, JobStep, JobTable, PollPace, SubmitPause};
use rowmill_core::ports::{JobKeyReporting, RunEvent, RunJobCounts};
use rowmill_types::{Problem, ProblemCode};
use tokio::time::Instant;

use super::journal::JobJournal;
use super::lane_state::BatchLane;
use super::options::BatchContinuationMode;
use super::outages::ProviderOutages;
use super::phase::LanePhase;
use super::submission::StepResult;
use crate::control::{RunControl, RunNotice};
use crate::run::run_on_thread;

/// How often a job that may have been created is looked for before it is created again.
const LOOKS: u32 = 3;
/// How long it is looked for at least, in first waits between two looks: a large request takes a while to arrive.
const PATIENCE: u32 = 6;

/// The jobs of a run, between two passes.
#[derive(Debug)]
pub(super) struct JobDriver<'a> {
    pub(super) lane: &'a Arc<BatchLane>,
    pub(super) journal: &'a JobJournal,
    control: &'a RunControl,
    pub(super) pace: PollPace,
    /// How long a job is looked for at least that may have been created.
    patience: Duration,
    /// When submissions to a provider may go on, and how often it has had no room.
    pub(super) full_queues: HashMap<String, (SubmitPause, Instant)>,
    /// Which providers do not answer.
    pub(super) outages: ProviderOutages,
    /// How often jobs were looked for that may have been created.
    looks: HashMap<JobKey, u32>,
    /// Jobs that the provider was asked to cancel.
    pub(super) cancelled: HashSet<JobKey>,
}

impl<'a> JobDriver<'a> {
    pub(super) fn new(
        lane: &'a Arc<BatchLane>,
        journal: &'a JobJournal,
        control: &'a RunControl,
        (poll_every, outages): (Duration, ProviderOutages),
    ) -> Self {
        let pace = PollPace::starting_with(poll_every);
        Self {
            lane,
            journal,
            control,
            pace,
            patience: poll_every.saturating_mul(PATIENCE),
            full_queues: HashMap::new(),
            outages,
            looks: HashMap::new(),
            cancelled: HashSet::new(),
        }
    }

    /// Brings every job as far as it gets now.
    pub(super) async fn advance(&mut self) -> Result<(), Problem> {
        let keys: Vec<JobKey> = self.lane.lock().jobs.jobs().iter().map(|job| job.key.clone()).collect();
        for key in keys {
            let mut result = StepResult::GoOn;
            while result == StepResult::GoOn {
                let Some(job) = self.lane.lock().jobs.get(&key).filter(|job| job.blocks_rows()).cloned()
                else {
                    break;
                };
                let provider = job.provider.clone();
                result = self.step(job).await?;
                match &result {
                    StepResult::Failed(error) => self.missed(&provider, error)?,
                    StepResult::QueueFull(refusal) => self.no_room(&key, refusal).await?,
                    StepResult::GoOn => self.pace.restart(),
                    StepResult::Later | StepResult::NotNow => {}
                }
                if matches!(result, StepResult::Later | StepResult::GoOn | StepResult::QueueFull(_)) {
                    self.outages.answered(&provider);
                }
            }
            self.report_progress();
        }
        self.lane.remember_jobs();
        Ok(())
    }

    /// Whether jobs are to be submitted before nobody waits any more.
    pub(super) fn has_jobs_to_submit(&self) -> bool {
        let state = self.lane.lock();
        let jobs = state.jobs.jobs();
        // Until it is known whether it was created, it may still have to be.
        if jobs.iter().any(JobRecord::is_in_doubt) {
            return true;
        }
        let mut jobs = jobs.iter().filter(|job| job.blocks_rows() && !job.is_submitted()).cloned();
        match self.lane.scope {
            BatchContinuationMode::All => jobs.next().is_some(),
            // The queue may have no room for hours.
            BatchContinuationMode::Collect | BatchContinuationMode::Cancel => {
                let jobs: Vec<_> = jobs.filter_map(|job| Some((state.api_for(&job)?, job))).collect();
                drop(state);
                jobs.iter().any(|(api, job)| self.may_submit(job, &**api))
            }
        }
    }

    /// Takes the next step for a job.
    async fn step(&mut self, job: JobRecord) -> Result<StepResult, Problem> {
        let api = self.lane.lock().api_for(&job).ok_or_else(|| {
            Problem::new(
                ProblemCode::BatchRefused,
                format!(
                    "batch job of `{}` is still pending, and the run now uses other providers",
                    job.model
                ),
            )
            .hint("use the earlier model until its jobs are finished, or cancel them")
        })?;
        let step = JobTable::next_step(&job);
        let cancels =
            self.lane.scope == BatchContinuationMode::Cancel || self.lane.phase() == LanePhase::Leaving;
        if cancels && let Some(result) = self.cancel_step(&job, &step, &*api).await? {
            return Ok(result);
        }
        if matches!(step, JobStep::Upload | JobStep::Create { .. }) && !self.may_submit(&job, &*api) {
            return Ok(StepResult::NotNow);
        }
        if matches!(step, JobStep::Create { .. }) && self.could_be_confused(&job, &*api) {
            return Ok(StepResult::NotNow);
        }
        match step {
            JobStep::Upload => self.upload(job, &*api).await,
            JobStep::Create { file } => self.create(job, file, &*api).await,
            JobStep::Find { file, since } => self.find(job, (file, since), &*api).await,
            JobStep::Poll { .. } => self.poll(job, &*api).await,
            JobStep::Download { .. } => self.download(job, &api).await,
            JobStep::Nothing => Ok(StepResult::NotNow),
        }
    }

    /// Whether the account's queue has room for a job, as far as is known.
    fn may_submit(&self, job: &JobRecord, api: &dyn rowmill_core::ports::BatchApi) -> bool {
        let is_paused = self.full_queues.get(&job.provider).is_some_and(|(_, until)| Instant::now() < *until);
        !is_paused && self.lane.lock().jobs.queue_use(&job.provider).has_room(job.size, api.rules())
    }

    /// Whether a new job could be taken for another one that may have been created: the provider shows no keys.
    fn could_be_confused(&self, job: &JobRecord, api: &dyn rowmill_core::ports::BatchApi) -> bool {
        let state = self.lane.lock();
        let in_doubt = |other: &JobRecord| other.provider == job.provider && other.is_in_doubt();
        api.rules().job_key == JobKeyReporting::NotReported && state.jobs.jobs().iter().any(in_doubt)
    }

    /// How long to wait before the next look at the jobs.
    pub(super) fn next_wait(&mut self) -> Duration {
        let jitter = (self.now() % 10) as f64 / 10.0;
        self.pace.next_wait(None, jitter)
    }

    /// Counts a look at the provider's list that did not show a job. Returns whether the job can be created again: it was
    /// looked for several times, and a request that was still on its way has arrived by now.
    pub(super) fn was_looked_for_long_enough(&mut self, job: &JobRecord, since: i64) -> bool {
        let looks = self.looks.entry(job.key.clone()).or_default();
        *looks += 1;
        let waited = u64::try_from(self.now() - since).unwrap_or_default();
        self.looks.get(&job.key).is_some_and(|looks| *looks >= LOOKS) && waited >= self.patience.as_secs()
    }

    /// Records a job as it is now, in the ledger first.
    pub(super) async fn record(&self, job: JobRecord) -> Result<(), Problem> {
        self.journal.record(std::slice::from_ref(&job)).await?;
        self.lane.lock().jobs.put(job);
        Ok(())
    }

    pub(super) fn notice(&self, notice: RunNotice) {
        (self.control.notice)(notice);
    }

    /// The time in seconds since 1970.
    pub(super) fn now(&self) -> i64 {
        jiff::Timestamp::now().as_second()
    }

    /// Shows what the jobs are doing.
    fn report_progress(&self) {
        let counts = self.lane.job_counts();
        self.control.observer.observe(&RunEvent::BatchJobs { counts: &counts });
    }
}

impl BatchLane {
    /// The provider's ids of all jobs of this run and of the user's other runs.
    pub(super) async fn known_provider_ids(self: &Arc<Self>) -> Result<HashSet<String>, Problem> {
        let lane = Arc::clone(self);
        let mut known = run_on_thread(move || Ok(lane.memory.ids_of_all_jobs())).await?;
        let state = self.lock();
        known.extend(state.jobs.jobs().iter().filter_map(|job| job.provider_id().map(str::to_owned)));
        Ok(known)
    }

    /// What the jobs of the run are doing.
    pub(crate) fn job_counts(&self) -> RunJobCounts {
        let state = self.lock();
        let mut counts =
            RunJobCounts { reserved: state.jobs.reserved_spend().cost, ..RunJobCounts::default() };
        for job in state.jobs.jobs() {
            counts.jobs += 1;
            let finished = job.counts.map_or(0, |reported| reported.completed + reported.failed);
            if job.is_submitted() {
                counts.submitted += 1;
                counts.requests_out += job.size.requests;
                counts.requests_finished += finished.min(job.size.requests);
                let (since, expiry) = job.times();
                counts.oldest = counts.oldest.into_iter().chain(since).min();
                counts.first_expiry = counts.first_expiry.into_iter().chain(expiry).min();
            } else if job.blocks_rows() {
                counts.waiting += 1;
                counts.requests_out += job.size.requests;
            } else {
                counts.ended += 1;
            }
        }
        counts
    }
}
