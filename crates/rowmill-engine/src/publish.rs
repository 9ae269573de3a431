//! Hands records to sinks, in input order, on a thread of its own.
//!
//! The loop never waits for a sink. A record whose turn has not come is held in
//! memory while there is room, and otherwise read back from the ledger.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use rowmill_core::ports::{RecordId, RecordReader, Sink};
use rowmill_core::record::Record;
use rowmill_types::{Problem, ProblemCode};
use tokio::sync::Notify;

use crate::Sinks;
use crate::panics::caught;

/// Records held for their turn take at most this much memory; the rest is read back.
const HELD_BYTES: usize = 1024 * 1024;
/// Records on their way to the publisher, in bytes; beyond this the loop takes no further rows.
const QUEUED_BYTES: usize = 1024 * 1024;

/// A record on its way to the sinks.
#[derive(Debug)]
pub(crate) struct Parcel {
    /// Its place among the rows of this run.
    pub(crate) ordinal: u64,
    pub(crate) content: Content,
}

/// What is in it.
#[derive(Debug)]
pub(crate) enum Content {
    /// A row that ended now.
    Ended(Record, RecordId),
    /// A row whose record is in the ledger from an earlier run.
    Kept(RecordId),
    /// A row that has no record yet, for which those behind it are not to wait.
    Nothing,
}

/// How far publishing has come; shared with the loop.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    published: AtomicU64,
    queued: AtomicUsize,
    failed: AtomicBool,
    moved: Notify,
}

impl Progress {
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Whether so much waits for the publisher that more would only fill memory.
    pub(crate) fn is_full(&self) -> bool {
        self.queued.load(Ordering::Acquire) >= QUEUED_BYTES
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits until something was published or publishing failed.
    pub(crate) async fn moved(&self) {
        self.moved.notified().await;
    }
}

/// The loop's end of the publisher.
pub(crate) struct Publisher {
    sender: mpsc::Sender<Vec<Parcel>>,
    thread: JoinHandle<Result<(), Problem>>,
    pub(crate) progress: Arc<Progress>,
}

impl Publisher {
    pub(crate) fn start(
        sinks: Sinks,
        locks: Option<Arc<dyn Any + Send + Sync>>,
        reader: Box<dyn RecordReader>,
    ) -> Result<Self, Problem> {
        // Unbounded, because the loop holds back rows when publishing lags behind.
        let (sender, receiver) = mpsc::channel::<Vec<Parcel>>();
        let progress = Arc::new(Progress::default());
        let shared = progress.clone();
        let thread = thread::Builder::new()
            .name("rowmill-publisher".into())
            .spawn(move || {
                let _locks = locks;
                let mut queue = Queue { sinks, reader, waiting: VecDeque::new(), next: 0, held: 0 };
                // A loop that waits for what a panic has ended would wait for ever.
                let outcome = caught("writing results failed; every record is in the ledger", || {
                    receiver.iter().try_for_each(|parcels| {
                        let taken = bytes(&parcels);
                        queue.take(parcels)?;
                        shared.queued.fetch_sub(taken, Ordering::AcqRel);
                        shared.published.store(queue.next, Ordering::Release);
                        shared.moved.notify_one();
                        Ok(())
                    })?;
                    queue.finish()
                });
                shared.failed.store(outcome.is_err(), Ordering::Release);
                shared.moved.notify_one();
                outcome
            })
            .map_err(|error| crate::run::cannot_start_thread(&error))?;
        Ok(Self { sender, thread, progress })
    }

    /// Sends records on. After a failure they stay in the ledger only.
    pub(crate) fn send(&self, parcels: Vec<Parcel>) {
        if !parcels.is_empty() {
            self.progress.queued.fetch_add(bytes(&parcels), Ordering::AcqRel);
            // The receiver is gone only after a failure, which `finish` reports.
            drop(self.sender.send(parcels));
        }
    }

    /// Waits until everything sent is published; tells what went wrong, if anything did.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        drop(self.sender);
        self.thread.join().unwrap_or_else(|_| {
            Err(Problem::new(ProblemCode::Internal, "the publisher failed; every record is in the ledger"))
        })
    }
}

struct Queue {
    sinks: Sinks,
    reader: Box<dyn RecordReader>,
    waiting: VecDeque<Option<Slot>>,
    next: u64,
    held: usize,
}

enum Slot {
    Nothing,
    Memory(Record),
    Ledger(RecordId),
}

impl Queue {
    fn take(&mut self, parcels: Vec<Parcel>) -> Result<(), Problem> {
        for Parcel { ordinal, content } in parcels {
            if let Content::Ended(record, _) = &content {
                publish(&mut self.sinks.arrival, record)?;
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

    fn slot(&mut self, content: Content) -> Slot {
        match content {
            Content::Ended(record, _) if self.held + record.line.len() <= HELD_BYTES => {
                self.held += record.line.len();
                Slot::Memory(record)
            }
            Content::Ended(_, id) | Content::Kept(id) => Slot::Ledger(id),
            Content::Nothing => Slot::Nothing,
        }
    }

    fn release(&mut self, slot: Option<Slot>) -> Result<(), Problem> {
        let record = match slot {
            None | Some(Slot::Nothing) => return Ok(()),
            Some(Slot::Memory(record)) => {
                self.held -= record.line.len();
                record
            }
            Some(Slot::Ledger(id)) => Record::parse(self.reader.read(id)?).map_err(|error| {
                Problem::new(ProblemCode::LedgerUnusable, "a record cannot be read back from the ledger")
                    .cause(error)
            })?,
        };
        publish(&mut self.sinks.ordered, &record)
    }

    /// Publishes what still waits behind rows that have no record.
    fn finish(&mut self) -> Result<(), Problem> {
        while let Some(slot) = self.waiting.pop_front() {
            self.release(slot)?;
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Problem> {
        self.sinks.ordered.iter_mut().chain(&mut self.sinks.arrival).try_for_each(|sink| sink.flush())
    }
}

/// What these records hold of memory.
fn bytes(parcels: &[Parcel]) -> usize {
    let of =
        |parcel: &Parcel| if let Content::Ended(record, _) = &parcel.content { record.line.len() } else { 0 };
    parcels.iter().map(of).sum()
}

fn publish(sinks: &mut [Box<dyn Sink>], record: &Record) -> Result<(), Problem> {
    sinks.iter_mut().try_for_each(|sink| sink.publish(record.published()))
}
