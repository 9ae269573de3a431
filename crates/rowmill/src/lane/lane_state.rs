//! The state of the batch lane during a pass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::history::AnsweredRowUsage;
use rowmill_core::jobs::{JobKey, JobRecord, JobSize, JobSizeLimits, JobStage, JobTable, SizeVerdict};
use rowmill_core::limits::{BudgetLimits, Spend};
use rowmill_core::ports::{BatchApi, LedgerPosition, Model};
use rowmill_core::resume::ResumeExclusions;
use rowmill_core::summary::RunTally;
use rowmill_engine::StopHandle;
use rowmill_types::{
    BatchAnswerOrigin, CallError, CallFailure, Completion, FinishReason, Money, Problem, Request,
    RequestPurpose,
};
use tokio::time::Instant;

use super::adapters::LaneAdapters;
use super::budget_rounds::HeldBack;
use super::custom_id::CustomId;
use super::endpoint_plan::EndpointPlan;
use super::failures::KnownFailures;
use super::job_files::{JobPaths, OpenJob};
use super::jobs_out::{RequestsOut, WaitsPerRow};
use super::live_model::LiveModel;
use super::options::{BatchContinuationMode, RepairLane};
use super::outcomes::{from_job, is_passing, parked, read_line};
use super::parking_model::ParkingModel;
use super::phase::LanePhase;
use super::reserve::JobReserve;
use super::results::{FoundResult, ResultIndex, StoredResult};
use super::switching::LiveCallFacts;
use super::truncated::{TruncatedAnswer, TruncatedAnswers};
use crate::batch_runs::RunMemory;
use crate::report::UnusedAnswers;
use crate::run_storage::RunStorage;

/// What a row waits for whose request did not fit the budget, or could not be written. No job has this name, so the row
/// is worked on again in the next pass.
pub(super) const NOT_IN_A_JOB: &str = "not in a job";
/// What a row waits for whose answer is to be repaired by a live call. No job has this name.
const LIVE_CALL: &str = "a live call";
/// The minimum number of bytes per token in job files, for an estimate of what the provider counts.
const BYTES_PER_TOKEN: u64 = 3;

/// The batch lane of a run.
#[derive(Debug)]
pub(crate) struct BatchLane {
    /// The run. No other process can work on it as long as this exists, in a pass or between two of them.
    pub(super) storage: RunStorage,
    pub(super) paths: JobPaths,
    /// How often a request is sent again.
    pub(super) retries: u32,
    pub(super) limits: BudgetLimits,
    /// Makes the names of jobs unique.
    pub(super) prefix: String,
    /// Failures that are recorded from here on are final.
    pub(super) failures_final_from: LedgerPosition,
    /// When this process started to work on the run.
    pub(super) started: (Timestamp, Instant),
    /// What the process does with the run.
    pub(super) scope: BatchContinuationMode,
    /// Which requests of jobs that are out have to be known.
    pub(super) rows_wait_for: WaitsPerRow,
    /// How repairs are sent.
    pub(super) repair_lane: RepairLane,
    /// Makes batch APIs and models.
    pub(crate) adapters: LaneAdapters,
    /// Remembers the run for its user.
    pub(super) memory: RunMemory,
    pub(super) state: Mutex<LaneState>,
}

/// What changes during a run.
#[derive(Debug)]
pub(super) struct LaneState {
    pub(super) jobs: JobTable,
    pub(super) endpoints: BTreeMap<String, LaneEndpoint>,
    pub(super) index: ResultIndex,
    pub(super) out: RequestsOut,
    pub(super) failures: KnownFailures,
    pub(super) truncated: TruncatedAnswers,
    pub(super) reserve: JobReserve,
    /// What a pass does with requests that no finished job has answered.
    pub(super) phase: LanePhase,
    /// Whether rows of the pass wait for live calls.
    pub(super) wants_live_repairs: bool,
    /// Whether rows of a pass with live calls wait for a job.
    pub(super) left_to_next_pass: bool,
    /// What is known of live calls.
    pub(super) live: LiveCallFacts,
    /// How long the last pass without calls took.
    pub(super) pass_time: Duration,
    /// The round of jobs that the pass makes, counted from 1 over all processes.
    pub(super) round: u32,
    /// The most requests of a job, by provider, where a larger one had no room in an empty queue.
    pub(super) most_requests: BTreeMap<String, u64>,
    /// How many jobs this process has made.
    pub(super) made: u64,
    /// Jobs that were completed in this pass.
    pub(super) written: Vec<JobRecord>,
    /// Why the pass was stopped, if the lane stopped it.
    pub(super) problem: Option<Problem>,
    pub(super) stop: StopHandle,
    /// Whether this is the first pass of this process: failures of earlier processes are retried in it.
    pub(super) is_first_pass: bool,
    pub(super) retries_earlier_failures: bool,
    /// What answers would have cost more as live calls.
    pub(super) saved: Money,
    /// Answers that were paid for, and that no row wanted.
    pub(super) unused: UnusedAnswers,
    /// Whether this process has made jobs.
    pub(super) has_sent_a_round: bool,
    /// What the budget had no room for in the last pass.
    pub(super) held_back: Option<HeldBack>,
    /// What earlier processes had spent.
    pub(super) spent_before: Option<Spend>,
    /// What earlier passes of this process counted.
    pub(super) earlier: Option<(RunTally, AnsweredRowUsage)>,
}

