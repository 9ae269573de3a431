//! The report of a batch.

use std::time::Duration;

use rowmill_core::summary::SummaryNumbers;
use rowmill_engine::{RunOutcome, StopCause};
use rowmill_types::{Money, TokenUsage};

use super::result_collector::BatchCounts;
use super::vocabulary::LIBRARY_VOCABULARY;

/// The report of a batch. It covers this batch only.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BatchReport {
    /// Items with a result, including those of an earlier run.
    pub ok: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items with a result that an earlier run had already paid for.
    pub kept: u64,
    /// Items whose work was cancelled; calls that were sent for them may have been billed.
    pub cancelled: u64,
    /// Items that were never started, as far as the number of items is known.
    pub not_run: u64,
    /// The tokens that the calls used, as far as providers reported them.
    pub usage: TokenUsage,
    /// The cost of the calls, as far as prices are known.
    pub cost: Money,
    /// The amount that was or may have been spent, over all runs of a batch with a ledger. Interrupted
    /// calls count with their maximum cost.
    pub spent: Money,
    /// The duration of the batch.
    pub duration: Duration,
    /// Why the batch ended before all items were worked on, if it did.
    pub stopped: Option<StopCause>,
    /// All counts, as in the summary of `rowmill run`.
    pub numbers: SummaryNumbers,
}

impl BatchReport {
    pub(super) fn new(end: RunOutcome, counts: &BatchCounts, items: u64) -> Self {
        let BatchCounts { ok, failed, kept, usage, cost, .. } = *counts;
        let cancelled = end.unknown_rows;
        Self {
            ok,
            // Cancelled items are counted separately from those that failed by themselves.
            failed: failed.saturating_sub(cancelled),
            kept,
            cancelled,
            not_run: items.saturating_sub(ok + failed),
            usage,
            cost,
            spent: end.spent.cost,
            duration: end.duration,
            stopped: end.stopped.map(|cause| match cause {
                StopCause::Problem(problem) => {
                    StopCause::Problem(problem.with_vocabulary(LIBRARY_VOCABULARY))
                }
                other => other,
            }),
            numbers: end.tally.summary_numbers(end.duration),
        }
    }
}

/// The results of a batch in the order of the items, and its report.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BatchResults<S> {
    /// One result per item, in the order of the items.
    pub items: Vec<S>,
    /// The report of the batch.
    pub report: BatchReport,
}

impl<S> BatchResults<S> {
    pub(super) fn new(items: Vec<S>, report: BatchReport) -> Self {
        Self { items, report }
    }

    /// Returns the results without the report.
    #[must_use]
    pub fn into_vec(self) -> Vec<S> {
        self.items
    }
}

impl<S> IntoIterator for BatchResults<S> {
    type Item = S;
    type IntoIter = std::vec::IntoIter<S>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, S> IntoIterator for &'a BatchResults<S> {
    type Item = &'a S;
    type IntoIter = std::slice::Iter<'a, S>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

/// The first result of a batch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FirstBatchResult<U> {
    /// The index of the item, counted from 0, and its result; `None` if no item had one.
    pub result: Option<(usize, U)>,
    /// The report of the batch, including items that were cancelled or never started.
    pub report: BatchReport,
}

impl<U> FirstBatchResult<U> {
    pub(super) fn new(result: Option<(usize, U)>, report: BatchReport) -> Self {
        Self { result, report }
    }
}
