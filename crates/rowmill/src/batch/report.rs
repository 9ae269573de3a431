//! What a batch came to.

use std::time::Duration;

use rowmill_core::summary::Numbers;
use rowmill_engine::{RunEnd, StopCause};
use rowmill_types::{Money, Usage};

use super::collect::Counts;
use super::vocabulary::LIBRARY;

/// What a batch came to, for this batch only.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BatchReport {
    /// Items with a result, those of an earlier run included.
    pub ok: u64,
    /// Items that failed.
    pub failed: u64,
    /// Those of the results that an earlier run had paid for.
    pub kept: u64,
    /// Items whose work was cut short; what was sent for them may have been billed.
    pub cancelled: u64,
    /// Items that were never begun, as far as it is known how many there are.
    pub not_run: u64,
    /// What the calls used, as far as providers reported.
    pub usage: Usage,
    /// What the calls cost, as far as prices are known.
    pub cost: Money,
    /// What was spent or may have been, over all runs of a batch with a ledger. Calls that were
    /// cut count with the most that they can have cost.
    pub spent: Money,
    /// How long it took.
    pub duration: Duration,
    /// Why it ended before all items were worked on, if it did.
    pub stopped: Option<StopCause>,
    /// Everything that was counted, as in the summary of `rowmill run`.
    pub numbers: Numbers,
}

impl BatchReport {
    pub(super) fn new(end: RunEnd, counts: &Counts, items: u64) -> Self {
        let Counts { ok, failed, kept, usage, cost, .. } = *counts;
        let cancelled = end.unknown_rows;
        Self {
            ok,
            // Items that were cut are told apart from those that failed by themselves.
            failed: failed.saturating_sub(cancelled),
            kept,
            cancelled,
            not_run: items.saturating_sub(ok + failed),
            usage,
            cost,
            spent: end.spent.cost,
            duration: end.duration,
            stopped: end.stopped.map(|cause| match cause {
                StopCause::Problem(problem) => StopCause::Problem(problem.worded(LIBRARY)),
                other => other,
            }),
            numbers: end.tally.numbers(end.duration),
        }
    }
}

/// The results of a batch, in the order of the items, and what it came to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Results<S> {
    /// One per item, in the order of the items.
    pub items: Vec<S>,
    /// What the batch came to.
    pub report: BatchReport,
}

impl<S> Results<S> {
    pub(super) fn new(items: Vec<S>, report: BatchReport) -> Self {
        Self { items, report }
    }

    /// The results alone.
    #[must_use]
    pub fn into_vec(self) -> Vec<S> {
        self.items
    }
}

impl<S> IntoIterator for Results<S> {
    type Item = S;
    type IntoIter = std::vec::IntoIter<S>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, S> IntoIterator for &'a Results<S> {
    type Item = &'a S;
    type IntoIter = std::slice::Iter<'a, S>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

/// The first result of a batch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct First<U> {
    /// The place of the item, counted from 0, and its result; `None` if no item had one.
    pub result: Option<(usize, U)>,
    /// What the batch came to, the items included that were cancelled or never begun.
    pub report: BatchReport,
}

impl<U> First<U> {
    pub(super) fn new(result: Option<(usize, U)>, report: BatchReport) -> Self {
        Self { result, report }
    }
}
