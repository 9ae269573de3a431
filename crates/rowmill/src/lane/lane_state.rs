//! The state of the batch lane during a pass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use rowmill_core::cost::Price;
use rowmill_core::history::UsageHistory;
use rowmill_core::jobs::{JobKey, JobRecord, JobSize, JobSizeLimits, JobStage, JobTable, SizeVerdict};
use rowmill_core::limits::{BudgetLimits, Spend};
use rowmill_core::ports::{BatchApi, LedgerPosition, Model};
use rowmill_core::resume::ResumeScope;
use rowmill_core::summary::RunTally;
use rowmill_engine::{StopHandle, max_input_tokens};
use rowmill_types::{
    BatchOrigin, CallError, CallFailure, Completion, FinishReason, Money, Problem, Request, TokenUsage,
};
use tokio::time::Instant;

use super::budget_rounds::HeldBack;
use super::custom_id::CustomId;
use super::failures::KnownFailures;
use super::job_files::{JobPaths, OpenJob};
use super::options::BatchScope;
use super::outcomes::{is_passing, parked, read_line, without_wait};
use super::parking_model::ParkingModel;
use super::reserve::JobReserve;
use super::results::{FoundResult, ResultIndex, StoredResult};
use super::truncated::{TruncatedAnswer, TruncatedAnswers};
use crate::batch_runs::RunMemory;
use crate::report::UnusedAnswers;
use crate::run_storage::RunStorage;

/// What a row waits for whose request did not fit the budget, or could not be written. No job has this name, so the row
/// is worked on again in the next pass.
const NOT_IN_A_JOB: &str = "not in a job";
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
    pub(super) scope: BatchScope,
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
    pub(super) failures: KnownFailures,
    pub(super) truncated: TruncatedAnswers,
    pub(super) reserve: JobReserve,
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
    pub(super) earlier: Option<(RunTally, UsageHistory)>,
}

/// A model in the batch lane, with everything that is needed to make jobs for it.
#[derive(Debug)]
pub(super) struct LaneEndpoint {
    pub(super) plan: EndpointPlan,
    pub(super) limits: JobSizeLimits,
    pub(super) open: Option<OpenJob>,
}

/// A model that the batch lane is to answer for.
#[derive(Debug, Clone)]
pub(crate) struct EndpointPlan {
    /// Identifies it, with everything that its requests have in common.
    pub(crate) identity: String,
    /// The model string.
    pub(crate) name: String,
    /// The provider's batch API.
    pub(crate) api: Arc<dyn BatchApi>,
    /// Its price in the batch lane, if known.
    pub(crate) price: Option<Price>,
    /// Its price for live calls, if known.
    pub(crate) live_price: Option<Price>,
    /// The maximum number of tokens of an answer, if known.
    pub(crate) max_output: Option<u64>,
    /// The bytes that every request has in common.
    pub(crate) fixed_bytes: usize,
}

impl EndpointPlan {
    /// The most that a request may cost.
    pub(super) fn worst_case(&self, request: &Request) -> Spend {
        let input = max_input_tokens(self.fixed_bytes, &request.messages);
        let output = request.output_cap.or(self.max_output).unwrap_or_default();
        let cost = self.price.map(|price| price.max_cost(input, output)).unwrap_or_default();
        Spend { cost, tokens: input.saturating_add(output) }
    }

    /// What an answer would have cost more as a live call.
    fn saved_by(&self, usage: Option<&TokenUsage>) -> Money {
        let cost = |price: Option<Price>| price.zip(usage).map(|(price, usage)| price.cost(usage));
        let (live, batch) = (cost(self.live_price), cost(self.price));
        live.unwrap_or_default().saturating_sub(batch.unwrap_or_default())
    }

    fn spend_for(&self, usage: Option<&TokenUsage>) -> Spend {
        let cost = self.price.zip(usage).map(|(price, usage)| price.cost(usage)).unwrap_or_default();
        Spend { cost, tokens: usage.map_or(0, TokenUsage::tokens) }
    }
}

