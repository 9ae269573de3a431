//! The money of a run and the ledger entries that back it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rowmill_core::limits::{Budget, Reservation, ReserveOutcome, Spend};
use rowmill_core::ports::{AppendOutcome, EventGroup, Observer, OpenLedger, RunEvent};
use rowmill_types::Problem;
use tokio::sync::Notify;

use crate::call_demand::{CallDemand, CallSizing};
use crate::endpoint::ModelEndpoint;

/// The budget and the ledger, shared by the loop and the rows in flight.
pub(crate) struct RunAccount {
    budget: Mutex<Budget>,
    /// Whether anything is limited.
    is_limited: bool,
    /// The maximum number of rows worked on at once.
    parallel: usize,
    ledger: OpenLedger,
    /// Notified whenever a call was settled, because that may leave room for another call.
    freed: Notify,
    /// Held by the first call that waits, so that calls go in order of arrival and one that needs much is never
    /// starved.
    turn: tokio::sync::Mutex<()>,
    observer: Arc<dyn Observer>,
    reported_caps: AtomicBool,
    reported_pace: AtomicBool,
}

/// Why a call is not sent and the run ends.
#[derive(Debug)]
pub(crate) enum RunHalt {
    /// The call's worst case does not fit the rest of the budget.
    Budget(Spend),
    /// Something that makes every further call pointless.
    Problem(Problem),
}

/// A call whose worst case is reserved.
#[derive(Debug)]
pub(crate) struct GrantedCall {
    pub(crate) reservation: Reservation,
    pub(crate) sizing: CallSizing,
}

/// A call whose worst case is reserved, and what the ledger must record before the call may be sent.
struct PendingGrant {
    granted: GrantedCall,
    cover: Option<Spend>,
}

/// A call that the ledger does not cover: it is not sent, and dropping this frees its reservation.
struct UncoveredCall<'a> {
    account: &'a RunAccount,
    reservation: Option<Reservation>,
}

impl Drop for UncoveredCall<'_> {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.account.settle(reservation, Some(Spend::default()));
        }
    }
}

impl RunAccount {
    pub(crate) fn new(
        budget: Budget,
        ledger: OpenLedger,
        parallel: usize,
        observer: Arc<dyn Observer>,
    ) -> Self {
        Self {
            is_limited: budget.limits().is_limited(),
            budget: Mutex::new(budget),
            parallel,
            ledger,
            freed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
            observer,
            reported_caps: AtomicBool::new(false),
            reported_pace: AtomicBool::new(false),
        }
    }

    pub(crate) async fn append(&self, group: EventGroup<'_>) -> Result<AppendOutcome, Problem> {
        self.ledger.ledger.append(self.ledger.epoch, group).await
    }

    pub(crate) fn budget(&self) -> Budget {
        locked(&self.budget).clone()
    }

    /// Reserves the worst case of a call; `None` if calls in flight must end first, other calls came first, or the
    /// ledger must be written first.
    pub(crate) fn try_reserve(
        &self,
        endpoint: &ModelEndpoint,
        demand: &CallDemand,
    ) -> Option<Result<GrantedCall, RunHalt>> {
        let _turn = if self.is_limited { Some(self.turn.try_lock().ok()?) } else { None };
        match self.grant(endpoint, demand)? {
            Ok(PendingGrant { granted, cover: None }) => Some(Ok(granted)),
            Ok(PendingGrant { granted, cover: Some(_) }) => {
                self.settle(granted.reservation, Some(Spend::default()));
                None
            }
            Err(halt) => Some(Err(halt)),
        }
    }

    /// The same, but writes to the ledger if it must.
    pub(crate) async fn reserve_now(
        &self,
        endpoint: &ModelEndpoint,
        demand: &CallDemand,
    ) -> Option<Result<GrantedCall, RunHalt>> {
        let _turn = if self.is_limited { Some(self.turn.try_lock().ok()?) } else { None };
        match self.grant(endpoint, demand)? {
            Ok(set_aside) => Some(self.cover(set_aside).await),
            Err(halt) => Some(Err(halt)),
        }
    }

