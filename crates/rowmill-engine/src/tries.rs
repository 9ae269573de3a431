//! The reaction to a failed call: a retry after a wait, another model, or nothing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rowmill_core::limits::FailureBlame;
use rowmill_core::ports::RunEvent;
use rowmill_types::{CallError, CallRetryClass, Request};

use crate::model_turn::{ModelTurn, NoModelAnswer};
use crate::request_keys::retry_jitter;
use crate::run_account::RunHalt;

/// How long the last rows of a run blame an outage of the provider before they suspect themselves.
const DOUBT: Duration = Duration::from_secs(60);

/// What follows a failed call.
#[derive(Clone, Copy)]
pub(crate) enum NextAttempt {
    /// A retry, after this wait.
    After(Duration),
    /// An attempt with another model.
    OtherModel,
    /// Nothing: there is no answer.
    None,
}

impl ModelTurn<'_> {
    /// Lets only this row wait, if it was refused alone or the provider gave no time to retry. The row is released if
    /// the run stops meanwhile, or if the provider refuses all calls for too long.
    pub(crate) async fn wait_as_waiting_row(
        &self,
        request: &Request,
        error: &CallError,
        blame: FailureBlame,
    ) -> Result<(), NoModelAnswer> {
        let base = self.row.shared.worker.retry.base;
        let wait = match blame {
            FailureBlame::StrayRefusal(Some(asked)) => {
                asked + base.min(asked / 10).mul_f64(retry_jitter(&request.key, request.attempt))
            }
            FailureBlame::StrayRefusal(None) => base,
            _ if error.retry_class() == (CallRetryClass::Throttled { after: None }) => base,
            _ => return Ok(()),
        };
        let gate = self.endpoint_at(self.endpoint).map(|endpoint| &endpoint.gate);
        let wait = gate.map_or(wait, |gate| gate.capped_wait(wait));
        // A row with tools keeps what they hold for it, and therefore its slot.
        let gives_place =
            matches!(blame, FailureBlame::StrayRefusal(_)) && self.row.row_worker.tools.is_none();
        let _aside = gives_place.then(|| self.row.shared.waiting_rows.begin_wait());
        if !self.pause(error, wait).await {
            return Err(self.row.release_or_fail(None));
        }
        match gate.map(|gate| gate.check_refusal_patience()) {
            Some(Err(problem)) => Err(self.row.release_or_fail(Some(RunHalt::Problem(problem)))),
            _ => Ok(()),
        }
    }

    /// Whether this row may be the cause itself: no other row is left to show that the provider is up, and an outage
    /// would be over by now.
    pub(crate) fn is_suspect(&self, error: &CallError) -> bool {
        matches!(error.retry_class(), CallRetryClass::Transient { .. })
            && self.row.shared.all_sent.load(Ordering::Relaxed)
            && self.endpoint_at(self.endpoint).is_some_and(|endpoint| endpoint.gate.blocked_for() >= DOUBT)
    }

    /// Decides whether there is another attempt, with this model or with the next.
    pub(crate) fn next_try(
        &mut self,
        request: &Request,
        error: &CallError,
        blame: FailureBlame,
    ) -> NextAttempt {
        let gate = self.endpoint_at(self.endpoint).map(|endpoint| &endpoint.gate);
        let kept = |after| gate.and_then(|gate| gate.kept_wait(after));
        let fault = match error.retry_class() {
            CallRetryClass::Throttled { after } if blame == FailureBlame::ProviderNotAwaited => {
                CallRetryClass::Transient { after: kept(after) }
            }
            CallRetryClass::Transient { after } => CallRetryClass::Transient { after: kept(after) },
            fault => fault,
        };
        let worker = &self.row.shared.worker;
        if let Some(wait) =
            worker.retry.next_wait(self.failed, fault, retry_jitter(&request.key, request.attempt))
        {
            let wait = gate.map_or(wait, |gate| gate.capped_wait(wait));
            let left = self.row.time_left();
            return if left.is_some_and(|left| left <= wait) {
                NextAttempt::None
            } else {
                NextAttempt::After(wait)
            };
        }
        let has_next = self.endpoint_at(self.endpoint + 1).is_some();
        // A request that is too large for the limits of one model may fit those of another.
        if has_next && matches!(fault, CallRetryClass::Transient { .. } | CallRetryClass::Throttled { .. }) {
            self.endpoint += 1;
            self.failed = 0;
            return NextAttempt::OtherModel;
        }
        NextAttempt::None
    }

    /// Waits before a retry; a drain ends the wait, and then there is no retry.
    pub(crate) async fn pause(&self, error: &CallError, wait: Duration) -> bool {
        let number = self.row.number;
        let shared = self.row.shared;
        shared.observer.observe(&RunEvent::Retrying { number, error, wait });
        tokio::select! {
            () = tokio::time::sleep(wait) => true,
            () = shared.stop.wait_for_drain() => false,
        }
    }
}