/// A model in the batch lane, with everything that is needed to make jobs for it.
#[derive(Debug)]
pub(super) struct LaneEndpoint {
    pub(super) plan: EndpointPlan,
    pub(super) limits: JobSizeLimits,
    pub(super) open: Option<OpenJob>,
}

impl BatchLane {
    pub(super) fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a pass does with requests that no finished job has answered.
    pub(crate) fn phase(&self) -> LanePhase {
        self.lock().phase
    }

    pub(super) fn set_phase(&self, phase: LanePhase) {
        self.lock().phase = phase;
    }

    /// A model whose answers come from jobs.
    pub(crate) fn model(self: &Arc<Self>, plan: EndpointPlan) -> Arc<dyn Model> {
        Arc::new(ParkingModel { lane: Arc::clone(self), endpoint: self.add_endpoint(plan) })
    }

    /// The same model for live calls.
    pub(crate) fn live_model(self: &Arc<Self>, plan: EndpointPlan, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(LiveModel { lane: Arc::clone(self), endpoint: self.add_endpoint(plan), model })
    }

    /// Makes a model known, and returns what identifies it.
    fn add_endpoint(&self, plan: EndpointPlan) -> String {
        let (endpoint, mut limits) = (plan.identity.clone(), JobSizeLimits::new(plan.api.rules()));
        let mut state = self.lock();
        if let Some(most) = state.most_requests.get(&plan.api.rules().provider) {
            limits.allow_at_most(*most);
        }
        // Several model roles may have the same model with the same settings: they share jobs.
        let open = state.endpoints.remove(&endpoint).and_then(|known| known.open);
        state.endpoints.insert(endpoint.clone(), LaneEndpoint { plan, limits, open });
        endpoint
    }

    /// Whether the user is told what a resume begins with: rows that failed are not retried in later passes, and not
    /// if only results are collected.
    pub(crate) fn tells_of_resume(&self) -> bool {
        self.lock().is_first_pass && self.scope == BatchContinuationMode::All
    }

    /// Whether money or tokens of the run are limited.
    pub(crate) fn has_budget(&self) -> bool {
        self.limits.is_limited()
    }

    /// What of the run is limited, whatever the amount of money is.
    pub(crate) fn budget_of_any_amount(&self) -> BudgetLimits {
        BudgetLimits { cost: self.limits.cost.map(|_| Money::MAX), ..self.limits }
    }

    /// Which rows a pass leaves alone.
    pub(crate) fn resume_scope(&self) -> ResumeExclusions {
        let state = self.lock();
        let retries = state.is_first_pass && state.retries_earlier_failures;
        let mut not_there_yet = state.jobs.blocking_job_names();
        if state.phase == LanePhase::LiveRepairs {
            // What did not fit the budget is for a job, too.
            not_there_yet.insert(NOT_IN_A_JOB.to_owned());
        }
        ResumeExclusions {
            not_there_yet,
            failures_final_from: (!retries).then_some(self.failures_final_from),
        }
    }

    /// Sets what the run has spent before the pass.
    pub(crate) fn set_spent(&self, spent: Spend) {
        let mut state = self.lock();
        state.spent_before.get_or_insert(spent);
        state.reserve = JobReserve::new(self.limits, spent, state.jobs.reserved_spend());
    }

