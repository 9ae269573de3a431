//! Functions of the program in the place of a worker.

use std::sync::Arc;

use super::builder::{Batch, Chosen};
use super::failure::Failure;
use super::function::WorkFn;
use super::item::{Done, Item};

impl<T: Send + Sync + 'static, P> Batch<T, String, String, P> {
    /// Has a function work on items instead of a model: every item gets a call of its own, and
    /// what the call keeps is the item's alone. A panic is that item's failure.
    ///
    /// It runs on threads for such work, as many as there are cores, so that one that computes holds
    /// up neither calls nor other batches. Once calls have shown to be brief, less than a tenth of a
    /// millisecond without waiting, they are made beside the work on other items, where they cost
    /// least, until one takes longer. A function that blocks takes one of few threads; it belongs
    /// into [`Batch::worker_blocking`]. A call that computes when the batch is cancelled continues
    /// until it next waits.
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
        F: Fn(Item<T>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let work: WorkFn<T, R> = Arc::new(move |item| Box::pin(work(item)));
        Batch {
            chosen: Chosen::Function(work),
            ..self.with_answers(None, Arc::new(|done: Done<T, R>| Ok(done.answer)))
        }
    }

    /// Has a function work on items that blocks or computes for long: it runs on threads for such
    /// work, as many at once as [`Batch::concurrency`] says. A call that has begun runs to its end
    /// even if nobody waits for it any more.
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
        F: Fn(&T) -> Result<R, Failure> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        self.worker_fn(move |item: Item<T>| {
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
