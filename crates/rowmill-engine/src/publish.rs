//! Passes records to sinks, in input order, outside of the loop.
//!
//! The loop never waits for a sink: what it sends is published on a thread that is held only while there is something
//! to publish. A record whose turn has not come is held in memory while there is room, and otherwise read back from the
//! ledger.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rowmill_core::ports::{LedgerRecordId, RecordReader, RecordSink};
use rowmill_core::record::RowRecord;
use rowmill_types::{Problem, ProblemCode};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use crate::RecordSinks;
use crate::panics::catch_panic;

/// The maximum memory of records that wait for their turn; the rest is read back.
const HELD_BYTES: usize = 1024 * 1024;
/// The maximum bytes of records on their way to the publisher; beyond this the loop takes no further rows.
const QUEUED_BYTES: usize = 1024 * 1024;

/// A record on its way to the sinks.
#[derive(Debug)]
pub(crate) struct QueuedRecord {
    /// Its position among the rows of this run.
    pub(crate) ordinal: u64,
    pub(crate) content: QueuedContent,
}

/// The content of a queued record.
#[derive(Debug)]
pub(crate) enum QueuedContent {
    /// A row that has ended now.
    Ended(RowRecord, LedgerRecordId),
    /// A row whose record is in the ledger from an earlier run.
    Kept(LedgerRecordId),
    /// A row without a record yet, for which later rows must not wait.
    Nothing,
}

/// The progress of publishing; shared with the loop.
#[derive(Debug, Default)]
pub(crate) struct PublishProgress {
    published: AtomicU64,
    queued: AtomicUsize,
    failed: AtomicBool,
    moved: Notify,
}

impl PublishProgress {
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Whether the publisher is so far behind that more records would only fill memory.
    pub(crate) fn is_full(&self) -> bool {
        self.queued.load(Ordering::Acquire) >= QUEUED_BYTES
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits until something was published or publishing failed.
    pub(crate) async fn changed(&self) {
        self.moved.notified().await;
    }
}

/// The loop's end of the publisher. Dropping it publishes what was sent.
pub(crate) struct Publisher {
    shared: Arc<Mutex<PublisherState>>,
    runtime: Handle,
    outcome: oneshot::Receiver<Result<(), Problem>>,
    pub(crate) progress: Arc<PublishProgress>,
}

/// State shared by the loop and the publishing thread.
struct PublisherState {
    /// Records not yet picked up. Unbounded, because the loop holds back rows when publishing lags behind.
    sent: Vec<Vec<QueuedRecord>>,
    /// The publishing state; `None` while it is running, and after its end.
    idle: Option<Box<PublishWorker>>,
    /// Whether nothing more is sent.
    is_closed: bool,
}

impl Publisher {
    pub(crate) fn start(
        sinks: RecordSinks,
        locks: Option<Arc<dyn Any + Send + Sync>>,
        reader: Box<dyn RecordReader>,
    ) -> Self {
        let queue = RecordQueue { sinks, reader, waiting: VecDeque::new(), next: 0, held: 0 };
        let progress = Arc::new(PublishProgress::default());
        let (outcome_sender, outcome) = oneshot::channel();
        let idle =
            Some(Box::new(PublishWorker { queue, outcome_sender, progress: Arc::clone(&progress), locks }));
        let state = PublisherState { sent: Vec::new(), idle, is_closed: false };
        Self { shared: Arc::new(Mutex::new(state)), runtime: Handle::current(), outcome, progress }
    }

    /// Passes records on. After a failure they are only in the ledger.
    pub(crate) fn send(&self, queued_records: Vec<QueuedRecord>) {
        if !queued_records.is_empty() && !self.progress.has_failed() {
            self.progress.queued.fetch_add(bytes(&queued_records), Ordering::AcqRel);
            self.publish_on(|state| state.sent.push(queued_records));
        }
    }

    /// Waits until everything that was sent is published; returns the error, if there was one.
    pub(crate) async fn finish(mut self) -> Result<(), Problem> {
        self.publish_on(|state| state.is_closed = true);
        (&mut self.outcome).await.unwrap_or_else(|_| {
            Err(Problem::new(ProblemCode::Internal, "the publisher failed; every record is in the ledger"))
        })
    }