    /// The answer to a request, if a finished job has one; otherwise the request is added to a job.
    pub(super) fn answer_or_park(&self, endpoint: &str, request: &Request) -> Result<Completion, CallError> {
        let mut state = self.lock();
        let id = CustomId::first(request);
        if let Some(known) = state.failures.find(id.request) {
            return Err(known.clone());
        }
        if let Some(job) = state.out.job_with(id.request) {
            return Err(parked(&job.0));
        }
        let found = match state.index.find(id.request) {
            Ok(found) => found,
            Err(problem) => return Err(state.stop_over(problem)),
        };
        let Some(found) = found else {
            return match state.read_truncated(endpoint, id) {
                Some(answer) => answer,
                None => Err(self.park(&mut state, endpoint, request, id)),
            };
        };
        if matches!(found.result, StoredResult::NotSent) {
            let again = CustomId { attempt: found.attempt, ..id };
            state.release(endpoint, request);
            return Err(self.park(&mut state, endpoint, request, again));
        }
        // What was cancelled is no failed attempt.
        let is_cancelled = self.not_for_a_job(state.phase).is_some();
        match state.read(endpoint, request, found) {
            (_, Ok(completion)) => Ok(completion),
            (attempt, Err(error)) if is_passing(&error) && (is_cancelled || attempt <= self.retries) => {
                let next = CustomId { attempt, ..id }.next_attempt();
                Err(self.park(&mut state, endpoint, request, next))
            }
            (_, Err(error)) => match state.failures.keep(id.request, &error) {
                Ok(()) => Err(error),
                Err(problem) => Err(state.stop_over(problem)),
            },
        }
    }

    /// Adds a request to a job.
    fn park(&self, state: &mut LaneState, endpoint: &str, request: &Request, id: CustomId) -> CallError {
        if let Some(refused) = self.not_for_a_job(state.phase) {
            return refused;
        }
        if request.purpose == RequestPurpose::Repair && self.repair_lane == RepairLane::Live {
            state.wants_live_repairs = true;
            return parked(LIVE_CALL);
        }
        let Some(known) = state.endpoints.get_mut(endpoint) else {
            return CallError::new(CallFailure::Internal, "the model is not in the batch lane");
        };
        let mut line = Vec::new();
        if let Err(error) = known.plan.api.write_request(&id.to_string(), request, &mut line) {
            return error;
        }
        let bytes = line.len() as u64;
        let size = JobSize { requests: 1, bytes, tokens: bytes / BYTES_PER_TOKEN };
        let current = known.open.as_ref().map(|open| open.size).unwrap_or_default();
        let verdict = known.limits.check_room_for_request(current, size);
        if let SizeVerdict::TooLarge(most) = verdict {
            let provider = &known.plan.api.rules().provider;
            let message = format!(
                "the request has {bytes} bytes, and `{provider}` accepts at most {most} in a batch job"
            );
            return CallError::new(CallFailure::Refused, message);
        }
        let worst_case = known.plan.worst_case(request);
        if !state.reserve.reserve(worst_case) {
            return parked(NOT_IN_A_JOB);
        }
        // Only now: a job that is full is sent although the budget has no room for the request that would begin the next.
        let full = known.open.take_if(|_| verdict == SizeVerdict::NextJob);
        let added = full
            .map_or(Ok(()), |full| state.complete(endpoint, full))
            .and_then(|()| self.add(state, endpoint, (id, &line), (size, worst_case)));
        match added {
            Ok(key) => parked(&key.0),
            Err(problem) => state.stop_over(problem),
        }
    }

    /// Adds a request to the open job of a model, which is created if there is none.
    fn add(
        &self,
        state: &mut LaneState,
        endpoint: &str,
        (id, line): (CustomId, &[u8]),
        (size, worst_case): (JobSize, Spend),
    ) -> Result<JobKey, Problem> {
        let made = &mut state.made;
        let Some(known) = state.endpoints.get_mut(endpoint) else { return Ok(JobKey(NOT_IN_A_JOB.into())) };
        if known.open.is_none() {
            *made += 1;
            known.open = Some(OpenJob::create(&self.paths, JobKey(format!("{}-{made}", self.prefix)))?);
        }
        let Some(open) = &mut known.open else { return Ok(JobKey(NOT_IN_A_JOB.into())) };
        open.add(id, line, size, worst_case)?;
        Ok(open.key.clone())
    }
}

