//! The ways to run a batch to its end.

use std::sync::{Arc, Mutex};

use rowmill_types::{Problem, ProblemCode};

use super::backpressure::ItemBackpressure;
use super::builder::Batch;
use super::drive::{BatchDrive, BatchEnd};
use super::failure::{BatchError, BatchFailureCause, ItemError};
use super::policy::OnFailure;
use super::program_maps::AcceptFn;
use super::report::{BatchReport, BatchResults, FirstBatchResult};
use super::result_collector::{FirstBatchResultState, ResultOutlet, ResultSlot, lock_unpoisoned};
use super::vocabulary::LIBRARY_VOCABULARY;
use rowmill_engine::StopCause;

impl<T, A, U, P> Batch<T, A, U, P>
where
    T: Send + Sync + 'static,
    A: Send + 'static,
    U: Send + 'static,
    P: OnFailure,
{
    /// Runs the batch and returns the results in the order of the items.
    ///
    /// It needs a tokio runtime with time enabled and, if models are called, I/O (`enable_all`).
    /// Dropping the future cancels the batch: no part of it keeps running.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let results = Batch::over(["a"]).prompt(|item| *item).worker("passthrough").run().await?;
    /// assert_eq!(results.items, ["a"]);
    /// assert_eq!(results.report.ok, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The batch could not start, or no further item could have succeeded. With [`StopAtFirstFailure`](super::StopAtFirstFailure)
    /// also: an item failed, a limit was reached, or the batch was stopped. The error holds the results
    /// so far.
    pub async fn run(self) -> Result<BatchResults<P::Slot<U>>, BatchError<U>> {
        let list: Arc<Mutex<Vec<ResultSlot<U>>>> = Arc::default();
        let drive = BatchDrive {
            outlet: ResultOutlet::List(Arc::clone(&list)),
            backpressure: self.backpressure(false),
            raises: P::RAISES,
            first: false,
            counts: None,
        };
        let BatchEnd { report, items } = Box::pin(self.drive(drive)).await.map_err(not_started_error)?;
        let mut list = std::mem::take(&mut *lock_unpoisoned(&list));
        list.resize_with(usize::try_from(items).unwrap_or(usize::MAX).max(list.len()), || None);
        let failure = list.iter().flatten().find_map(|result| result.as_ref().err());
        if let Some(cause) = error_cause::<P>(&report, failure, list.iter().all(Option::is_some)) {
            let partial = list.into_iter().map(|result| result.and_then(Result::ok)).collect();
            return Err(BatchError::new(cause, partial, Some(report)));
        }
        let slots = list.into_iter().enumerate();
        let slots =
            slots.filter_map(|(index, result)| P::slot(result.unwrap_or(Err(ItemError::NotRun { index }))));
        Ok(BatchResults::new(slots.collect(), report))
    }

    /// Runs the batch like [`Batch::run`], for programs without a runtime: it creates its own and
    /// blocks until the batch has ended. It also works inside a runtime, but blocks the thread there.
    ///
    /// # Errors
    ///
    /// As [`Batch::run`].
    pub fn run_blocking(self) -> Result<BatchResults<P::Slot<U>>, BatchError<U>>
    where
        P::Slot<U>: Send,
    {
        on_own_runtime(|| self.run()).unwrap_or_else(|problem| Err(not_started_error(problem)))
    }

    /// Runs the batch until one item has a result. Exactly one result is returned; work in progress on
    /// other items is cancelled and counted in the report.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let first = Batch::over(1..1_000).worker_fn(|item| async move { Ok(*item) }).run_until_first_result().await?;
    /// let (index, number) = first.result.ok_or("no item had a result")?;
    /// assert_eq!(index + 1, number);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Batch::run`]. With [`StopAtFirstFailure`](super::StopAtFirstFailure) an item that fails before the first result
    /// ends the batch.
    pub async fn run_until_first_result(self) -> Result<FirstBatchResult<U>, BatchError<U>> {
        self.first_counting(None).await
    }

    /// Runs the batch until an item has a result for which `counts` returns `true`; other results are
    /// skipped.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let batch = Batch::over(1..1_000).worker_fn(|item| async move { Ok(*item) });
    /// let first = batch.run_until_matching_result(|number| number % 7 == 0).await?;
    /// assert!(first.result.is_some_and(|(_, number)| number % 7 == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Batch::run_until_first_result`].
    pub async fn run_until_matching_result<F>(self, counts: F) -> Result<FirstBatchResult<U>, BatchError<U>>
    where
        F: Fn(&U) -> bool + Send + Sync + 'static,
    {
        self.first_counting(Some(Arc::new(counts))).await
    }

    async fn first_counting(self, counts: Option<AcceptFn<U>>) -> Result<FirstBatchResult<U>, BatchError<U>> {
        let first = Arc::new(Mutex::new(FirstBatchResultState::none()));
        let drive = BatchDrive {
            outlet: ResultOutlet::First(Arc::clone(&first)),
            backpressure: self.backpressure(false),
            raises: P::RAISES,
            first: true,
            counts,
        };
        let BatchEnd { report, .. } = Box::pin(self.drive(drive)).await.map_err(not_started_error)?;
        let FirstBatchResultState { result, failure } =
            std::mem::replace(&mut *lock_unpoisoned(&first), FirstBatchResultState::none());
        match error_cause::<P>(&report, failure.as_ref(), true) {
            // The wanted result is there, whatever happened to other items.
            Some(_) if result.is_some() => Ok(FirstBatchResult::new(result, report)),
            Some(cause) => Err(BatchError::new(cause, Vec::new(), Some(report))),
            None => Ok(FirstBatchResult::new(result, report)),
        }
    }

    pub(super) fn backpressure(&self, streams: bool) -> Arc<ItemBackpressure> {
        let slice = self.settings.batch_size.map(|items| (items as u64).max(1));
        Arc::new(ItemBackpressure::new(slice, streams))
    }
}

/// The reason why a batch is an error, if it is one.
pub(super) fn error_cause<P: OnFailure>(
    report: &BatchReport,
    failure: Option<&ItemError>,
    complete: bool,
) -> Option<BatchFailureCause> {
    match &report.stopped {
        Some(StopCause::Problem(problem)) => Some(BatchFailureCause::Problem(problem.clone())),
        _ if !P::RAISES => None,
        Some(StopCause::FirstResult) => None,
        Some(StopCause::MaxErrors(_)) | None => match failure {
            Some(failure) => Some(BatchFailureCause::Item(failure.clone())),
            None if complete => None,
            None => Some(BatchFailureCause::Problem(internal_problem())),
        },
        Some(cause) => Some(BatchFailureCause::Stopped(cause.clone())),
    }
}

pub(super) fn not_started_error<U>(problem: Problem) -> BatchError<U> {
    BatchError::new(BatchFailureCause::Problem(problem.with_vocabulary(LIBRARY_VOCABULARY)), Vec::new(), None)
}

pub(super) fn internal_problem() -> Problem {
    Problem::new(ProblemCode::Internal, "an item of the batch is not accounted for")
        .hint("please report it with a description of the batch")
}

/// Runs a future to its end on its own runtime, and on its own thread if the current one already drives
/// a runtime.
fn on_own_runtime<F, R>(make: impl FnOnce() -> F + Send) -> Result<R, Problem>
where
    F: Future<Output = R>,
    R: Send,
{
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Problem::new(ProblemCode::Internal, "cannot create a runtime for the batch").cause(error)
        })?;
        Ok(runtime.block_on(make()))
    };
    if tokio::runtime::Handle::try_current().is_err() {
        return run();
    }
    std::thread::scope(|scope| match scope.spawn(run).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
