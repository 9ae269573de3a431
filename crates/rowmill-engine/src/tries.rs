//! What comes after a failed call: another try and the wait before it, another model, or nothing.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rowmill_core::limits::Blame;
use rowmill_core::ports::Event;
use rowmill_types::{CallError, Fault, Request};

use crate::account::Halt;
use crate::ask::{NoAnswer, Turn};
use crate::keys::jitter;

/// How long the last rows of a run take a provider for down before they doubt themselves.
const DOUBT: Duration = Duration::from_secs(60);

/// What follows a failed call.
#[derive(Clone, Copy)]
pub(crate) enum Next {
    /// Another try, after this wait.
    After(Duration),
    /// A try with another model.
    Elsewhere,
    /// Nothing: there is no answer.
    None,
}

impl Turn<'_> {
    /// Lets this row alone wait, where it was refused alone, or nobody said when to come back. The row is given
    /// back if the run stops meanwhile, or the provider lets nothing through for too long.
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
        // A row with tools keeps what they hold for it, and so its place.
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

    /// Whether this row may be the cause itself: no other is left to show that the provider
    /// is there, and an outage would have passed.
    pub(crate) fn is_suspect(&self, error: &CallError) -> bool {
        matches!(error.fault(), Fault::Transient { .. })
            && self.row.shared.all_sent.load(Ordering::Relaxed)
            && self.lane_at(self.lane).is_some_and(|lane| lane.gate.stuck_for() >= DOUBT)
    }

    /// Decides whether there is another try, here or with the next model.
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
