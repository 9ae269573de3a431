//! State that a loop shares with work on a borrowed thread, which waits a moment for more before it gives
//! the thread back.
//!
//! Without the wait, a quick run would borrow another thread for every few rows. That costs a hand-over each time,
//! and allocators keep memory for every thread that has worked once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread is kept for work that may come: longer than a quick loop takes for a few batches, and
/// so short that other runs hardly notice when threads are few.
const PATIENCE: Duration = Duration::from_millis(4);

/// The state, locked.
pub(crate) type Guard<'a, T> = MutexGuard<'a, T>;

/// State behind a lock, and a way to wait for its next change.
#[derive(Debug, Default)]
pub(crate) struct BriefWait<T> {
    state: Mutex<T>,
    changed: Condvar,
}

impl<T> BriefWait<T> {
    pub(crate) fn new(state: T) -> Self {
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Locks the state. A panic elsewhere leaves it as it was: every change to it is one step.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whoever waits that there is something to do.
    pub(crate) fn notify(&self) {
        self.changed.notify_one();
    }

    /// Gives up the lock for a moment while there is nothing to do.
    pub(crate) fn wait_while<'a>(
        &self,
        state: Guard<'a, T>,
        is_idle: impl FnMut(&mut T) -> bool,
    ) -> Guard<'a, T> {
        let waited = self.changed.wait_timeout_while(state, PATIENCE, is_idle);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