impl BatchLane {
    pub(super) fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A model whose answers come through the lane.
    pub(crate) fn model(self: &Arc<Self>, plan: EndpointPlan) -> Arc<dyn Model> {
        let (endpoint, mut limits) = (plan.identity.clone(), JobSizeLimits::new(plan.api.rules()));
        let mut state = self.lock();
        if let Some(most) = state.most_requests.get(&plan.api.rules().provider) {
            limits.allow_at_most(*most);
        }
        // Several model roles may have the same model with the same settings: they share jobs.
        let open = state.endpoints.remove(&endpoint).and_then(|known| known.open);
        state.endpoints.insert(endpoint.clone(), LaneEndpoint { plan, limits, open });
        Arc::new(ParkingModel { lane: Arc::clone(self), endpoint })
    }

    /// Whether the user is told what a resume begins with: rows that failed are not retried in later passes, and not
    /// if only results are collected.
    pub(crate) fn tells_of_resume(&self) -> bool {
        self.lock().is_first_pass && self.scope == BatchScope::All
    }

    /// Whether money or tokens of the run are limited.
    pub(crate) fn has_budget(&self) -> bool {
        self.limits.is_limited()
    }

    /// Which rows a pass leaves alone.
    pub(crate) fn resume_scope(&self) -> ResumeScope {
        let state = self.lock();
        let retries = state.is_first_pass && state.retries_earlier_failures;
        ResumeScope {
            not_there_yet: state.jobs.names_of_jobs_out(),
            failures_final_from: (!retries).then_some(self.failures_final_from),
        }
    }

    /// Sets what the run has spent before the pass.
    pub(crate) fn set_spent(&self, spent: Spend) {
        let mut state = self.lock();
        state.spent_before.get_or_insert(spent);
        state.reserve = JobReserve::new(self.limits, spent, state.jobs.reserved());
    }

    /// The answer to a request, if a finished job has one; otherwise the request is added to a job.
    pub(super) fn answer_or_park(&self, endpoint: &str, request: &Request) -> Result<Completion, CallError> {
        let mut state = self.lock();
        let id = CustomId::first(request);
        if let Some(known) = state.failures.find(id.request) {
            return Err(known.clone());
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
        match state.read(endpoint, request, found) {
            (_, Ok(completion)) => Ok(completion),
            (attempt, Err(error)) if is_passing(&error) && attempt <= self.retries => {
                let next = CustomId { attempt, ..id }.next_attempt();
                Err(self.park(&mut state, endpoint, request, next))
            }
            (_, Err(error)) => {
                let error = without_wait(error);
                match state.failures.keep(id.request, &error) {
                    Ok(()) => Err(error),
                    Err(problem) => Err(state.stop_over(problem)),
                }
            }
        }
    }

    /// Adds a request to a job.
    fn park(&self, state: &mut LaneState, endpoint: &str, request: &Request, id: CustomId) -> CallError {
        if self.scope == BatchScope::Cancel {
            return parked(NOT_IN_A_JOB);
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
        let full = match known.limits.check(current, size) {
            SizeVerdict::Fits => None,
            SizeVerdict::NextJob => known.open.take(),
            SizeVerdict::TooLarge(most) => {
                let provider = &known.plan.api.rules().provider;
                let message = format!(
                    "the request has {bytes} bytes, and `{provider}` accepts at most {most} in a batch job"
                );
                return CallError::new(CallFailure::Refused, message);
            }
        };
        let worst_case = known.plan.worst_case(request);
        if !state.reserve.reserve(worst_case) {
            return parked(NOT_IN_A_JOB);
        }
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
        let origin = BatchOrigin { job, round, attempt, is_counted: false };
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
        let usage = outcome.as_ref().ok().and_then(|completion| completion.usage);
        let actual = known.plan.spend_for(usage.as_ref());
        self.reserve.settle(known.plan.worst_case(request), actual);
        self.saved += known.plan.saved_by(usage.as_ref());
        let Some(line) = cut else { return (attempt, outcome) };
        let kept = self.truncated.keep(CustomId::first(request).request, TruncatedAnswer { origin, line });
        (attempt, kept.map_err(|problem| self.stop_over(problem)).and(outcome))
    }

    /// The truncated answer to a request whose job is gone.
    fn read_truncated(&self, endpoint: &str, id: CustomId) -> Option<Result<Completion, CallError>> {
        let TruncatedAnswer { origin, line } = self.truncated.find(id.request)?;
        let origin = BatchOrigin { is_counted: true, ..origin.clone() };
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

    /// Ends the pass because of a problem; the row is not lost.
    fn stop_over(&mut self, problem: Problem) -> CallError {
        self.problem.get_or_insert(problem);
        self.stop.drain();
        parked(NOT_IN_A_JOB)
    }
}
