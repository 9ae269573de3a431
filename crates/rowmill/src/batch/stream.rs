//! Results one by one, in the order in which items end.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use rowmill_types::Problem;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::backpressure::ItemBackpressure;
use super::builder::Batch;
use super::drive::BatchDrive;
use super::failure::{BatchError, ItemError};
use super::policy::OnFailure;
use super::report::BatchReport;
use super::result_collector::{DeliveredResult, ResultOutlet};
use super::run::{error_cause, not_started_error};

impl<T, A, U, P> Batch<T, A, U, P>
where
    T: Send + Sync + 'static,
    A: Send + 'static,
    U: Send + 'static,
    P: OnFailure,
{
    /// Streams results as items end, each with the index of its item. Memory does not grow with the
    /// number of items: if results are not taken, no further items are read.
    ///
    /// The batch starts when the stream is first polled, which needs a tokio runtime, and continues
    /// while the program processes a result. Dropping the stream cancels the batch.
    ///
    /// An error is always the last entry of the stream; [`Batch::run`] describes when there is one.
    /// Items that were not worked on are not in the stream.
    pub fn stream(self) -> ResultStream<U, P> {
        let backpressure = self.backpressure(true);
        let (sender, receiver) = mpsc::unbounded_channel();
        let drive = BatchDrive {
            outlet: ResultOutlet::Channel(sender),
            backpressure: Arc::clone(&backpressure),
            raises: P::RAISES,
            first: false,
            counts: None,
        };
        let driving = async move {
            let driven = self.drive(drive).await?;
            Ok(driven.report)
        };
        ResultStream {
            waiting: Some(Box::pin(driving)),
            tasks: JoinSet::new(),
            receiver,
            backpressure,
            ended: None,
            failure: None,
            report: None,
            policy: PhantomData,
        }
    }
}

/// The results of a batch, in the order in which items end.
///
/// ```
/// use futures_util::StreamExt;
/// use rowmill::Batch;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let mut results = Batch::over([5, 6]).worker_fn(|item| async move { Ok(*item) }).stream();
/// while let Some(next) = results.next().await {
///     let (index, number) = next?;
///     assert_eq!(index + 5, number);
/// }
/// assert_eq!(results.report().map(|report| report.ok), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ResultStream<U, P> {
    /// The batch, until it is started.
    waiting: Option<BoxFuture<'static, Result<BatchReport, Problem>>>,
    /// The running batch, dropped with the stream.
    tasks: JoinSet<Result<BatchReport, Problem>>,
    receiver: mpsc::UnboundedReceiver<DeliveredResult<U>>,
    backpressure: Arc<ItemBackpressure>,
    /// The end of the batch, until all of its results were taken.
    ended: Option<Result<BatchReport, Problem>>,
    /// The failure that is raised at the end.
    failure: Option<ItemError>,
    report: Option<BatchReport>,
    policy: PhantomData<fn() -> P>,
}

impl<U, P> ResultStream<U, P> {
    /// The report of the batch, once the stream has ended.
    #[must_use]
    pub fn report(&self) -> Option<&BatchReport> {
        self.report.as_ref()
    }
}

impl<U, P> fmt::Debug for ResultStream<U, P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ResultStream").field("report", &self.report).finish_non_exhaustive()
    }
}

impl<U, P> ResultStream<U, P>
where
    P: OnFailure,
{
    /// Handles the end of the batch: returns its error, if there is one.
    fn end(&mut self, ended: Result<BatchReport, Problem>) -> Option<BatchError<U>> {
        let report = match ended {
            Ok(report) => report,
            Err(problem) => return Some(not_started_error(problem)),
        };
        let cause = error_cause::<P>(&report, self.failure.as_ref(), true);
        let error = cause.map(|cause| BatchError::new(cause, Vec::new(), Some(report.clone())));
        self.report = Some(report);
        error
    }
}

impl<U, P> Stream for ResultStream<U, P>
where
    U: Send + 'static,
    P: OnFailure,
{
    type Item = Result<(usize, P::Slot<U>), BatchError<U>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(batch) = this.waiting.take() {
            this.tasks.spawn(batch);
        }
        loop {
            if let Poll::Ready(Some((index, result))) = this.receiver.poll_recv(context) {
                this.backpressure.result_taken();
                if P::RAISES
                    && let Err(error) = &result
                {
                    this.failure.get_or_insert(error.clone());
                }
                match P::slot(result) {
                    Some(slot) => return Poll::Ready(Some(Ok((index, slot)))),
                    None => continue,
                }
            }
            if let Some(ended) = this.ended.take() {
                // All results of the batch were taken.
                return Poll::Ready(this.end(ended).map(Err));
            }
            match ready!(this.tasks.poll_join_next(context)) {
                None => return Poll::Ready(None),
                Some(Ok(ended)) => this.ended = Some(ended),
                Some(Err(error)) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => return Poll::Ready(None),
                },
            }
        }
    }
}

impl<U, P> Unpin for ResultStream<U, P> {}
