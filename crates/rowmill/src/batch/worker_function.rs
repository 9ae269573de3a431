//! Functions of the program as workers.

use std::sync::Arc;

use super::builder::{Batch, WorkerChoice};
use super::failure::FunctionFailure;
use super::function_model::WorkFn;
use super::item::{AnsweredItem, BatchItem};

impl<T: Send + Sync + 'static, P> Batch<T, String, String, P> {
    /// Lets a function work on the items instead of a model. Every item gets its own call, so the local
    /// state of a call belongs to one item. A panic is that item's failure.
    ///
    /// The function runs on separate threads, at most as many as there are cores, so that a long
    /// computation delays neither model calls nor other batches. Once calls have proven to be fast
    /// (less than a tenth of a millisecond without waiting), they run on the thread that drives the
    /// batch, which is cheapest, until one takes longer. A function that blocks occupies one of these
    /// few threads; use [`Batch::worker_blocking`] for it. If the batch is cancelled during a
    /// computation, the call runs on until it next waits.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// let results = Batch::over([1, 2]).worker_fn(|item| async move { Ok(*item * 10) }).run_blocking()?;
    /// assert_eq!(results.items, [10, 20]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn worker_fn<R, F, Fut>(self, work: F) -> Batch<T, R, R, P>
    where
        R: Send + 'static,
        F: Fn(BatchItem<T>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, FunctionFailure>> + Send + 'static,
    {
        let work: WorkFn<T, R> = Arc::new(move |item| Box::pin(work(item)));
        Batch {
            chosen: WorkerChoice::Function(work),
            ..self.with_answer_type(None, Arc::new(|done: AnsweredItem<T, R>| Ok(done.answer)))
        }
    }

    /// Lets a function that blocks or computes for long work on the items. It runs on threads for
    /// blocking work, with up to [`Batch::concurrency`] calls at once. A call that has started runs to
    /// its end even if nothing waits for it any more.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// let batch = Batch::over(["Cargo.toml"]).worker_blocking(|path| Ok(std::fs::read_to_string(path)?.len()));
    /// assert!(batch.run_blocking()?.items[0] > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn worker_blocking<R, F>(self, work: F) -> Batch<T, R, R, P>
    where
        R: Send + 'static,
        F: Fn(&T) -> Result<R, FunctionFailure> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        self.worker_fn(move |item: BatchItem<T>| {
            let work = Arc::clone(&work);
            async move {
                let done = tokio::task::spawn_blocking(move || work(&item)).await;
                match done.map_err(tokio::task::JoinError::try_into_panic) {
                    Ok(result) => result,
                    Err(Ok(panic)) => std::panic::resume_unwind(panic),
                    Err(Err(error)) => Err(error.into()),
                }
            }
        })
    }
}
