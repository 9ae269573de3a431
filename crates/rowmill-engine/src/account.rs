//! The money of a run and the ledger that vouches for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rowmill_core::limits::{Budget, Reservation, Reserved, Spend};
use rowmill_core::ports::{Appended, Event, Group, Ledger, Observer};
use rowmill_types::Problem;
use tokio::sync::Notify;

use crate::asking::{Asking, Sizing};
use crate::lane::Lane;

/// The budget and the ledger, shared by the loop and the rows in flight.
pub(crate) struct Account {
    budget: Mutex<Budget>,
    /// Whether anything is limited.
    is_limited: bool,
    /// Rows that may be worked on at once.
    parallel: usize,
    ledger: Mutex<Box<dyn Ledger>>,
    /// Told whenever something was settled, because it may leave room for another call.
    freed: Notify,
    /// Whoever waits holds this, so that calls go in the order in which they came, and one that
    /// needs much is not passed by for ever.
    turn: tokio::sync::Mutex<()>,
    observer: Arc<dyn Observer>,
    told_of_caps: AtomicBool,
    told_of_pace: AtomicBool,
}

/// Why a call is not sent and the run ends.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Its worst case does not fit what is left of the budget.
    Budget(Spend),
    /// Something that makes every further call pointless.
    Problem(Problem),
}

/// A call whose worst case is set aside.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) reservation: Reservation,
    pub(crate) sizing: Sizing,
}

impl Account {
    pub(crate) fn new(
        budget: Budget,
        ledger: Box<dyn Ledger>,
        parallel: usize,
        observer: Arc<dyn Observer>,
    ) -> Self {
        Self {
            is_limited: budget.limits().any(),
            budget: Mutex::new(budget),
            parallel,
            ledger: Mutex::new(ledger),
            freed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
            observer,
            told_of_caps: AtomicBool::new(false),
            told_of_pace: AtomicBool::new(false),
        }
    }

    pub(crate) fn append(&self, group: Group<'_>) -> Result<Appended, Problem> {
        locked(&self.ledger).append(group)
    }

    pub(crate) fn budget(&self) -> Budget {
        locked(&self.budget).clone()
    }

    /// Sets the worst case of a call aside; `None` if calls in flight must end first, or others
    /// came before. The ledger knows of it before this returns.
    pub(crate) fn try_reserve(&self, lane: &Lane, asking: &Asking) -> Option<Result<Granted, Halt>> {
        if !self.is_limited {
            return self.set_aside(lane, asking);
        }
        let _turn = self.turn.try_lock().ok()?;
        self.set_aside(lane, asking)
    }

    /// Waits until the worst case of a call can be set aside, in the order in which calls came.
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
            if let Some(outcome) = self.set_aside(lane, asking) {
                return outcome;
            }
            waits();
            freed.await;
        }
    }

    /// Puts on record what was spent, now that no call is in flight: the ledger vouched for more, which a
    /// resume would count otherwise, however the run ended.
    pub(crate) fn close(&self) {
        let mut budget = locked(&self.budget);
        if let Some(spent) = budget.to_close() {
            // Where it cannot be written, the resume counts too much and not too little.
            if self.append(Group { cover: Some(spent), ..Group::default() }).is_ok() {
                budget.covered(spent);
            }
        }
    }

    fn set_aside(&self, lane: &Lane, asking: &Asking) -> Option<Result<Granted, Halt>> {
        let calls = if self.is_limited { lane.gate.wanted().min(self.parallel) as u64 } else { 1 };
        let mut budget = locked(&self.budget);
        let left = budget.left();
        let sizing = asking.sizing(lane, left, calls);
        let reservation = match budget.reserve(sizing.worst) {
            Reserved::Granted(reservation) => reservation,
            Reserved::Later => {
                let (flying, is_end) = (budget.calls(), budget.is_nearly_spent());
                drop(budget);
                // The first answers have much room, and one that was cut gets more: both pass.
                let lasts = lane.output_caps.as_ref().is_none_or(|caps| caps.knows_answers());
                if lasts && !is_end && !asking.is_for_more() && flying < lane.gate.allowed() as u64 {
                    self.tell_of_pace(lane, flying);
                }
                return None;
            }
            Reserved::Never => return Some(Err(Halt::Budget(sizing.worst))),
        };
        if let Some(cover) = budget.to_cover() {
            let written = self.append(Group { cover: Some(cover), ..Group::default() });
            match written.map(|appended| appended.trouble) {
                Ok(None) => budget.covered(cover),
                Ok(Some(problem)) | Err(problem) => {
                    budget.settle(reservation, Some(Spend::default()));
                    return Some(Err(Halt::Problem(problem)));
                }
            }
        }
        drop(budget);
        if let Some(tokens) = sizing.cap {
            let fitting = self.is_limited.then(|| left.whole.times(sizing.worst).min(calls));
            self.tell_of_cap(lane, tokens, fitting);
        }
        Some(Ok(Granted { reservation, sizing }))
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

    /// Tells whether the call is the first that used more than was set aside for it.
    pub(crate) fn settle(&self, reservation: Reservation, actual: Option<Spend>) -> bool {
        let passed = locked(&self.budget).settle(reservation, actual);
        self.freed.notify_waiters();
        passed
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
