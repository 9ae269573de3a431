//! How many rows a number of calls completes, if some rows need none.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rowmill_core::ports::{Observer, RunEvent};

/// The maximum number of stored points; beyond it, every second one is dropped.
const MOST_POINTS: usize = 1024;

/// How many rows have ended before each call, in a run that makes calls one after the other. For many
/// calls only evenly spaced points are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCompletionCurve {
    /// The rows that had ended at every `stride`-th call.
    points: Vec<u64>,
    stride: u64,
    calls: u64,
    rows: u64,
}

impl Default for RowCompletionCurve {
    fn default() -> Self {
        Self { points: Vec::new(), stride: 1, calls: 0, rows: 0 }
    }
}

impl RowCompletionCurve {
    /// The approximate number of rows that end with at most `calls` calls.
    #[must_use]
    pub fn rows_within_calls(&self, calls: u64) -> u64 {
        if calls >= self.calls {
            return self.rows;
        }
        let from = calls - calls % self.stride;
        let to = (from + self.stride).min(self.calls);
        let rows_at = |calls: u64| {
            let point = usize::try_from(calls / self.stride).ok().and_then(|at| self.points.get(at));
            point.copied().filter(|_| calls < self.calls).unwrap_or(self.rows)
        };
        let (low, high) = (rows_at(from), rows_at(to));
        low + (high - low) * (calls - from) / (to - from)
    }

    /// The number of rows that end with all calls.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn row_ended(&mut self) {
        self.rows += 1;
    }

    fn call_made(&mut self) {
        if self.calls.is_multiple_of(self.stride) {
            self.points.push(self.rows);
            if self.points.len() == MOST_POINTS {
                self.points = self.points.iter().copied().step_by(2).collect();
                self.stride *= 2;
            }
        }
        self.calls += 1;
    }
}

/// Observes a run to record its reach, and forwards its events.
pub(crate) struct ReachObserver {
    reach: Mutex<RowCompletionCurve>,
    observer: Arc<dyn Observer>,
}

impl ReachObserver {
    pub(crate) fn new(observer: Arc<dyn Observer>) -> Arc<Self> {
        Arc::new(Self { reach: Mutex::default(), observer })
    }

    /// Records that a call is about to be made.
    pub(crate) fn record_call(&self) {
        self.lock().call_made();
    }

    pub(crate) fn reach(&self) -> RowCompletionCurve {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, RowCompletionCurve> {
        self.reach.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ReachObserver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ReachObserver").field("reach", &self.reach).finish_non_exhaustive()
    }
}

impl Observer for ReachObserver {
    fn observe(&self, event: &RunEvent<'_>) {
        if matches!(event, RunEvent::Ended { .. }) {
            self.lock().row_ended();
        }
        self.observer.observe(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reach for rows of which every `every`-th needs a call.
    fn reach(rows: u64, every: u64) -> RowCompletionCurve {
        let mut reach = RowCompletionCurve::default();
        for row in 0..rows {
            if row.is_multiple_of(every) {
                reach.call_made();
            }
            reach.row_ended();
        }
        reach
    }

    #[test]
    fn rows_that_need_no_call_end_between_those_that_do() {
        let reach = reach(10, 3);
        let found: Vec<u64> = (0..6).map(|calls| reach.rows_within_calls(calls)).collect();
        assert_eq!(found, [0, 3, 6, 9, 10, 10]);
        assert_eq!(RowCompletionCurve::default().rows_within_calls(3), 0);
    }

    #[test]
    fn of_many_calls_the_points_between_are_judged_by_their_neighbours() {
        let reach = reach(100_000, 2);
        assert!(reach.points.len() < MOST_POINTS, "{}", reach.points.len());
        for calls in [0, 1, 511, 1024, 7777, 49_999, 50_000] {
            assert_eq!(reach.rows_within_calls(calls), calls * 2, "{calls}");
        }
    }
}