    /// Waits until the worst case of a call can be reserved, in order of arrival.
    pub(crate) async fn reserve(
        &self,
        endpoint: &ModelEndpoint,
        demand: &CallDemand,
        waits: impl Fn(),
    ) -> Result<GrantedCall, RunHalt> {
        let _turn = if self.is_limited { Some(self.turn.lock().await) } else { None };
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            match self.grant(endpoint, demand) {
                Some(Ok(set_aside)) => return self.cover(set_aside).await,
                Some(Err(halt)) => return Err(halt),
                None => {}
            }
            waits();
            freed.await;
        }
    }

    /// Records the actual spending, now that no call is in flight: the recorded upper bound is higher, and a resume
    /// would count that otherwise, however the run ended.
    pub(crate) async fn close(&self) {
        let Some(spent) = locked(&self.budget).final_spend_bound_to_record() else { return };
        // If this cannot be written, a resume counts too much rather than too little.
        if self.append(EventGroup { spent_at_most: Some(spent), ..EventGroup::default() }).await.is_ok() {
            locked(&self.budget).set_recorded_spend_bound(spent);
        }
    }

    /// Reserves the worst case of a call; the ledger may have to be written before the call is sent.
    fn grant(&self, endpoint: &ModelEndpoint, demand: &CallDemand) -> Option<Result<PendingGrant, RunHalt>> {
        let calls = if self.is_limited { endpoint.gate.wanted_calls().min(self.parallel) as u64 } else { 1 };
        let mut budget = locked(&self.budget);
        let left = budget.remaining();
        let sizing = demand.sizing(endpoint, left, calls);
        let reservation = match budget.reserve(sizing.max_spend) {
            ReserveOutcome::Granted(reservation) => reservation,
            ReserveOutcome::Later => {
                let (flying, is_end) = (budget.calls_in_flight(), budget.is_nearly_spent());
                drop(budget);
                // The first answers have a high cap, and a truncated one gets a higher one: both are temporary.
                let lasts = endpoint.output_caps.as_ref().is_none_or(|caps| caps.has_enough_samples());
                if lasts
                    && !is_end
                    && !demand.wants_longer_answer()
                    && flying < endpoint.gate.max_calls_in_flight() as u64
                {
                    self.report_pace(endpoint, flying);
                }
                return None;
            }
            ReserveOutcome::Never => return Some(Err(RunHalt::Budget(sizing.max_spend))),
        };
        let cover = budget.spend_bound_to_record();
        drop(budget);
        if let Some(tokens) = sizing.cap {
            let fitting = self.is_limited.then(|| left.whole.times_it_fits(sizing.max_spend).min(calls));
            self.report_cap(endpoint, tokens, fitting);
        }
        Some(Ok(PendingGrant { granted: GrantedCall { reservation, sizing }, cover }))
    }

    /// Records in the ledger an upper bound of the run's spending that includes this call.
    async fn cover(&self, set_aside: PendingGrant) -> Result<GrantedCall, RunHalt> {
        let PendingGrant { granted, cover } = set_aside;
        let Some(cover) = cover else { return Ok(granted) };
        let mut uncovered = UncoveredCall { account: self, reservation: Some(granted.reservation) };
        let written = self.append(EventGroup { spent_at_most: Some(cover), ..EventGroup::default() }).await;
        match written.map(|appended| appended.problem) {
            Ok(None) => {
                uncovered.reservation = None;
                locked(&self.budget).set_recorded_spend_bound(cover);
                Ok(granted)
            }
            Ok(Some(problem)) | Err(problem) => Err(RunHalt::Problem(problem)),
        }
    }

    fn report_cap(&self, endpoint: &ModelEndpoint, tokens: u64, calls: Option<u64>) {
        if !self.reported_caps.swap(true, Ordering::Relaxed) {
            self.observer.observe(&RunEvent::AnswersCapped { endpoint: &endpoint.name, tokens, calls });
        }
    }

    fn report_pace(&self, endpoint: &ModelEndpoint, calls: u64) {
        if !self.reported_pace.swap(true, Ordering::Relaxed) {
            self.observer.observe(&RunEvent::PacedByBudget { endpoint: &endpoint.name, calls });
        }
    }

    pub(crate) fn report_ignored_cap(&self, endpoint: &ModelEndpoint, allowed: u64, used: u64) {
        self.observer.observe(&RunEvent::OutputCapIgnored { endpoint: &endpoint.name, allowed, used });
    }

    /// Whether the reservation of a call that had to wait is still sufficient.
    pub(crate) fn still_covers(&self, reservation: &Reservation) -> bool {
        locked(&self.budget).is_reservation_sufficient(reservation)
    }

    /// Returns whether the call is the first that used more than its reservation.
    pub(crate) fn settle(&self, reservation: Reservation, actual: Option<Spend>) -> bool {
        let passed = locked(&self.budget).settle(reservation, actual);
        self.freed.notify_waiters();
        passed
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
