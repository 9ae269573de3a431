//! The money of a run and the ledger entries that back it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rowmill_core::limits::{Budget, Reservation, Reserved, Spend};
use rowmill_core::ports::{Appended, Epoch, Event, Group, Observer, OpenLedger};
use rowmill_types::Problem;
use tokio::sync::Notify;

use crate::asking::{Asking, Sizing};
use crate::lane::Lane;

/// The budget and the ledger, shared by the loop and the rows in flight.
pub(crate) struct Account {
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
    told_of_caps: AtomicBool,
    told_of_pace: AtomicBool,
}

/// Why a call is not sent and the run ends.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The call's worst case does not fit the rest of the budget.
    Budget(Spend),
    /// Something that makes every further call pointless.
    Problem(Problem),
}

/// A call whose worst case is reserved.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) reservation: Reservation,
    pub(crate) sizing: Sizing,
}

/// A call whose worst case is reserved, and what the ledger must record before the call may be sent.
struct SetAside {
    granted: Granted,
    cover: Option<Spend>,
}

/// A call that the ledger does not cover: it is not sent, and dropping this frees its reservation.
struct Uncovered<'a> {
    account: &'a Account,
    reservation: Option<Reservation>,
}

impl Drop for Uncovered<'_> {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.account.settle(reservation, Some(Spend::default()));
        }
    }
}

impl Account {
    pub(crate) fn new(
        budget: Budget,
        ledger: OpenLedger,
        parallel: usize,
        observer: Arc<dyn Observer>,
    ) -> Self {
        Self {
            is_limited: budget.limits().any(),
            budget: Mutex::new(budget),
            parallel,
            ledger,
            freed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
            observer,
            told_of_caps: AtomicBool::new(false),
            told_of_pace: AtomicBool::new(false),
        }
    }

    pub(crate) async fn append(&self, group: Group<'_>) -> Result<Appended, Problem> {
        self.ledger.ledger.append(self.ledger.epoch, group).await
    }

    /// The part of the run.
    pub(crate) fn epoch(&self) -> Epoch {
        self.ledger.epoch
    }

    pub(crate) fn budget(&self) -> Budget {
        locked(&self.budget).clone()
    }

    /// Reserves the worst case of a call; `None` if calls in flight must end first, other calls came first, or the
    /// ledger must be written first.
    pub(crate) fn try_reserve(&self, lane: &Lane, asking: &Asking) -> Option<Result<Granted, Halt>> {
        let _turn = if self.is_limited { Some(self.turn.try_lock().ok()?) } else { None };
        match self.set_aside(lane, asking)? {
            Ok(SetAside { granted, cover: None }) => Some(Ok(granted)),
            Ok(SetAside { granted, cover: Some(_) }) => {
                self.settle(granted.reservation, Some(Spend::default()));
                None
            }
            Err(halt) => Some(Err(halt)),
        }
    }

    /// The same, but writes to the ledger if it must.
    pub(crate) async fn reserve_now(&self, lane: &Lane, asking: &Asking) -> Option<Result<Granted, Halt>> {
        let _turn = if self.is_limited { Some(self.turn.try_lock().ok()?) } else { None };
        match self.set_aside(lane, asking)? {
            Ok(set_aside) => Some(self.cover(set_aside).await),
            Err(halt) => Some(Err(halt)),
        }
    }

    /// Waits until the worst case of a call can be reserved, in order of arrival.
    pub(crate) async fn reserve(
        &self,
        lane: &Lane,
        asking: &Asking,
        waits: impl Fn(),
    ) -> Result<Granted, Halt> {
        let _turn = if self.is_limited { Some(self.turn.lock().await) } else { None };
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            match self.set_aside(lane, asking) {
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
        let Some(spent) = locked(&self.budget).to_close() else { return };
        // If this cannot be written, a resume counts too much rather than too little.
        if self.append(Group { cover: Some(spent), ..Group::default() }).await.is_ok() {
            locked(&self.budget).covered(spent);
        }
    }

    /// Reserves the worst case of a call; the ledger may have to be written before the call is sent.
    fn set_aside(&self, lane: &Lane, asking: &Asking) -> Option<Result<SetAside, Halt>> {
        let calls = if self.is_limited { lane.gate.wanted().min(self.parallel) as u64 } else { 1 };
        let mut budget = locked(&self.budget);
        let left = budget.left();
        let sizing = asking.sizing(lane, left, calls);
        let reservation = match budget.reserve(sizing.worst) {
            Reserved::Granted(reservation) => reservation,
            Reserved::Later => {
                let (flying, is_end) = (budget.calls(), budget.is_nearly_spent());
                drop(budget);
                // The first answers have a high cap, and a truncated one gets a higher one: both are temporary.
                let lasts = lane.output_caps.as_ref().is_none_or(|caps| caps.knows_answers());
                if lasts && !is_end && !asking.is_for_more() && flying < lane.gate.allowed() as u64 {
                    self.tell_of_pace(lane, flying);
                }
                return None;
            }
            Reserved::Never => return Some(Err(Halt::Budget(sizing.worst))),
        };
        let cover = budget.to_cover();
        drop(budget);
        if let Some(tokens) = sizing.cap {
            let fitting = self.is_limited.then(|| left.whole.times(sizing.worst).min(calls));
            self.tell_of_cap(lane, tokens, fitting);
        }
        Some(Ok(SetAside { granted: Granted { reservation, sizing }, cover }))
    }

    /// Records in the ledger an upper bound of the run's spending that includes this call.
    async fn cover(&self, set_aside: SetAside) -> Result<Granted, Halt> {
        let SetAside { granted, cover } = set_aside;
        let Some(cover) = cover else { return Ok(granted) };
        let mut uncovered = Uncovered { account: self, reservation: Some(granted.reservation) };
        let written = self.append(Group { cover: Some(cover), ..Group::default() }).await;
        match written.map(|appended| appended.trouble) {
            Ok(None) => {
                uncovered.reservation = None;
                locked(&self.budget).covered(cover);
                Ok(granted)
            }
            Ok(Some(problem)) | Err(problem) => Err(Halt::Problem(problem)),
        }
    }

    fn tell_of_cap(&self, lane: &Lane, tokens: u64, calls: Option<u64>) {
        if !self.told_of_caps.swap(true, Ordering::Relaxed) {
            self.observer.observe(&Event::AnswersLimited { lane: &lane.name, tokens, calls });
        }
    }

    fn tell_of_pace(&self, lane: &Lane, calls: u64) {
        if !self.told_of_pace.swap(true, Ordering::Relaxed) {
            self.observer.observe(&Event::PacedByBudget { lane: &lane.name, calls });
        }
    }

    pub(crate) fn tell_of_longer_answer(&self, lane: &Lane, allowed: u64, used: u64) {
        self.observer.observe(&Event::LimitIgnored { lane: &lane.name, allowed, used });
    }

    /// Whether the reservation of a call that had to wait is still sufficient.
    pub(crate) fn is_enough(&self, reservation: &Reservation) -> bool {
        locked(&self.budget).is_enough(reservation)
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
