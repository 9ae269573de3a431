//! A separate worker for every item.

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_engine::{RowWorker, RowWorkerSource, panic_message};
use rowmill_types::{Row, RowError, RowErrorKind};
use tokio::sync::OnceCell;

use super::builder::ChooseFn;
use super::function_runner::FunctionRunner;
use super::item_table::{ItemTable, item_index};
use super::result_collector::lock_unpoisoned;
use super::row_worker::{ReadyWorker, WorkerContext};
use super::worker::{Worker, WorkerParts};

/// A worker that several items share, with its setup.
struct SharedWorker {
    /// Kept alive, so that no other worker can get the same address in memory.
    _worker: Arc<WorkerParts>,
    ready: Arc<OnceCell<ReadyWorker>>,
}

/// Chooses the worker of every item, and sets it up.
pub(super) struct PerItemWorkers<T, A, U> {
    pub(super) choose: ChooseFn<T>,
    pub(super) item_table: Arc<ItemTable<T, A, U>>,
    pub(super) worker_context: WorkerContext,
    runner: Arc<FunctionRunner>,
    shared: Mutex<HashMap<usize, SharedWorker>>,
    /// Workers that were made for one item only, by the address of their row worker.
    single: Mutex<HashMap<usize, ReadyWorker>>,
    /// Tool hosts that the program passed to such workers and may pass to later ones.
    given: Mutex<HashMap<usize, Arc<dyn rowmill_core::ports::ToolHost>>>,
}

impl<T, A, U> fmt::Debug for PerItemWorkers<T, A, U> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Chooser({} shared workers)", lock_unpoisoned(&self.shared).len())
    }
}

impl<T, A, U> PerItemWorkers<T, A, U> {
    pub(super) fn new(
        choose: ChooseFn<T>,
        item_table: Arc<ItemTable<T, A, U>>,
        worker_context: WorkerContext,
    ) -> Self {
        Self {
            choose,
            item_table,
            worker_context,
            runner: Arc::default(),
            shared: Mutex::default(),
            single: Mutex::default(),
            given: Mutex::default(),
        }
    }

    async fn chosen(&self, number: u64) -> Result<Worker, RowError>
    where
        T: Send + Sync + 'static,
    {
        let item = self.item_table.item(number);
        let item = item.ok_or_else(|| RowError::new(RowErrorKind::Internal, "the item is gone"))?;
        let choose = Arc::clone(&self.choose);
        let choosing = self.runner.call(move || async move { choose(item_index(number), &item) }.boxed());
        match AssertUnwindSafe(choosing).catch_unwind().await {
            Ok(chosen) => chosen.map_err(|failure| failure.row_error(RowErrorKind::Function)),
            Err(panic) => {
                let message = format!("choosing the worker panicked: {}", panic_message(&*panic));
                Err(RowError::new(RowErrorKind::Function, message))
            }
        }
    }

    async fn row_worker(&self, worker: Worker) -> Result<Arc<RowWorker>, RowError> {
        let failed = |problem: rowmill_types::Problem| {
            let cause =
                problem.cause.map(|cause| format!(": {}", cause.with_mention_markers())).unwrap_or_default();
            RowError::new(
                RowErrorKind::Function,
                format!("{}{cause}", problem.message.with_mention_markers()),
            )
        };
        if Arc::strong_count(&worker.inner) == 1 {
            // Nothing else holds this worker, so no other item can use it.
            let ready = self.worker_context.prepare_worker(&worker).await.map_err(failed)?;
            let row_worker = Arc::clone(&ready.row_worker);
            self.note_given(&ready);
            lock_unpoisoned(&self.single).insert(Arc::as_ptr(&row_worker).addr(), ready);
            return Ok(row_worker);
        }
        let cell = {
            let mut shared = lock_unpoisoned(&self.shared);
            let place = Arc::as_ptr(&worker.inner).addr();
            let known = shared.entry(place).or_insert_with(|| SharedWorker {
                _worker: Arc::clone(&worker.inner),
                ready: Arc::default(),
            });
            Arc::clone(&known.ready)
        };
        let ready =
            cell.get_or_try_init(|| self.worker_context.prepare_worker(&worker)).await.map_err(failed)?;
        Ok(Arc::clone(&ready.row_worker))
    }

    /// Remembers the hosts that the program passed in, each once.
    fn note_given(&self, ready: &ReadyWorker) {
        let given = ready.given.iter().map(|host| (Arc::as_ptr(host).addr(), Arc::clone(host)));
        lock_unpoisoned(&self.given).extend(given);
    }

    /// Closes everything that was started for workers and is still open.
    pub(super) async fn close(&self) {
        let shared = std::mem::take(&mut *lock_unpoisoned(&self.shared));
        let single = std::mem::take(&mut *lock_unpoisoned(&self.single));
        let shared = shared.into_values().filter_map(|worker| worker.ready.get().cloned());
        for ready in single.into_values().chain(shared) {
            ready.close_own().await;
            self.note_given(&ready);
        }
        let given = std::mem::take(&mut *lock_unpoisoned(&self.given));
        for host in given.into_values() {
            host.close().await;
        }
    }
}

impl<T, A, U> RowWorkerSource for PerItemWorkers<T, A, U>
where
    T: Send + Sync + 'static,
    A: Send,
    U: Send,
{
    fn worker_for_row<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Arc<RowWorker>, RowError>> {
        Box::pin(async move {
            let worker = self.chosen(row.number()).await?;
            self.row_worker(worker).await
        })
    }

    fn row_ended(&self, row_worker: Arc<RowWorker>) -> BoxFuture<'static, ()> {
        let single = lock_unpoisoned(&self.single).remove(&Arc::as_ptr(&row_worker).addr());
        Box::pin(async move {
            if let Some(ready) = single {
                ready.close_own().await;
            }
        })
    }
}
