//! Batches on their way from the reader to the loop.
//!
//! The reader has a thread only while it reads: it fills the queue, returns its thread, and gets one again when few
//! batches are left. A run whose calls take long holds no thread.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use rowmill_types::{Problem, ProblemCode};
use tokio::runtime::Handle;

use crate::ReadingThread;
use crate::feed::{ReadBatch, RowReader};
use crate::panics::catch_panic;

/// The maximum number of batches that wait for the loop; the reader stops there.
const MOST_WAITING: usize = 3;
/// With this few batches left the reader continues, while the loop still has work.
const FEW_WAITING: usize = 1;

/// The loop's end of the queue. Dropping it ends the reader at its next hand-over.
pub(crate) struct BatchQueue {
    shared: Arc<Mutex<QueueState>>,
    runtime: Handle,
    thread: ReadingThread,
}

#[derive(Default)]
struct QueueState {
    /// The batches that were read; a problem is the last entry.
    batches: VecDeque<Result<ReadBatch, Problem>>,
    /// The reader, while it is not reading.
    reader: Option<Box<RowReader>>,
    has_ended: bool,
    /// Whether nobody takes batches any more.
    is_abandoned: bool,
    /// Wakes the loop if it is waiting.
    waker: Option<Waker>,
}

impl BatchQueue {
    /// Starts reading.
    pub(crate) fn start(reader: RowReader, thread: ReadingThread) -> Self {
        let state = QueueState { reader: Some(Box::new(reader)), ..QueueState::default() };
        let queue = Self { shared: Arc::new(Mutex::new(state)), runtime: Handle::current(), thread };
        queue.read_on(&mut Context::from_waker(Waker::noop()));
        queue
    }

    /// Waits for the next batch; `None` after the last one. A problem is always last.
    pub(crate) async fn next(&mut self) -> Option<Result<ReadBatch, Problem>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<ReadBatch, Problem>>> {
        let next = {
            let mut state = locked(&self.shared);
            let next = state.batches.pop_front();
            if next.is_none() && state.has_ended {
                return Poll::Ready(None);
            }
            state.waker = next.is_none().then(|| context.waker().clone());
            next
        };
        self.read_on(context);
        next.map_or(Poll::Pending, |batch| Poll::Ready(Some(batch)))
    }

    /// The number of rows that are ready, if they are the last.
    pub(crate) fn rows_if_last(self) -> Option<u64> {
        let state = locked(&self.shared);
        let rows = state.batches.iter().map(|batch| batch.as_ref().map(|batch| batch.selected).ok());
        if state.has_ended { rows.sum() } else { None }
    }

    /// Gives the reader a thread, if it has none and few batches are left.
    fn read_on(&self, context: &mut Context<'_>) {
        let mut reader = {
            let mut state = locked(&self.shared);
            if state.batches.len() > FEW_WAITING {
                return;
            }
            let Some(reader) = state.reader.take() else { return };
            // If no rows are wanted, not even the first one is waited for.
            if reader.is_finished() {
                state.has_ended = true;
                wake(state);
                return;
            }
            reader
        };
        match catch_panic("reading the input failed", || Ok(reader.poll_ready(context))) {
            Ok(Poll::Ready(())) => {}
            Ok(Poll::Pending) => {
                locked(&self.shared).reader = Some(reader);
                return;
            }
            Err(problem) => {
                let mut state = locked(&self.shared);
                state.batches.push_back(Err(problem));
                state.has_ended = true;
                wake(state);
                return self.drop_aside(reader);
            }
        }
        let slice = ReadSlice { reader: Some(reader), shared: Arc::clone(&self.shared) };
        match self.thread {
            ReadingThread::Shared => drop(self.runtime.spawn_blocking(move || slice.run())),
            ReadingThread::Own => {
                let named = thread::Builder::new().name("rowmill-feed".into());
                if let Err(error) = named.spawn(move || slice.run()) {
                    // The slice reported that it was interrupted; this is the reason.
                    if let Some(last) = locked(&self.shared).batches.back_mut() {
                        *last = Err(crate::run::cannot_start_thread(&error));
                    }
                }
            }
        }
    }
}

impl BatchQueue {
    /// Ends a reader elsewhere. The end of a source may take a while: a query is waited for.
    fn drop_aside(&self, reader: Box<RowReader>) {
        drop(self.runtime.spawn_blocking(move || drop(reader)));
    }
}

impl Drop for BatchQueue {
    fn drop(&mut self) {
        let mut state = locked(&self.shared);
        state.is_abandoned = true;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            self.drop_aside(reader);
        }
    }
}

/// The reader while it has a thread.
struct ReadSlice {
    /// `None` once it was handed back or has reached its end.
    reader: Option<Box<RowReader>>,
    shared: Arc<Mutex<QueueState>>,
}

impl ReadSlice {
    /// Reads until there is enough, or nothing more for now.
    fn run(mut self) {
        let mut nobody = Context::from_waker(Waker::noop());
        while let Some(reader) = &mut self.reader {
            let next = reader.next();
            let has_ended = match &next {
                Ok((_, is_last)) => *is_last || reader.is_finished(),
                Err(_) => true,
            };
            let is_ready = !has_ended && reader.poll_ready(&mut nobody).is_ready();
            let mut state = locked(&self.shared);
            if state.is_abandoned {
                return;
            }
            state.batches.push_back(next.map(|(batch, _)| batch));
            state.has_ended = has_ended;
            if !has_ended && (!is_ready || state.batches.len() >= MOST_WAITING) {
                state.reader = self.reader.take();
            }
            wake(state);
            if has_ended {
                self.reader = None;
            }
        }
    }
}

impl Drop for ReadSlice {
    /// A slice that never ran because the runtime ends must not be waited for.
    fn drop(&mut self) {
        if self.reader.is_some() {
            let mut state = locked(&self.shared);
            let cut = Problem::new(ProblemCode::Internal, "reading the input was interrupted");
            state.batches.push_back(Err(cut));
            state.has_ended = true;
            wake(state);
        }
    }
}

/// Wakes the loop after releasing the lock.
fn wake(mut state: MutexGuard<'_, QueueState>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn locked(shared: &Mutex<QueueState>) -> MutexGuard<'_, QueueState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
