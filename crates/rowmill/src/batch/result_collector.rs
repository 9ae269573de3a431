//! Collects the results of items as they end, and delivers them to the caller.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rowmill_core::ports::{Observer, RunEvent};
use rowmill_types::{Money, RowError, TokenUsage};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::backpressure::ItemBackpressure;
use super::failure::ItemError;
use super::item_table::{ItemTable, item_index};
use super::progress::BatchProgress;

/// The result of an item with the item's index.
pub(super) type DeliveredResult<U> = (usize, Result<U, ItemError>);

/// The slot of an item in a list of results; filled when the item has ended.
pub(super) type ResultSlot<U> = Option<Result<U, ItemError>>;

/// Where results go.
pub(super) enum ResultOutlet<U> {
    /// Into a list in the order of the items.
    List(Arc<Mutex<Vec<ResultSlot<U>>>>),
    /// To a receiver that takes them one by one, in the order in which items end.
    Channel(mpsc::UnboundedSender<DeliveredResult<U>>),
    /// Only the first result is wanted.
    First(Arc<Mutex<FirstBatchResultState<U>>>),
}

/// The first result, and the first failure in case it is raised.
pub(super) struct FirstBatchResultState<U> {
    pub(super) result: Option<(usize, U)>,
    pub(super) failure: Option<ItemError>,
}

impl<U> FirstBatchResultState<U> {
    pub(super) fn none() -> Self {
        Self { result: None, failure: None }
    }
}

/// What was spent on an item, and whether it was in flight.
struct ItemSpend {
    usage: TokenUsage,
    cost: Money,
    called: bool,
}

/// The counts of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BatchCounts {
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) kept: u64,
    pub(super) in_flight: u64,
    pub(super) usage: TokenUsage,
    pub(super) cost: Money,
}

/// A callback for the progress of a batch.
pub(super) type ProgressFn = Arc<dyn Fn(&BatchProgress) + Send + Sync>;

/// The callbacks of the program.
#[derive(Clone, Default)]
pub(super) struct BatchCallbacks {
    pub(super) events: Option<Arc<dyn Observer>>,
    pub(super) progress: Option<ProgressFn>,
}

/// The observer of a batch.
pub(super) struct ResultCollector<T, A, U> {
    pub(super) item_table: Arc<ItemTable<T, A, U>>,
    pub(super) outlet: ResultOutlet<U>,
    pub(super) backpressure: Arc<ItemBackpressure>,
    pub(super) hooks: BatchCallbacks,
    pub(super) counts: Mutex<BatchCounts>,
    pub(super) total: Option<u64>,
    pub(super) began: Instant,
}

impl<T, A, U> fmt::Debug for ResultCollector<T, A, U> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Collector").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl<T, A, U> ResultCollector<T, A, U> {
    pub(super) fn counts(&self) -> MutexGuard<'_, BatchCounts> {
        lock_unpoisoned(&self.counts)
    }

    /// Records the end of an item; `spent` is `None` if an earlier run had finished it.
    fn end(&self, number: u64, error: Option<&RowError>, spent: Option<ItemSpend>) {
        let output = self.item_table.remove_item(number);
        let index = item_index(number);
        {
            let mut counts = self.counts();
            counts.ok += u64::from(error.is_none());
            counts.failed += u64::from(error.is_some());
            match spent {
                Some(ItemSpend { usage, cost, called }) => {
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
        self.backpressure.item_ended();
        self.notify();
    }

    fn deliver(&self, index: usize, result: Result<(U, bool), ItemError>) {
        match &self.outlet {
            ResultOutlet::List(list) => {
                let mut list = lock_unpoisoned(list);
                if list.len() <= index {
                    list.resize_with(index + 1, || None);
                }
                if let Some(slot) = list.get_mut(index) {
                    *slot = Some(result.map(|(output, _)| output));
                }
            }
            ResultOutlet::Channel(channel) => {
                // A receiver that was dropped needs no more results.
                drop(channel.send((index, result.map(|(output, _)| output))));
            }
            ResultOutlet::First(first) => {
                let mut first = lock_unpoisoned(first);
                match result {
                    Ok((output, true)) if first.result.is_none() => first.result = Some((index, output)),
                    Ok(_) => {}
                    // Thousands may fail before one succeeds, and one is enough to report.
                    Err(error) => drop(first.failure.get_or_insert(error)),
                }
            }
        }
    }

    fn notify(&self) {
        if let Some(hook) = &self.hooks.progress {
            let BatchCounts { ok, failed, kept, in_flight, usage, cost } = *self.counts();
            let (total, elapsed) = (self.total, self.began.elapsed());
            hook(&BatchProgress { ok, failed, kept, in_flight, total, usage, cost, elapsed });
        }
    }
}

impl<T: Send + Sync, A: Send, U: Send> Observer for ResultCollector<T, A, U> {
    fn observe(&self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Taken { rows } => self.counts().in_flight += *rows as u64,
            RunEvent::Released { rows } => {
                let mut counts = self.counts();
                counts.in_flight = counts.in_flight.saturating_sub(*rows as u64);
            }
            RunEvent::Ended { number, error, usage, cost, called } => {
                self.end(*number, *error, Some(ItemSpend { usage: *usage, cost: *cost, called: *called }));
            }
            RunEvent::FinishedAgain { number, error } => self.end(*number, *error, None),
            RunEvent::Draining => self.backpressure.close(),
            _ => {}
        }
        if let Some(events) = &self.hooks.events {
            events.observe(event);
        }
    }
}

pub(super) fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
