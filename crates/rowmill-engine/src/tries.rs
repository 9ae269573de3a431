//! The reaction to a failed call: a retry after a wait, another model, or nothing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rowmill_core::limits::Blame;
use rowmill_core::ports::Event;
use rowmill_types::{CallError, Fault, Request};

use crate::account::Halt;
use crate::ask::{NoAnswer, Turn};
use crate::keys::jitter;

/// How long the last rows of a run blame an outage of the provider before they suspect themselves.
const DOUBT: Duration = Duration::from_secs(60);

/// What follows a failed call.
#[derive(Clone, Copy)]
pub(crate) enum Next {
    /// A retry, after this wait.
    After(Duration),
    /// An attempt with another model.
    Elsewhere,
    /// Nothing: there is no answer.
    None,
}

impl Turn<'_> {
    /// Lets only this row wait, if it was refused alone or the provider gave no time to retry. The row is released if
    /// the run stops meanwhile, or if the provider refuses all calls for too long.
    pub(crate) async fn step_aside(
        &self,
        request: &Request,
        error: &CallError,
        blame: Blame,
    ) -> Result<(), NoAnswer> {
        let base = self.row.shared.worker.retry.base;
        let wait = match blame {
            Blame::StrayRefusal(Some(asked)) => {
                asked + base.min(asked / 10).mul_f64(jitter(&request.key, request.attempt))
            }
            Blame::StrayRefusal(None) => base,
            _ if error.fault() == (Fault::Throttled { after: None }) => base,
            _ => return Ok(()),
        };
        let gate = self.lane_at(self.lane).map(|lane| &lane.gate);
        let wait = gate.map_or(wait, |gate| gate.longest_wait(wait));
        // A row with tools keeps what they hold for it, and therefore its slot.
        let gives_place = matches!(blame, Blame::StrayRefusal(_)) && self.row.crew.tools.is_none();
        let _aside = gives_place.then(|| self.row.shared.aside.step());
        if !self.pause(error, wait).await {
            return Err(self.row.given_back(None));
        }
        match gate.map(|gate| gate.check_refused()) {
            Some(Err(problem)) => Err(self.row.given_back(Some(Halt::Problem(problem)))),
            _ => Ok(()),
        }
    }

    /// Whether this row may be the cause itself: no other row is left to show that the provider is up, and an outage
    /// would be over by now.
    pub(crate) fn is_suspect(&self, error: &CallError) -> bool {
        matches!(error.fault(), Fault::Transient { .. })
            && self.row.shared.all_sent.load(Ordering::Relaxed)
            && self.lane_at(self.lane).is_some_and(|lane| lane.gate.stuck_for() >= DOUBT)
    }

    /// Decides whether there is another attempt, with this model or with the next.
    pub(crate) fn next_try(&mut self, request: &Request, error: &CallError, blame: Blame) -> Next {
        let gate = self.lane_at(self.lane).map(|lane| &lane.gate);
        let kept = |after| gate.and_then(|gate| gate.kept_wait(after));
        let fault = match error.fault() {
            Fault::Throttled { after } if blame == Blame::Unwaited => Fault::Transient { after: kept(after) },
            Fault::Transient { after } => Fault::Transient { after: kept(after) },
            fault => fault,
        };
        let worker = &self.row.shared.worker;
        if let Some(wait) = worker.retry.wait(self.failed, fault, jitter(&request.key, request.attempt)) {
            let wait = gate.map_or(wait, |gate| gate.longest_wait(wait));
            let left = self.row.time_left();
            return if left.is_some_and(|left| left <= wait) { Next::None } else { Next::After(wait) };
        }
        let has_next = self.lane_at(self.lane + 1).is_some();
        // A request that is too large for the limits of one model may fit those of another.
        if has_next && matches!(fault, Fault::Transient { .. } | Fault::Throttled { .. }) {
            self.lane += 1;
            self.failed = 0;
            return Next::Elsewhere;
        }
        Next::None
    }

    /// Waits before a retry; a drain ends the wait, and then there is no retry.
    pub(crate) async fn pause(&self, error: &CallError, wait: Duration) -> bool {
        let number = self.row.number;
        let shared = self.row.shared;
        shared.observer.observe(&Event::Retrying { number, error, wait });
        tokio::select! {
            () = tokio::time::sleep(wait) => true,
            () = shared.stop.drained() => false,
        }
    }
}
