//! Sets up the workers of a batch.

use std::sync::Arc;

use rowmill_engine::{AnswerCache, WorkerAssignment};
use rowmill_types::Problem;

use super::builder::{EncodeFn, WorkerChoice};
use super::drive::no_worker_problem;
use super::function_model::FunctionModel;
use super::item_table::ItemTable;
use super::ledger::WorkerIdentity;
use super::per_item_workers::PerItemWorkers;
use super::row_worker::{ReadyWorker, WorkerContext, function_row_worker};
use super::settings::BatchSettings;
use crate::answer_cache::open_cache_folder;
use crate::control::RunControl;
use crate::inputs::warn_fn;

/// The workers of a batch, after setup.
pub(super) enum BatchWorkers<T, A, U> {
    Shared(ReadyWorker),
    PerItem(Arc<PerItemWorkers<T, A, U>>),
}

impl<T: Send + Sync, A: Send, U: Send> BatchWorkers<T, A, U> {
    pub(super) fn assignment(&self) -> WorkerAssignment
    where
        T: 'static,
        A: 'static,
        U: 'static,
    {
        match self {
            Self::Shared(ready) => WorkerAssignment::Shared(Arc::clone(&ready.row_worker)),
            Self::PerItem(chooser) => WorkerAssignment::PerRow(Arc::clone(chooser) as _),
        }
    }

    pub(super) fn worker_identity(&self, schema: Option<String>) -> WorkerIdentity {
        let (name, identity) = match self {
            Self::Shared(ready) => (ready.name.clone(), ready.identity.clone()),
            Self::PerItem(_) => ("a worker for every item".to_owned(), String::new()),
        };
        WorkerIdentity { name, identity, schema }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Shared(ready) => ready.close().await,
            Self::PerItem(chooser) => chooser.close().await,
        }
    }
}

impl<T, A, U> BatchWorkers<T, A, U>
where
    T: Send + Sync + 'static,
    A: Send + 'static,
    U: Send + 'static,
{
    /// Sets up the chosen worker. Answers of a function are encoded if they are stored.
    pub(super) async fn prepare(
        chosen: WorkerChoice<T, A>,
        item_table: &Arc<ItemTable<T, A, U>>,
        encode: Option<EncodeFn<A>>,
        worker_context: impl FnOnce() -> WorkerContext,
    ) -> Result<Self, Problem> {
        Ok(match chosen {
            WorkerChoice::Function(work) => {
                let model = FunctionModel {
                    work,
                    item_table: Arc::clone(item_table),
                    encode,
                    runner: Arc::default(),
                };
                let row_worker = Arc::new(function_row_worker(Arc::new(model), encode.is_some())?);
                let name = "function".to_owned();
                Self::Shared(ReadyWorker { row_worker, name, identity: String::new(), given: Vec::new() })
            }
            WorkerChoice::Shared(worker) => Self::Shared(worker_context().prepare_worker(&worker).await?),
            WorkerChoice::PerItem(choose) => {
                Self::PerItem(Arc::new(PerItemWorkers::new(choose, Arc::clone(item_table), worker_context())))
            }
            WorkerChoice::NotChosen => return Err(no_worker_problem()),
        })
    }

    /// Opens the answer cache, if one is set.
    pub(super) fn open_answer_cache(
        &self,
        settings: &BatchSettings,
        control: &RunControl,
    ) -> Result<Option<AnswerCache>, Problem> {
        match (&settings.work.cache, self) {
            (Some(folder), Self::Shared(ready)) => {
                open_cache_folder(folder, ready.identity.clone(), warn_fn(control)).map(Some)
            }
            _ => Ok(None),
        }
    }
}
