//! Leaves the batch jobs of a run whose deadline is near: they are cancelled, what they had finished is collected, and
//! the rest is sent live.

use std::time::Duration;

use rowmill_core::jobs::{JobRecord, JobStage, LivePace, RefusedJobHandling, SwitchFacts};
use rowmill_core::limits::{CallParallelism, MinuteLimits};
use rowmill_core::ports::JobState;
use rowmill_types::{CallError, Problem};
use tokio::time::Instant;

use super::driver::JobDriver;
use super::lane_state::BatchLane;
use super::outcomes::parked;
use super::passes::collected_job;
use super::phase::LanePhase;
use crate::control::{RunControl, RunNotice};
use crate::counts::count_phrase;
use crate::spec::RunSpec;

/// How long a call takes whose provider was never called live, unless its timeout is shorter.
const SLOW_CALL: Duration = Duration::from_secs(30);
/// An observed call may be followed by slower ones.
const SLOWER: u32 = 2;
/// The generated tokens of a call before any was answered, unless the model's limit is lower.
const OUTPUT_TOKENS: u64 = 1_000;
/// The calls of a row with agents, before any such row has ended.
const AGENT_CALLS: f64 = 3.0;
/// The longest wait between two looks at jobs that are being cancelled.
const CANCEL_POLL: Duration = Duration::from_secs(20);

/// What a run does about its deadline.
#[derive(Debug, Clone, Copy)]
pub(super) struct SwitchPlan {
    /// The deadline.
    end: Instant,
    rates: MinuteLimits,
    parallel: CallParallelism,
    timeout: Duration,
    /// The calls of a row, as long as none has ended.
    calls_per_row: f64,
}

/// What is known of live calls.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LiveCallFacts {
    /// The limits, once a live pass has seen them.
    limits: Option<MinuteLimits>,
    /// How long its calls took on average.
    call_time: Option<Duration>,
}

/// How waiting for the end of cancelled jobs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelEnd {
    /// No job is out any more.
    NoneOut,
    /// The user has stopped the run.
    Stopped,
}

impl SwitchPlan {
    /// The plan of a run that may leave its jobs before the deadline.
    pub(super) fn new(spec: &RunSpec, end: Instant) -> Self {
        let work = &spec.work;
        Self {
            end,
            rates: work.rates,
            parallel: work.parallel,
            timeout: work.timeout,
            calls_per_row: if work.agents.cards.is_empty() { 1.0 } else { AGENT_CALLS },
        }
    }

    /// The deadline in seconds since 1970.
    fn end_since_1970(&self) -> i64 {
        let left = self.end.saturating_duration_since(Instant::now());
        jiff::Timestamp::now().as_second().saturating_add(i64::try_from(left.as_secs()).unwrap_or(i64::MAX))
    }
}

impl BatchLane {
    /// What decides when the run leaves its jobs.
    pub(super) fn switch_facts(&self, plan: &SwitchPlan) -> SwitchFacts {
        let state = self.lock();
        let out = || state.jobs.jobs().iter().filter(|job| job.blocks_rows());
        let (tally, history) = state.earlier.clone().unwrap_or_default();
        let calls_per_row = match tally.processed_rows {
            0 => plan.calls_per_row,
            rows => (tally.calls as f64 / rows as f64).max(1.0),
        };
        let size = out().fold((0_u64, 0_u64), |(requests, tokens), job| {
            (requests + job.size.requests, tokens + job.size.tokens)
        });
        let lengths = &history.output_tokens;
        let output_tokens = match lengths.len() {
            0 => state.max_output().map_or(OUTPUT_TOKENS, |most| most.min(OUTPUT_TOKENS)) as f64,
            count => lengths.iter().sum::<u64>() as f64 / count as f64,
        };
        let observed = state.live.call_time.map(|time| time.saturating_mul(SLOWER));
        // To stay means to submit what is not at the provider yet, which then has to be cancelled, too.
        let cancel_times = out().filter_map(|job| state.api_for(job));
        SwitchFacts {
            time_left: plan.end.saturating_duration_since(Instant::now()),
            calls: (state.jobs.unanswered_requests() as f64 * calls_per_row).ceil() as u64,
            pace: LivePace {
                limits: state.live.limits.unwrap_or(plan.rates),
                parallel: plan.parallel,
                call_time: observed.unwrap_or(SLOW_CALL).min(plan.timeout),
                input_tokens: size.1 as f64 / (size.0.max(1)) as f64,
                output_tokens,
            },
            cancel_time: cancel_times.map(|api| api.rules().cancel_time).max().unwrap_or_default(),
            pass_time: state.pass_time,
        }
    }