impl LaneState {
    /// Reads a result that was found, and counts what it cost. Returns the number of the attempt, too.
    fn read(
        &mut self,
        endpoint: &str,
        request: &Request,
        found: FoundResult,
    ) -> (u32, Result<Completion, CallError>) {
        let Some(known) = self.endpoints.get(endpoint) else {
            let error = CallError::new(CallFailure::Internal, "the model is not in the batch lane");
            return (found.attempt, Err(error));
        };
        let job = found.origin.provider_id;
        let (round, attempt) = (found.origin.round, found.attempt);
        let origin = BatchAnswerOrigin { job, round, attempt, is_counted: false };
        let mut cut = None;
        let outcome = match found.result {
            StoredResult::Line(line) => {
                let outcome = read_line(&known.plan, &origin, &line);
                let is_cut = outcome.as_ref().is_ok_and(|answer| answer.finish == FinishReason::Length);
                cut = (is_cut && request.output_cap.is_some()).then_some(line);
                outcome
            }
            StoredResult::Missing | StoredResult::NotSent => {
                let message = format!("batch job `{}` ended without a result for this request", origin.job);
                Err(CallError::new(CallFailure::Server, message))
            }
            StoredResult::Refused(reason) => {
                let message = format!("the provider refused the batch job: {reason}");
                Err(CallError::new(CallFailure::Refused, message))
            }
        };
        let outcome = outcome.map_err(|error| from_job(error, origin.clone()));
        let usage = outcome.as_ref().ok().and_then(|completion| completion.usage);
        let actual = known.plan.spend_for(usage.as_ref());
        self.reserve.settle(known.plan.worst_case(request), actual);
        self.saved += known.plan.saved_by(usage.as_ref());
        let Some(line) = cut else { return (attempt, outcome) };
        let kept = self.truncated.keep(CustomId::first(request).request, TruncatedAnswer { origin, line });
        (attempt, kept.map_err(|problem| self.stop_over(problem)).and(outcome))
    }

    /// The truncated answer to a request whose job is gone.
    pub(super) fn read_truncated(
        &self,
        endpoint: &str,
        id: CustomId,
    ) -> Option<Result<Completion, CallError>> {
        let TruncatedAnswer { origin, line } = self.truncated.find(id.request)?;
        let origin = BatchAnswerOrigin { is_counted: true, ..origin.clone() };
        Some(read_line(&self.endpoints.get(endpoint)?.plan, &origin, line))
    }

    /// Completes a job file: the job can be submitted.
    pub(super) fn complete(&mut self, endpoint: &str, open: OpenJob) -> Result<(), Problem> {
        let Some(known) = self.endpoints.get(endpoint) else { return Ok(()) };
        let (model, provider) = (known.plan.name.clone(), known.plan.api.rules().provider.clone());
        let price = known.plan.price;
        let (key, size, worst_case) = open.complete()?;
        self.written.push(JobRecord {
            key,
            endpoint: endpoint.to_owned(),
            model,
            provider,
            round: self.round,
            size,
            worst_case,
            price,
            stage: JobStage::Written,
            submitted_at: None,
            created_at: None,
            expires_at: None,
            counts: None,
        });
        Ok(())
    }

    /// Completes all job files of the pass.
    pub(super) fn complete_all(&mut self) -> Result<(), Problem> {
        let endpoints = self.endpoints.iter_mut();
        let open: Vec<_> =
            endpoints.filter_map(|(name, known)| Some((name.clone(), known.open.take()?))).collect();
        open.into_iter().try_for_each(|(endpoint, open)| self.complete(&endpoint, open))
    }

    /// The batch API for a job: that of its model, or of another model of the same provider.
    pub(super) fn api_for(&self, job: &JobRecord) -> Option<Arc<dyn BatchApi>> {
        let same_provider = |known: &&LaneEndpoint| known.plan.api.rules().provider == job.provider;
        let known = self.endpoints.get(&job.endpoint);
        let known = known.or_else(|| self.endpoints.values().find(same_provider))?;
        Some(Arc::clone(&known.plan.api))
    }

    /// The number of answered rows, and the time of their answers in milliseconds.
    pub(super) fn answered_time(&self) -> (u64, u64) {
        self.earlier.as_ref().map(|(_, history)| (history.rows, history.milliseconds)).unwrap_or_default()
    }

    /// The maximum number of tokens of an answer, if it is known of a model.
    pub(super) fn max_output(&self) -> Option<u64> {
        self.endpoints.values().filter_map(|known| known.plan.max_output).max()
    }

    /// Ends the pass because of a problem; the row is not lost.
    fn stop_over(&mut self, problem: Problem) -> CallError {
        self.problem.get_or_insert(problem);
        self.stop.drain();
        parked(NOT_IN_A_JOB)
    }
}
