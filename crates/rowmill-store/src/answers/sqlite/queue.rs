//! The requests of a run's loop to the store's thread.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rowmill_core::ports::{AnswerKey, StoredAnswer};
use tokio::sync::oneshot;

use super::database::{AnswerDatabase, WriteBatch, content_bytes};

/// The maximum number of answers written in one transaction.
const GROUP: usize = 256;

/// How long an answer waits for others to be written together with it.
const LINGER: Duration = Duration::from_millis(100);

/// The maximum memory of answers that wait to be written. It is exceeded only if the disk stalls or another process
/// writes for seconds; further answers are dropped.
const WAITING_BYTES: u64 = 64 << 20;

/// The approximate size of a queue entry besides its text.
const ENTRY_BYTES: u64 = 256;

/// A look-up and the channel for its result.
pub(super) type FindRequest = (AnswerKey, oneshot::Sender<Option<StoredAnswer>>);

/// Work on the whole store, done between look-ups.
pub(super) type StoreJob = Box<dyn FnOnce(&mut AnswerDatabase) + Send>;

/// The result of a look-up, as far as memory knows.
pub(super) enum FindOutcome {
    /// The result is known.
    Now(Option<Arc<StoredAnswer>>),
    /// The thread sends the result.
    Later(oneshot::Receiver<Option<StoredAnswer>>),
}

/// The next work of the thread.
pub(super) struct StoreWork {
    pub(super) finds: Vec<FindRequest>,
    pub(super) jobs: Vec<StoreJob>,
    /// Whether it is time to write.
    pub(super) write: bool,
    /// Whether the store is being dropped.
    pub(super) closing: bool,
}

/// Shared by the store and its thread. The lock is never held while files are read or written, so the loop never waits
/// for a disk.
#[derive(Default)]
pub(super) struct StoreQueue {
    state: Mutex<QueueState>,
    news: Condvar,
}

#[derive(Default)]
struct QueueState {
    finds: Vec<FindRequest>,
    jobs: Vec<StoreJob>,
    /// Answers that are not in the file yet, and their keys in order of arrival.
    waiting: HashMap<AnswerKey, Arc<StoredAnswer>>,
    order: VecDeque<AnswerKey>,
    waiting_bytes: u64,
    hits: HashMap<AnswerKey, u64>,
    /// Since when something has been waiting to be written.
    unwritten: Option<Instant>,
    refused: u64,
    closing: bool,
    ended: bool,
}

impl StoreQueue {
    /// Looks in memory, and otherwise asks the thread.
    pub(super) fn find(&self, key: AnswerKey) -> FindOutcome {
        let mut state = self.lock();
        if let Some(answer) = state.waiting.get(&key).map(Arc::clone) {
            state.hit(key);
            return FindOutcome::Now(Some(answer));
        }
        if state.ended {
            return FindOutcome::Now(None);
        }
        let (sender, receiver) = oneshot::channel();
        state.finds.push((key, sender));
        // If there was a look-up in the queue already, the thread has been notified and is on its way.
        if state.finds.len() == 1 {
            self.news.notify_one();
        }
        FindOutcome::Later(receiver)
    }

    /// Queues an answer to be written, if there is room for it.
    pub(super) fn add_answer(&self, key: AnswerKey, answer: &StoredAnswer) {
        let bytes = content_bytes(answer) + ENTRY_BYTES;
        let mut state = self.lock();
        if state.ended {
            return;
        }
        if state.waiting_bytes + bytes > WAITING_BYTES {
            state.refused += 1;
            return;
        }
        state.waiting_bytes += bytes;
        match state.waiting.insert(key, Arc::new(answer.clone())) {
            Some(before) => state.waiting_bytes -= content_bytes(&before) + ENTRY_BYTES,
            None => state.order.push_back(key),
        }
        // The thread waits for the first answer to start its timer, and for a full group to write it.
        let first = state.unwritten.is_none();
        state.unwritten.get_or_insert_with(Instant::now);
        if first || state.order.len() == GROUP {
            self.news.notify_one();
        }
    }

    /// Passes a job to the thread; the job is dropped if the thread has ended.
    pub(super) fn add_job(&self, job: StoreJob) {
        let mut state = self.lock();
        if !state.ended {
            state.jobs.push(job);
            self.news.notify_one();
        }
    }

    /// Asks the thread to write everything and to end.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.news.notify_one();
    }

    /// Waits for something to do.
    pub(super) fn next_work(&self) -> StoreWork {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let due = state.unwritten.map(|since| since + LINGER);
            let write = state.order.len() >= GROUP || due.is_some_and(|due| due <= now);
            if write || state.closing || !state.finds.is_empty() || !state.jobs.is_empty() {
                return StoreWork {
                    finds: std::mem::take(&mut state.finds),
                    jobs: std::mem::take(&mut state.jobs),
                    write,
                    closing: state.closing,
                };
            }
            state = match due {
                None => self.news.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let waited = self.news.wait_timeout(state, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Counts answers that the thread found.
    pub(super) fn count_hits(&self, keys: &[AnswerKey]) {
        let mut state = self.lock();
        for key in keys {
            state.hit(*key);
        }
    }

    /// A group to be written; it stays findable in memory until [`StoreQueue::group_written`].
    pub(super) fn take_group(&self) -> WriteBatch {
        let mut state = self.lock();
        let group = state.order.len().min(GROUP);
        let keys: Vec<AnswerKey> = state.order.drain(..group).collect();
        let answers = keys.into_iter().filter_map(|key| Some((key, Arc::clone(state.waiting.get(&key)?))));
        let answers = answers.collect();
        let batch = WriteBatch { answers, hits: std::mem::take(&mut state.hits) };
        state.unwritten = (!state.order.is_empty()).then(Instant::now);
        batch
    }

    /// Releases a group that is in the file now.
    pub(super) fn group_written(&self, batch: WriteBatch) {
        let mut state = self.lock();
        for (key, answer) in batch.answers {
            match state.waiting.get(&key) {
                Some(now) if Arc::ptr_eq(now, &answer) => {
                    state.waiting.remove(&key);
                    state.waiting_bytes -= content_bytes(&answer) + ENTRY_BYTES;
                }
                // Stored again in the meantime, with another answer, which belongs to the next group.
                Some(_) => state.order.push_back(key),
                None => {}
            }
        }
        if !state.order.is_empty() {
            state.unwritten.get_or_insert_with(Instant::now);
        }
    }

    /// Returns a group that could not be written yet.
    pub(super) fn put_back(&self, batch: WriteBatch) {
        let mut state = self.lock();
        for (key, _) in batch.answers.iter().rev() {
            state.order.push_front(*key);
        }
        for (key, times) in batch.hits {
            *state.hits.entry(key).or_default() += times;
        }
        state.unwritten.get_or_insert_with(Instant::now);
    }

    /// Whether nothing is left to be written.
    pub(super) fn is_written(&self) -> bool {
        let state = self.lock();
        state.order.is_empty() && state.hits.is_empty()
    }

    /// Ends the queue: nothing more is found or stored. Returns the number of answers that were lost.
    pub(super) fn stop(&self) -> u64 {
        let mut state = self.lock();
        let lost = state.refused + state.order.len() as u64;
        *state = QueueState { ended: true, ..QueueState::default() };
        lost
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn hit(&mut self, key: AnswerKey) {
        *self.hits.entry(key).or_default() += 1;
        self.unwritten.get_or_insert_with(Instant::now);
    }
}
