//! A separate worker for every item.

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_engine::{Crew, Crews, said};
use rowmill_types::{ErrorKind, Row, RowError};
use tokio::sync::OnceCell;

use super::builder::ChooseFn;
use super::collect::locked;
use super::crew::{Ready, Scene};
use super::function_runner::FunctionRunner;
use super::shelf::{Shelf, index};
use super::worker::{Inner, Worker};

/// A worker that several items share, with its setup.
struct Shared {
    /// Kept alive, so that no other worker can get the same address in memory.
    _worker: Arc<Inner>,
    ready: Arc<OnceCell<Ready>>,
}

/// Chooses the worker of every item, and sets it up.
pub(super) struct Chooser<T, A, U> {
    pub(super) choose: ChooseFn<T>,
    pub(super) shelf: Arc<Shelf<T, A, U>>,
    pub(super) scene: Scene,
    runner: Arc<FunctionRunner>,
    shared: Mutex<HashMap<usize, Shared>>,
    /// Workers that were made for one item only, by the address of their row worker.
    single: Mutex<HashMap<usize, Ready>>,
    /// Tool hosts that the program passed to such workers and may pass to later ones.
    given: Mutex<HashMap<usize, Arc<dyn rowmill_core::ports::ToolHost>>>,
}

impl<T, A, U> fmt::Debug for Chooser<T, A, U> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Chooser({} shared workers)", locked(&self.shared).len())
    }
}

impl<T, A, U> Chooser<T, A, U> {
    pub(super) fn new(choose: ChooseFn<T>, shelf: Arc<Shelf<T, A, U>>, scene: Scene) -> Self {
        Self {
            choose,
            shelf,
            scene,
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
        let item = self.shelf.item(number);
        let item = item.ok_or_else(|| RowError::new(ErrorKind::Internal, "the item is gone"))?;
        let choose = Arc::clone(&self.choose);
        let choosing = self.runner.call(move || async move { choose(index(number), &item) }.boxed());
        match AssertUnwindSafe(choosing).catch_unwind().await {
            Ok(chosen) => chosen.map_err(|failure| failure.row_error(ErrorKind::Function)),
            Err(panic) => {
                let message = format!("choosing the worker panicked: {}", said(&*panic));
                Err(RowError::new(ErrorKind::Function, message))
            }
        }
    }

    async fn crew(&self, worker: Worker) -> Result<Arc<Crew>, RowError> {
        let failed = |problem: rowmill_types::Problem| {
            let cause = problem.cause.map(|cause| format!(": {}", cause.marked())).unwrap_or_default();
            RowError::new(ErrorKind::Function, format!("{}{cause}", problem.message.marked()))
        };
        if Arc::strong_count(&worker.inner) == 1 {
            // Nothing else holds this worker, so no other item can use it.
            let ready = self.scene.ready(&worker).await.map_err(failed)?;
            let crew = Arc::clone(&ready.crew);
            self.note_given(&ready);
            locked(&self.single).insert(Arc::as_ptr(&crew).addr(), ready);
            return Ok(crew);
        }
        let cell = {
            let mut shared = locked(&self.shared);
            let place = Arc::as_ptr(&worker.inner).addr();
            let known = shared
                .entry(place)
                .or_insert_with(|| Shared { _worker: Arc::clone(&worker.inner), ready: Arc::default() });
            Arc::clone(&known.ready)
        };
        let ready = cell.get_or_try_init(|| self.scene.ready(&worker)).await.map_err(failed)?;
        Ok(Arc::clone(&ready.crew))
    }

    /// Remembers the hosts that the program passed in, each once.
    fn note_given(&self, ready: &Ready) {
        let given = ready.given.iter().map(|host| (Arc::as_ptr(host).addr(), Arc::clone(host)));
        locked(&self.given).extend(given);
    }

    /// Closes everything that was started for workers and is still open.
    pub(super) async fn close(&self) {
        let shared = std::mem::take(&mut *locked(&self.shared));
        let single = std::mem::take(&mut *locked(&self.single));
        let shared = shared.into_values().filter_map(|worker| worker.ready.get().cloned());
        for ready in single.into_values().chain(shared) {
            ready.close_own().await;
            self.note_given(&ready);
        }
        let given = std::mem::take(&mut *locked(&self.given));
        for host in given.into_values() {
            host.close().await;
        }
    }
}

impl<T, A, U> Crews for Chooser<T, A, U>
where
    T: Send + Sync + 'static,
    A: Send,
    U: Send,
{
    fn of<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Arc<Crew>, RowError>> {
        Box::pin(async move {
            let worker = self.chosen(row.number()).await?;
            self.crew(worker).await
        })
    }

    fn ended(&self, crew: Arc<Crew>) -> BoxFuture<'static, ()> {
        let single = locked(&self.single).remove(&Arc::as_ptr(&crew).addr());
        Box::pin(async move {
            if let Some(ready) = single {
                ready.close_own().await;
            }
        })
    }
}
