//! A model that makes live calls in a run that has batch jobs, too.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rowmill_core::limits::{BudgetLimits, Spend};
use rowmill_core::ports::Model;
use rowmill_types::{CallError, Completion, Request, RequestPurpose};

use super::custom_id::CustomId;
use super::lane_state::BatchLane;
use super::outcomes::parked;
use super::phase::LanePhase;

/// What a row waits for whose request is for a job, while repairs are sent live. No job has this name.
const NEXT_PASS: &str = "the next pass";

/// A model for live calls. What is known of a request from jobs is not asked again.
#[derive(Debug)]
pub(super) struct LiveModel {
    pub(super) lane: Arc<BatchLane>,
    /// Identifies it among the models of the run.
    pub(super) endpoint: String,
    pub(super) model: Arc<dyn Model>,
}

impl Model for LiveModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        match self.lane.outcome_without_call(&self.endpoint, request) {
            Some(outcome) => ready(outcome).boxed(),
            None => self.model.complete(request),
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.model.close()
    }
}

impl BatchLane {
    /// The budget of the engine in a pass, given that of the run. Where jobs are made, the lane reserves their money
    /// itself; live calls have what jobs leave.
    pub(crate) fn budget_of_pass(&self, budget: BudgetLimits) -> BudgetLimits {
        let state = self.lock();
        if state.phase.is_live() {
            budget.minus(state.jobs.reserved_spend())
        } else {
            BudgetLimits::default()
        }
    }

    /// The most that jobs may have cost whose results nobody has waited for. It counts as spent.
    pub(crate) fn abandoned_spend(&self) -> Spend {
        self.lock().jobs.abandoned()
    }

    /// What becomes of a request without a live call; `None` if it needs one.
    fn outcome_without_call(
        &self,
        endpoint: &str,
        request: &Request,
    ) -> Option<Result<Completion, CallError>> {
        let mut state = self.lock();
        let id = CustomId::first(request);
        if let Some(known) = state.failures.find(id.request) {
            return Some(Err(known.clone()));
        }
        if let Some(job) = state.out.job_with(id.request) {
            return Some(Err(parked(&job.0)));
        }
        if let Some(cut) = state.read_truncated(endpoint, id) {
            return Some(cut);
        }
        let is_for_job = state.phase == LanePhase::LiveRepairs && request.purpose != RequestPurpose::Repair;
        is_for_job.then(|| {
            state.left_to_next_pass = true;
            Err(parked(NEXT_PASS))
        })
    }
}
