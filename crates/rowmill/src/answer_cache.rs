//! Reuse of answers, within a run or from a cache.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::ledger::LedgerEvent;
use rowmill_core::ports::RunStore;
use rowmill_core::record::{ReusableAnswer, ReusedAnswerSource};
use rowmill_engine::AnswerCache;
use rowmill_store::answers::SqliteAnswerStore;
use rowmill_store::file::WorkFolder;
use rowmill_types::Problem;
use tokio::runtime::Handle;

use crate::inputs::WarnFn;
use crate::run::run_on_thread;
use crate::spec::RunSpec;

/// How many answers are restored into a store at once.
const RESTORED_AT_ONCE: usize = 1024;

/// Opens the store for `--cache` or `--dedupe`. Without a cache, answers are kept in the work folder
/// until the run is finished.
pub(crate) fn open_answer_cache(
    spec: &RunSpec,
    folder: &WorkFolder,
    identity: String,
    warn: WarnFn,
) -> Result<Option<AnswerCache>, Problem> {
    let (place, kept_before) = match (&spec.work.cache, spec.work.dedupe) {
        (Some(folder), _) => (folder.clone(), ReusedAnswerSource::Cache),
        (None, true) => (folder.shared_answers_path(), ReusedAnswerSource::Duplicate),
        (None, false) => return Ok(None),
    };
    Ok(Some(AnswerCache { kept_before, ..open_cache_folder(&place, identity, warn)? }))
}

/// Opens a store that may have answers of earlier runs.
pub(crate) fn open_cache_folder(
    folder: &Path,
    identity: String,
    warn: WarnFn,
) -> Result<AnswerCache, Problem> {
    let store = SqliteAnswerStore::open(folder, Arc::new(move |text| warn(text.into())))?;
    Ok(AnswerCache { store: Arc::new(store), identity, kept_before: ReusedAnswerSource::Cache })
}

/// Restores answers that are in the ledger of an earlier run but did not reach the store before the run
/// was killed: they have been paid for.
pub(crate) fn restore_answers_from_ledger(
    answers: &AnswerCache,
    store: &dyn RunStore,
) -> Result<(), Problem> {
    let mut found = Vec::new();
    store.scan(&mut |scanned| {
        if matches!(scanned.event, LedgerEvent::Ended(_)) {
            found.extend(ReusableAnswer::from_ledger_line(scanned.line));
        }
        if found.len() >= RESTORED_AT_ONCE {
            answers.store.restore(std::mem::take(&mut found))?;
        }
        Ok(())
    })?;
    if found.is_empty() { Ok(()) } else { answers.store.restore(found) }
}

/// Closes a store of answers on its own thread, however the run ends: the store writes its remaining
/// answers, which may take a while, and the thread that drives calls must not wait for it. It is
/// dropped after everything else that holds the store.
pub(crate) struct AnswersEnd {
    answers: Option<AnswerCache>,
    runtime: Handle,
}

impl AnswersEnd {
    pub(crate) fn of(answers: Option<&AnswerCache>) -> Self {
        Self { answers: answers.cloned(), runtime: Handle::current() }
    }

    /// Waits until everything is written.
    pub(crate) async fn wait(mut self) -> Result<(), Problem> {
        let Some(answers) = self.answers.take() else { return Ok(()) };
        run_on_thread(move || {
            drop(answers);
            Ok(())
        })
        .await
    }
}

impl Drop for AnswersEnd {
    fn drop(&mut self) {
        if let Some(answers) = self.answers.take() {
            drop(self.runtime.spawn_blocking(move || drop(answers)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};

    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use rowmill_core::ports::{AnswerKey, AnswerStore, StoredAnswer};

    use super::*;

    /// Sends the thread on which it is dropped.
    #[derive(Debug)]
    struct Ending(mpsc::Sender<ThreadId>);

    impl AnswerStore for Ending {
        fn find(&self, _: AnswerKey) -> BoxFuture<'_, Option<StoredAnswer>> {
            std::future::ready(None).boxed()
        }

        fn store(&self, _: AnswerKey, _: &StoredAnswer) {}
    }

    impl Drop for Ending {
        fn drop(&mut self) {
            self.0.send(thread::current().id()).ok();
        }
    }

    #[tokio::test]
    async fn a_store_of_answers_ends_on_another_thread_whether_its_end_is_waited_for_or_not() {
        for is_waited_for in [true, false] {
            let (ended, has_ended) = mpsc::channel();
            let store = Arc::new(Ending(ended));
            let answers =
                AnswerCache { store, identity: String::new(), kept_before: ReusedAnswerSource::Cache };
            let end = AnswersEnd::of(Some(&answers));
            drop(answers);
            if is_waited_for {
                end.wait().await.unwrap();
            } else {
                drop(end);
            }
            assert_ne!(has_ended.recv().unwrap(), thread::current().id());
        }
    }
}
