//! The store as a run sees it.

use std::fmt;
use std::fs::File;
use std::future::ready;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::ports::{AnswerStore, AskedKey, KeptAnswer};
use rowmill_types::{Problem, make_private_folder};
use rusqlite::Error;

use super::database::{Database, HEADER_BYTES, has_our_mark, unusable};
use super::keeper::Keeper;
use super::prune::{PruneSpec, Pruned};
use super::queue::{Found, Queue};
use super::stats::Stats;

/// Hears of trouble, once, from the store's own thread.
pub(super) type NoticeOf = Arc<dyn Fn(String) + Send + Sync>;

/// The file in the folder of a store.
const FILE: &str = "answers.sqlite";

/// Answers in an SQLite file, for any number of runs and processes at once.
///
/// The file has a thread of its own. [`AnswerStore::find`] asks it and waits without blocking;
/// [`AnswerStore::keep`] only puts the answer into memory, where it is found at once, and the
/// thread writes up to 256 of them in one transaction, a tenth of a second later at most.
/// Dropping the store writes what is left.
///
/// Memory is bounded: answers that wait to be written take 64 MiB at most. Beyond that, which
/// needs a disk that stands still, `keep` drops the new answer rather than hold up the run,
/// and the notice says at the end how many were dropped.
pub struct SqliteAnswers {
    path: PathBuf,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl SqliteAnswers {
    /// Opens the store in `folder`; makes both where they are missing.
    ///
    /// `notice` is told, once, when the file fails later on: from then on the store finds
    /// nothing and keeps nothing.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, or its file is damaged, of another format or not a store.
    pub fn open(folder: &Path, notice: Arc<dyn Fn(String) + Send + Sync>) -> Result<Self, Problem> {
        let path = Self::file_in(folder);
        make_private_folder(folder).map_err(|error| {
            unusable(&path, "cannot be created, because its folder cannot be created").cause(error)
        })?;
        let database = Database::open(&path)?;
        let queue = Arc::new(Queue::default());
        let keeper = Keeper { database, path: path.clone(), queue: Arc::clone(&queue), notice };
        let thread = thread::Builder::new().name("answers".to_owned()).spawn(move || keeper.run()).map_err(
            |error| unusable(&path, "cannot be used: no thread could be started for it").cause(error),
        )?;
        Ok(Self { path, queue, thread: Some(thread) })
    }

    /// The file of the store in `folder`, whether it exists or not.
    #[must_use]
    pub fn file_in(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// The file of the store in `folder` and those that SQLite keeps beside it, there or not.
    #[must_use]
    pub fn files_in(folder: &Path) -> [PathBuf; 4] {
        ["", "-wal", "-shm", "-journal"].map(|ending| folder.join(format!("{FILE}{ending}")))
    }

    /// The files of a store in `folder`, if they are not those of a store of answers: one that was
    /// killed while it was made is empty, or has the mark of our stores.
    #[must_use]
    pub fn foreign_files_in(folder: &Path) -> Vec<PathBuf> {
        let files = Self::files_in(folder);
        let mut header = Vec::new();
        let read = File::open(Self::file_in(folder))
            .and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut header));
        // Without the database its journal is of no use to anyone.
        let ours = read.is_err() || header.is_empty() || has_our_mark(&header);
        if ours { Vec::new() } else { files.into_iter().filter(|file| file.is_file()).collect() }
    }

    /// What the store holds, answers that are yet to be written included. Blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn stats(&self) -> Result<Stats, Problem> {
        self.on_thread(|database| database.stats())
    }

    /// Removes answers and makes the file smaller. Blocks until it is done.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or another process writes to it for very long.
    pub fn prune(&self, spec: PruneSpec) -> Result<Pruned, Problem> {
        self.on_thread(move |database| database.prune(&spec))
    }

    fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Problem> {
        let (sender, receiver) = mpsc::sync_channel(1);
        // Nobody listens only where the caller has panicked.
        self.queue.run(Box::new(move |database| drop(sender.send(database.patiently(work)))));
        match receiver.recv() {
            Ok(outcome) => outcome.map_err(|error| unusable(&self.path, "cannot be used").cause(error)),
            Err(_) => Err(unusable(&self.path, "is no longer usable")),
        }
    }
}

impl AnswerStore for SqliteAnswers {
    fn find(&self, key: AskedKey) -> BoxFuture<'_, Option<KeptAnswer>> {
        match self.queue.find(key) {
            Found::Now(found) => ready(found.map(|answer| KeptAnswer::clone(&answer))).boxed(),
            // A thread that has ended drops the sender: then nothing is found.
            Found::Later(receiver) => receiver.map(|found| found.unwrap_or_default()).boxed(),
        }
    }

    fn keep(&self, key: AskedKey, answer: &KeptAnswer) {
        self.queue.keep(key, answer);
    }

    fn restore(&self, answers: Vec<(AskedKey, KeptAnswer)>) -> Result<(), Problem> {
        self.on_thread(move |database| database.add_missing(&answers))
    }
}

impl fmt::Debug for SqliteAnswers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SqliteAnswers").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Drop for SqliteAnswers {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was told by the thread, and cost only the cache.
            drop(thread.join());
        }
    }
}
