//! Passes rows from the thread that runs a query to their reader.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rowmill_core::ports::{InputReadProgress, ReadLimit, RowSource};
use rowmill_types::{Problem, ProblemCode, RowReadResult};

/// The limits on the rows that wait to be read.
const MOST_ROWS: usize = 512;
const MOST_BYTES: usize = 512 * 1024;

/// The reader is woken once this many rows are waiting.
const ENOUGH_ROWS: usize = 64;
/// How long fewer rows may wait before the reader checks again. Waking it for each row would take longer than
/// making the row.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The state that both sides share.
#[derive(Debug, Default)]
pub(crate) struct RowHandoff {
    state: Mutex<HandoffState>,
    filled: Condvar,
    emptied: Condvar,
    /// The reader has gone.
    closed: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct HandoffState {
    rows: VecDeque<RowReadResult>,
    bytes: usize,
    end: Option<Result<(), Problem>>,
    position: InputReadProgress,
}

impl RowHandoff {
    /// Set when the rows are no longer wanted.
    pub(crate) fn closed(&self) -> &Arc<AtomicBool> {
        &self.closed
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Passes a row on once there is room; `false` if it is no longer wanted.
    pub(crate) fn push(&self, row: RowReadResult) -> bool {
        let mut state = self.lock();
        while state.rows.len() >= MOST_ROWS || state.bytes >= MOST_BYTES {
            if self.is_closed() {
                return false;
            }
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += size(&row);
        state.rows.push_back(row);
        let is_enough = state.rows.len() >= ENOUGH_ROWS || state.bytes >= MOST_BYTES;
        drop(state);
        if is_enough {
            self.filled.notify_one();
        }
        !self.is_closed()
    }

    /// Records how far the input has been read.
    pub(crate) fn set_position(&self, position: InputReadProgress) {
        self.lock().position = position;
    }

    fn finish(&self, outcome: Result<(), Problem>) {
        self.lock().end.get_or_insert(outcome);
        self.filled.notify_one();
    }

    fn take(&self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let mut state = self.lock();
        while state.rows.is_empty() {
            match &state.end {
                Some(Ok(())) => return Ok(false),
                Some(Err(problem)) => return Err(problem.clone()),
                None => {
                    let waited = self.filled.wait_timeout(state, LOOK_AGAIN);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        let mut rows = 0;
        let mut bytes = 0;
        while let Some(row) = state.rows.pop_front() {
            let size = size(&row);
            state.bytes -= size;
            bytes += size;
            rows += 1;
            batch.push(row);
            if rows >= room.rows || bytes >= room.bytes {
                break;
            }
        }
        drop(state);
        self.emptied.notify_one();
        Ok(true)
    }

    fn close(&self) {
        let state = self.lock();
        self.closed.store(true, Ordering::Relaxed);
        drop(state);
        self.emptied.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, HandoffState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(row: &RowReadResult) -> usize {
    match row {
        Ok(row) => row.json_text().len(),
        Err(bad) => bad.message.len(),
    }
}

/// The reading side. Dropping it ends the work.
#[derive(Debug)]
pub(crate) struct ThreadRowSource {
    handoff: Arc<RowHandoff>,
    worker: Option<JoinHandle<()>>,
}

impl ThreadRowSource {
    /// Starts a thread whose work passes rows on.
    pub(crate) fn start(
        handoff: Arc<RowHandoff>,
        work: impl FnOnce() -> Result<(), Problem> + Send + 'static,
    ) -> Result<Self, Problem> {
        let guard = FinishGuard(handoff.clone());
        let worker = Builder::new()
            .name("rowmill-sql".to_owned())
            .spawn(move || {
                let outcome = work();
                guard.0.finish(outcome);
            })
            .map_err(|error| {
                Problem::new(ProblemCode::Internal, "cannot start a thread for the query").cause(error)
            })?;
        Ok(Self { handoff, worker: Some(worker) })
    }
}

/// Ends the rows if the work panics, so that nobody waits forever.
struct FinishGuard(Arc<RowHandoff>);

impl Drop for FinishGuard {
    fn drop(&mut self) {
        self.0.finish(Err(Problem::new(ProblemCode::Internal, "the query ended without a result")));
    }
}

impl RowSource for ThreadRowSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        self.handoff.take(batch, room)
    }

    fn position(&self) -> InputReadProgress {
        self.handoff.lock().position
    }
}

impl Drop for ThreadRowSource {
    fn drop(&mut self) {
        self.handoff.close();
        if let Some(worker) = self.worker.take() {
            // A panic of the thread was already reported through the handoff.
            drop(worker.join());
        }
    }
}