    /// Notes how fast the live calls of a pass were.
    pub(super) fn note_live_calls(&self, limits: MinuteLimits, before: (u64, u64)) {
        let mut state = self.lock();
        let after = state.answered_time();
        let (rows, milliseconds) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
        state.live.limits = Some(limits);
        if let Some(mean) = milliseconds.checked_div(rows) {
            state.live.call_time = Some(Duration::from_millis(mean));
        }
    }

    /// The number of answered rows, and the time of their answers in milliseconds.
    pub(super) fn answered_time(&self) -> (u64, u64) {
        self.lock().answered_time()
    }

    /// What becomes of a request that is to be sent, if it is not added to a job.
    pub(super) fn not_for_a_job(&self, phase: LanePhase) -> Option<CallError> {
        let sends = self.scope != super::BatchContinuationMode::Cancel && phase == LanePhase::Jobs;
        (!sends).then(|| parked(super::lane_state::NOT_IN_A_JOB))
    }
}

impl JobDriver<'_> {
    /// Cancels all jobs and waits until they have ended, for the sake of the deadline. That the run has switched is
    /// recorded first: a process that is killed from here on goes on with live calls.
    pub(super) async fn leave_jobs(
        &mut self,
        plan: &SwitchPlan,
        control: &RunControl,
    ) -> Result<CancelEnd, Problem> {
        let facts = self.lane.switch_facts(plan);
        if self.lane.phase() != LanePhase::Leaving {
            self.journal.record_switch(plan.end_since_1970()).await?;
            self.lane.set_phase(LanePhase::Leaving);
            let requests = count_phrase(self.lane.lock().jobs.unanswered_requests(), "request");
            self.notice(RunNotice::info(format!(
                "the deadline is near: batch jobs are cancelled, and what they have not finished of {requests} is sent live"
            )));
        }
        let last = Instant::now() + facts.time_for_cancelling();
        self.pace.restart();
        loop {
            tokio::select! {
                biased;
                () = control.stop.wait_for_drain() => return Ok(CancelEnd::Stopped),
                () = tokio::time::sleep_until(last) => break,
                advanced = self.advance() => advanced?,
            }
            if !self.lane.lock().jobs.has_blocking_jobs() {
                break;
            }
            let wait = self.next_wait().min(CANCEL_POLL);
            tokio::select! {
                biased;
                () = control.stop.wait_for_drain() => return Ok(CancelEnd::Stopped),
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.abandon_jobs().await?;
        self.forget_unsent_jobs().await?;
        Ok(CancelEnd::NoneOut)
    }

    /// Gives up jobs that have not ended in time.
    async fn abandon_jobs(&self) -> Result<(), Problem> {
        let out: Vec<JobRecord> =
            self.lane.lock().jobs.jobs().iter().filter(|job| job.blocks_rows()).cloned().collect();
        for mut job in out {
            let state = match &job.stage {
                JobStage::Submitted { state, .. } => *state,
                _ => JobState::Cancelling,
            };
            let id = job.provider_id().map(str::to_owned);
            let name = id.as_ref().map_or_else(|| "that may exist".to_owned(), |id| format!("`{id}`"));
            let finished = match job.counts.map(|counts| counts.completed) {
                Some(count) => format!("the {} that it had finished", count_phrase(count, "request")),
                None => "those that it had finished".to_owned(),
            };
            self.notice(RunNotice::warning(format!(
                "`{}` has not ended batch job {name} although it was cancelled: its {} are sent live for the sake of \
                 the deadline, and {finished} are paid for twice",
                job.provider,
                count_phrase(job.size.requests, "request")
            )));
            job.stage = JobStage::Abandoned { id, state };
            self.record(job).await?;
        }
        Ok(())
    }

    /// Jobs that were never submitted have nothing that could be collected.
    async fn forget_unsent_jobs(&self) -> Result<(), Problem> {
        let unsent: Vec<JobRecord> =
            self.lane.lock().jobs.jobs().iter().filter(|job| was_never_sent(job)).cloned().collect();
        for job in unsent {
            self.record(collected_job(&job)).await?;
            self.lane.paths.remove(&job.key);
        }
        Ok(())
    }
}

fn was_never_sent(job: &JobRecord) -> bool {
    matches!(job.stage, JobStage::Refused { id: None, lost: RefusedJobHandling::Retry, .. })
}