    /// Changes the state, and makes sure that a thread handles the change.
    fn publish_on(&self, change: impl FnOnce(&mut PublisherState)) {
        let mut state = locked(&self.shared);
        change(&mut state);
        if let Some(publishing) = state.idle.take() {
            drop(state);
            let shared = Arc::clone(&self.shared);
            drop(self.runtime.spawn_blocking(move || publishing.run(&shared)));
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.publish_on(|state| state.is_closed = true);
    }
}

/// The publishing state, independent of the thread.
struct PublishWorker {
    queue: RecordQueue,
    outcome_sender: oneshot::Sender<Result<(), Problem>>,
    progress: Arc<PublishProgress>,
    /// Held until nothing more is written.
    locks: Option<Arc<dyn Any + Send + Sync>>,
}

impl PublishWorker {
    /// Publishes everything that was sent, then waits for more without a thread.
    fn run(mut self: Box<Self>, shared: &Mutex<PublisherState>) {
        loop {
            let (sent, is_closed) = {
                let mut state = locked(shared);
                if state.sent.is_empty() && !state.is_closed {
                    state.idle = Some(self);
                    return;
                }
                (std::mem::take(&mut state.sent), state.is_closed)
            };
            let is_last = is_closed && sent.is_empty();
            // Without this, a loop that waits for the publisher would wait for ever after a panic.
            let outcome = catch_panic("writing results failed; every record is in the ledger", || {
                if is_last { self.queue.finish() } else { self.publish(sent) }
            });
            if is_last || outcome.is_err() {
                return (*self).end(outcome);
            }
        }
    }

    fn publish(&mut self, sent: Vec<Vec<QueuedRecord>>) -> Result<(), Problem> {
        for queued_records in sent {
            let taken = bytes(&queued_records);
            self.queue.take(queued_records)?;
            self.progress.queued.fetch_sub(taken, Ordering::AcqRel);
            self.progress.published.store(self.queue.next, Ordering::Release);
            self.progress.moved.notify_one();
        }
        Ok(())
    }

    fn end(self, outcome: Result<(), Problem>) {
        let Self { queue, outcome_sender, progress, locks } = self;
        progress.failed.store(outcome.is_err(), Ordering::Release);
        progress.moved.notify_one();
        // Sinks are closed and locks released before the end is reported.
        drop((queue, locks));
        // Nobody listens if the run was dropped.
        drop(outcome_sender.send(outcome));
    }
}

struct RecordQueue {
    sinks: RecordSinks,
    reader: Box<dyn RecordReader>,
    waiting: VecDeque<Option<RecordSlot>>,
    next: u64,
    held: usize,
}

enum RecordSlot {
    Nothing,
    Memory(RowRecord),
    Ledger(LedgerRecordId),
}

impl RecordQueue {
    fn take(&mut self, queued_records: Vec<QueuedRecord>) -> Result<(), Problem> {
        for QueuedRecord { ordinal, content } in queued_records {
            if let QueuedContent::Ended(record, _) = &content {
                publish(&mut self.sinks.on_arrival, record)?;
            }
            let slot = self.slot(content);
            let place = (ordinal - self.next) as usize;
            if self.waiting.len() <= place {
                self.waiting.resize_with(place + 1, || None);
            }
            if let Some(free) = self.waiting.get_mut(place) {
                *free = Some(slot);
            }
            while let Some(Some(_)) = self.waiting.front() {
                let slot = self.waiting.pop_front().flatten();
                self.next += 1;
                self.release(slot)?;
            }
        }
        self.flush()
    }

    fn slot(&mut self, content: QueuedContent) -> RecordSlot {
        match content {
            QueuedContent::Ended(record, _) if self.held + record.line.len() <= HELD_BYTES => {
                self.held += record.line.len();
                RecordSlot::Memory(record)
            }
            QueuedContent::Ended(_, id) | QueuedContent::Kept(id) => RecordSlot::Ledger(id),
            QueuedContent::Nothing => RecordSlot::Nothing,
        }
    }

    fn release(&mut self, slot: Option<RecordSlot>) -> Result<(), Problem> {
        let record = match slot {
            None | Some(RecordSlot::Nothing) => return Ok(()),
            Some(RecordSlot::Memory(record)) => {
                self.held -= record.line.len();
                record
            }
            Some(RecordSlot::Ledger(id)) => RowRecord::parse(self.reader.read(id)?).map_err(|error| {
                Problem::new(ProblemCode::LedgerUnusable, "a record cannot be read back from the ledger")
                    .cause(error)
            })?,
        };
        publish(&mut self.sinks.in_input_order, &record)
    }

    /// Publishes what still waits behind rows that have no record.
    fn finish(&mut self) -> Result<(), Problem> {
        while let Some(slot) = self.waiting.pop_front() {
            self.release(slot)?;
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Problem> {
        self.sinks
            .in_input_order
            .iter_mut()
            .chain(&mut self.sinks.on_arrival)
            .try_for_each(|sink| sink.flush())
    }
}

/// The memory that these records take.
fn bytes(queued_records: &[QueuedRecord]) -> usize {
    let of = |queued: &QueuedRecord| {
        if let QueuedContent::Ended(record, _) = &queued.content { record.line.len() } else { 0 }
    };
    queued_records.iter().map(of).sum()
}

fn publish(sinks: &mut [Box<dyn RecordSink>], record: &RowRecord) -> Result<(), Problem> {
    sinks.iter_mut().try_for_each(|sink| sink.publish(record.parts_for_sinks()))
}

fn locked(shared: &Mutex<PublisherState>) -> MutexGuard<'_, PublisherState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
