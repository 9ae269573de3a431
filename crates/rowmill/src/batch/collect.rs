//! Collects the results of items as they end, and delivers them to the caller.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rowmill_core::ports::{Event, Observer};
use rowmill_types::{Money, RowError, Usage};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::failure::ItemError;
use super::progress::Progress;
use super::shelf::{Shelf, index};
use super::turnstile::Turnstile;

/// The result of an item with the item's index.
pub(super) type Delivered<U> = (usize, Result<U, ItemError>);

/// The slot of an item in a list of results; filled when the item has ended.
pub(super) type Slot<U> = Option<Result<U, ItemError>>;

/// Where results go.
pub(super) enum Outlet<U> {
    /// Into a list in the order of the items.
    List(Arc<Mutex<Vec<Slot<U>>>>),
    /// To a receiver that takes them one by one, in the order in which items end.
    Channel(mpsc::UnboundedSender<Delivered<U>>),
    /// Only the first result is wanted.
    First(Arc<Mutex<FirstOf<U>>>),
}

/// The first result, and the first failure in case it is raised.
pub(super) struct FirstOf<U> {
    pub(super) result: Option<(usize, U)>,
    pub(super) failure: Option<ItemError>,
}

impl<U> FirstOf<U> {
    pub(super) fn none() -> Self {
        Self { result: None, failure: None }
    }
}

/// What was spent on an item, and whether it was in flight.
struct Spent {
    usage: Usage,
    cost: Money,
    called: bool,
}

/// The counts of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) kept: u64,
    pub(super) in_flight: u64,
    pub(super) usage: Usage,
    pub(super) cost: Money,
}

/// A callback for the progress of a batch.
pub(super) type ProgressFn = Arc<dyn Fn(&Progress) + Send + Sync>;

/// The callbacks of the program.
#[derive(Clone, Default)]
pub(super) struct Hooks {
    pub(super) events: Option<Arc<dyn Observer>>,
    pub(super) progress: Option<ProgressFn>,
}

/// The observer of a batch.
pub(super) struct Collector<T, A, U> {
    pub(super) shelf: Arc<Shelf<T, A, U>>,
    pub(super) outlet: Outlet<U>,
    pub(super) turnstile: Arc<Turnstile>,
    pub(super) hooks: Hooks,
    pub(super) counts: Mutex<Counts>,
    pub(super) total: Option<u64>,
    pub(super) began: Instant,
}

impl<T, A, U> fmt::Debug for Collector<T, A, U> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Collector").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl<T, A, U> Collector<T, A, U> {
    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        locked(&self.counts)
    }

    /// Records the end of an item; `spent` is `None` if an earlier run had finished it.
    fn end(&self, number: u64, error: Option<&RowError>, spent: Option<Spent>) {
        let output = self.shelf.clear(number);
        let index = index(number);
        {
            let mut counts = self.counts();
            counts.ok += u64::from(error.is_none());
            counts.failed += u64::from(error.is_some());
            match spent {
                Some(Spent { usage, cost, called }) => {
                    counts.usage += usage;
                    counts.cost += cost;
                    counts.in_flight = counts.in_flight.saturating_sub(u64::from(called));
                }
                None => counts.kept += u64::from(error.is_none()),
            }
        }
        let result = match (error, output) {
            (None, Some((output, counts))) => Ok((output, counts)),
            (Some(error), _) => Err(ItemError::Failed { index, error: error.clone() }),
            (None, None) => Err(ItemError::NotRun { index }),
        };
        self.deliver(index, result);
        self.turnstile.ended();
        self.tell();
    }

    fn deliver(&self, index: usize, result: Result<(U, bool), ItemError>) {
        match &self.outlet {
            Outlet::List(list) => {
                let mut list = locked(list);
                if list.len() <= index {
                    list.resize_with(index + 1, || None);
                }
                if let Some(slot) = list.get_mut(index) {
                    *slot = Some(result.map(|(output, _)| output));
                }
            }
            Outlet::Channel(channel) => {
                // A receiver that was dropped needs no more results.
                drop(channel.send((index, result.map(|(output, _)| output))));
            }
            Outlet::First(first) => {
                let mut first = locked(first);
                match result {
                    Ok((output, true)) if first.result.is_none() => first.result = Some((index, output)),
                    Ok(_) => {}
                    // Thousands may fail before one succeeds, and one is enough to report.
                    Err(error) => drop(first.failure.get_or_insert(error)),
                }
            }
        }
    }

    fn tell(&self) {
        if let Some(hook) = &self.hooks.progress {
            let Counts { ok, failed, kept, in_flight, usage, cost } = *self.counts();
            let (total, elapsed) = (self.total, self.began.elapsed());
            hook(&Progress { ok, failed, kept, in_flight, total, usage, cost, elapsed });
        }
    }
}

impl<T: Send + Sync, A: Send, U: Send> Observer for Collector<T, A, U> {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Taken { rows } => self.counts().in_flight += *rows as u64,
            Event::Released { rows } => {
                let mut counts = self.counts();
                counts.in_flight = counts.in_flight.saturating_sub(*rows as u64);
            }
            Event::Ended { number, error, usage, cost, called } => {
                self.end(*number, *error, Some(Spent { usage: *usage, cost: *cost, called: *called }));
            }
            Event::Kept { number, error } => self.end(*number, *error, None),
            Event::Draining => self.turnstile.close(),
            _ => {}
        }
        if let Some(events) = &self.hooks.events {
            events.observe(event);
        }
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
