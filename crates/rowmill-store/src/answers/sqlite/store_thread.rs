//! The store's thread: only it accesses the file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Error;

use super::database::{AnswerDatabase, is_busy};
use super::queue::{FindRequest, StoreQueue};
use super::store::NoticeFn;

/// How long the end of a run waits for another process that writes to the same file.
const LAST_PATIENCE: Duration = Duration::from_secs(30);

/// Answers look-ups and writes answers, until the store is dropped or the file fails.
pub(super) struct StoreThread {
    pub(super) database: AnswerDatabase,
    pub(super) path: PathBuf,
    pub(super) queue: Arc<StoreQueue>,
    pub(super) notice: NoticeFn,
}

impl StoreThread {
    /// Works until nothing is left to do.
    pub(super) fn run(mut self) {
        // However this thread ends, nothing may be left waiting for it.
        let ended = EndQueueOnDrop(Arc::clone(&self.queue));
        if let Err(error) = self.work() {
            self.report_trouble(&format!("is no longer usable; continuing without it: {error}"));
            return;
        }
        match ended.0.stop() {
            0 => {}
            lost => {
                let answers = if lost == 1 { "answer" } else { "answers" };
                self.report_trouble(&format!(
                    "was too slow, or locked by another process for too long: {lost} {answers} not stored"
                ));
            }
        }
    }

    fn work(&mut self) -> Result<(), Error> {
        loop {
            let work = self.queue.next_work();
            self.answer(work.finds)?;
            if work.write {
                self.write_group()?;
            }
            for job in work.jobs {
                self.write_all()?;
                job(&mut self.database);
            }
            if work.closing {
                return self.write_all();
            }
        }
    }

    fn answer(&self, finds: Vec<FindRequest>) -> Result<(), Error> {
        let mut hits = Vec::new();
        for (key, asker) in finds {
            let found = match self.database.find(key) {
                Ok(found) => found,
                // Another process holds the lock: calling the model is better than waiting.
                Err(error) if is_busy(&error) => None,
                Err(error) => return Err(error),
            };
            let hit = found.is_some();
            // A caller that has gone away did not use the answer.
            if asker.send(found).is_ok() && hit {
                hits.push(key);
            }
        }
        if !hits.is_empty() {
            self.queue.count_hits(&hits);
        }
        Ok(())
    }

    /// Writes one group; `false` if another process prevented it.
    fn write_group(&mut self) -> Result<bool, Error> {
        let group = self.queue.take_group();
        match self.database.write(&group) {
            Ok(()) => {
                self.queue.group_written(group);
                Ok(true)
            }
            Err(error) if is_busy(&error) => {
                self.queue.put_back(group);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes everything, or as much as possible before the time limit.
    fn write_all(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        while !self.queue.is_written() {
            if !self.write_group()? && began.elapsed() > LAST_PATIENCE {
                break;
            }
        }
        Ok(())
    }

    fn report_trouble(&self, what: &str) {
        (self.notice)(format!("the cache `{}` {what}", self.path.display()));
    }
}

/// Ends the queue, even after a panic.
struct EndQueueOnDrop(Arc<StoreQueue>);

impl Drop for EndQueueOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
