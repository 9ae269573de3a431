//! The money of a run and the ledger that vouches for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rowmill_core::limits::{Budget, Reservation, Reserved, Spend};
use rowmill_core::ports::{Appended, Group, Ledger};
use rowmill_types::Problem;
use tokio::sync::Notify;

/// The budget and the ledger, shared by the loop and the rows in flight.
pub(crate) struct Account {
    budget: Mutex<Budget>,
    ledger: Mutex<Box<dyn Ledger>>,
    /// Told whenever something was settled, because it may leave room for another call.
    freed: Notify,
}

/// Why a call is not sent and the run ends.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Its worst case does not fit what is left of the budget.
    Budget(Spend),
    /// Something that makes every further call pointless.
    Problem(Problem),
}

impl Account {
    pub(crate) fn new(budget: Budget, ledger: Box<dyn Ledger>) -> Self {
        Self { budget: Mutex::new(budget), ledger: Mutex::new(ledger), freed: Notify::new() }
    }

    pub(crate) fn append(&self, group: Group<'_>) -> Result<Appended, Problem> {
        locked(&self.ledger).append(group)
    }

    pub(crate) fn budget(&self) -> Budget {
        locked(&self.budget).clone()
    }

    /// Sets the worst case of a call aside; `None` if calls in flight must end first. The
    /// ledger knows of it before this returns.
    pub(crate) fn try_reserve(&self, worst: Spend) -> Option<Result<Reservation, Halt>> {
        let mut budget = locked(&self.budget);
        let reservation = match budget.reserve(worst) {
            Reserved::Granted(reservation) => reservation,
            Reserved::Later => return None,
            Reserved::Never => return Some(Err(Halt::Budget(worst))),
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
        Some(Ok(reservation))
    }

    /// Waits until the worst case of a call can be set aside.
    pub(crate) async fn reserve(&self, worst: Spend, waits: impl Fn()) -> Result<Reservation, Halt> {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(outcome) = self.try_reserve(worst) {
                return outcome;
            }
            waits();
            freed.await;
        }
    }

    pub(crate) fn settle(&self, reservation: Reservation, actual: Option<Spend>) {
        locked(&self.budget).settle(reservation, actual);
        self.freed.notify_waiters();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
