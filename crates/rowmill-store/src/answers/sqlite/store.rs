//! The store of answers as used by a run.

use std::fmt;
use std::fs::File;
use std::future::ready;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::ports::{AnswerKey, AnswerStore, StoredAnswer};
use rowmill_types::{Problem, make_private_folder};
use rusqlite::Error;

use super::database::{AnswerDatabase, HEADER_BYTES, has_application_id, unusable_store_problem};
use super::queue::{FindOutcome, StoreQueue};
use super::store_thread::StoreThread;
use crate::answers::{AnswerStoreStats, PruneReport, PruneSpec};

/// Notified of trouble, once, from the store's thread.
pub(super) type NoticeFn = Arc<dyn Fn(String) + Send + Sync>;

/// Answers in an SQLite file, for any number of runs and processes at once.
///
/// The file has a thread of its own. [`AnswerStore::find`] asks it and waits without blocking; [`AnswerStore::store`]
/// only puts the answer into memory, where it is found at once, and the thread writes up to 256 of them in one
/// transaction, at most a tenth of a second later. Dropping the store writes the rest.
///
/// Memory is bounded: answers that wait to be written take at most 64 MiB. Beyond that, which requires a stalled disk,
/// `keep` drops the new answer rather than delay the run, and the notice at the end says how many were dropped.
pub struct SqliteAnswerStore {
    path: PathBuf,
    queue: Arc<StoreQueue>,
    thread: Option<JoinHandle<()>>,
}

impl SqliteAnswerStore {
    /// Opens the store in `folder`; creates both if they are missing.
    ///
    /// `notice` is called, once, when the file fails later on: from then on the store finds nothing and keeps nothing.
    ///
    /// # Errors
    ///
    /// The folder cannot be created, or its file is damaged, of another format or not a store.
    pub fn open(folder: &Path, notice: Arc<dyn Fn(String) + Send + Sync>) -> Result<Self, Problem> {
        let path = Self::file_in(folder);
        make_private_folder(folder).map_err(|error| {
            unusable_store_problem(&path, "cannot be created, because its folder cannot be created")
                .cause(error)
        })?;
        let database = AnswerDatabase::open(&path)?;
        let queue = Arc::new(StoreQueue::default());
        let keeper = StoreThread { database, path: path.clone(), queue: Arc::clone(&queue), notice };
        let thread = thread::Builder::new().name("answers".to_owned()).spawn(move || keeper.run()).map_err(
            |error| {
                unusable_store_problem(&path, "cannot be used: no thread could be started for it")
                    .cause(error)
            },
        )?;
        Ok(Self { path, queue, thread: Some(thread) })
    }

    /// The files with a store's names in `folder` that do not belong to a store of answers: a store that was killed
    /// during its creation is empty, or has our mark.
    #[must_use]
    pub fn foreign_files_in(folder: &Path) -> Vec<PathBuf> {
        let files = Self::files_in(folder);
        let mut header = Vec::new();
        let read = File::open(Self::file_in(folder))
            .and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut header));
        // Without the database its journal is useless.
        let ours = read.is_err() || header.is_empty() || has_application_id(&header);
        if ours { Vec::new() } else { files.into_iter().filter(|file| file.is_file()).collect() }
    }

    /// The content of the store, including answers that are not written yet. Blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn stats(&self) -> Result<AnswerStoreStats, Problem> {
        self.on_thread(|database| database.stats())
    }

    /// Removes answers and makes the file smaller. Blocks until it is done.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or another process writes to it for too long.
    pub fn prune(&self, spec: PruneSpec) -> Result<PruneReport, Problem> {
        self.on_thread(move |database| database.prune(&spec))
    }

    fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut AnswerDatabase) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Problem> {
        let (sender, receiver) = mpsc::sync_channel(1);
        // The receiver is gone only if the caller has panicked.
        self.queue.add_job(Box::new(move |database| drop(sender.send(database.retry_while_busy(work)))));
        match receiver.recv() {
            Ok(outcome) => {
                outcome.map_err(|error| unusable_store_problem(&self.path, "cannot be used").cause(error))
            }
            Err(_) => Err(unusable_store_problem(&self.path, "is no longer usable")),
        }
    }
}

impl AnswerStore for SqliteAnswerStore {
    fn find(&self, key: AnswerKey) -> BoxFuture<'_, Option<StoredAnswer>> {
        match self.queue.find(key) {
            FindOutcome::Now(found) => ready(found.map(|answer| StoredAnswer::clone(&answer))).boxed(),
            // A thread that has ended drops the sender: then nothing is found.
            FindOutcome::Later(receiver) => receiver.map(|found| found.unwrap_or_default()).boxed(),
        }
    }

    fn store(&self, key: AnswerKey, answer: &StoredAnswer) {
        self.queue.add_answer(key, answer);
    }

    fn restore(&self, answers: Vec<(AnswerKey, StoredAnswer)>) -> Result<(), Problem> {
        self.on_thread(move |database| database.add_missing(&answers))
    }
}

impl fmt::Debug for SqliteAnswerStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SqliteAnswers").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Drop for SqliteAnswerStore {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // The thread reported its panic itself, and only the cache was lost.
            drop(thread.join());
        }
    }
}
