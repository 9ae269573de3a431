//! Answers that have arrived and are still being checked by custom code. They were paid for, so an aborted run waits a
//! little for the verdicts.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::row_work::WorkedRow;

/// How long an aborted run waits for the checks under way. A check is local work; a user who cannot wait ends the
/// process.
const PATIENCE: Duration = Duration::from_secs(10);

/// The checks of answers that are under way.
#[derive(Debug, Default)]
pub(crate) struct AnswerChecks(Mutex<OpenChecks>);

#[derive(Debug, Default)]
struct OpenChecks {
    begun: u64,
    open: HashSet<u64>,
}

impl AnswerChecks {
    /// Notes that an answer is being checked, for as long as the guard lives.
    pub(crate) fn begin_check(&self) -> CheckGuard<'_> {
        let mut checks = self.lock();
        checks.begun += 1;
        let number = checks.begun;
        checks.open.insert(number);
        drop(checks);
        CheckGuard { checks: self, number }
    }

    /// Drives the rows in flight until the checks that are under way now have ended; returns the rows that ended
    /// meanwhile.
    pub(crate) async fn finish_open_checks<F: Future<Output = WorkedRow>>(
        &self,
        rows_in_flight: &mut FuturesUnordered<F>,
    ) -> Vec<WorkedRow> {
        let begun = self.lock().open.clone();
        let mut done = Vec::new();
        let all_checked = poll_fn(|context| {
            while let Poll::Ready(Some(row)) = rows_in_flight.poll_next_unpin(context) {
                done.push(row);
            }
            if self.lock().open.is_disjoint(&begun) { Poll::Ready(()) } else { Poll::Pending }
        });
        if !begun.is_empty() {
            // Slower checks are cut off with the other rows.
            drop(tokio::time::timeout(PATIENCE, all_checked).await);
        }
        done
    }

    fn lock(&self) -> MutexGuard<'_, OpenChecks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that is being checked.
#[derive(Debug)]
pub(crate) struct CheckGuard<'c> {
    checks: &'c AnswerChecks,
    number: u64,
}

impl Drop for CheckGuard<'_> {
    fn drop(&mut self) {
        self.checks.lock().open.remove(&self.number);
    }
}
