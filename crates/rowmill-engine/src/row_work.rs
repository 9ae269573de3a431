//! The work on one row: step by step, with one report at the end.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use rowmill_core::agent::RowState;
use rowmill_core::ports::Observer;
use rowmill_types::{RowError, RowErrorKind};
use tokio::time::Instant;

use crate::answer_checks::AnswerChecks;
use crate::endpoint::CallTicket;
pub(crate) use crate::prepared::EndedRow;
use crate::prepared::PreparedRow;
use crate::row_context::RowContext;
use crate::row_execution::RowExecution;
use crate::run_account::{RunAccount, RunHalt};
use crate::waiting_rows::WaitingRows;
use crate::{RowExecutionSetup, RowWorker, StopHandle};

/// State that all rows of a run share.
pub(crate) struct RunContext {
    pub(crate) run: String,
    pub(crate) worker: RowExecutionSetup,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) stop: StopHandle,
    pub(crate) began: Instant,
    pub(crate) account: RunAccount,
    /// Whether every row was sent, so that only those in flight can show a failure.
    pub(crate) all_sent: AtomicBool,
    /// Whether rows are to end at once, dropping what is under way for them.
    pub(crate) aborted: AtomicBool,
    /// Rows that wait out a refusal of their own.
    pub(crate) waiting_rows: Arc<WaitingRows>,
    /// Rows whose answers are being checked.
    pub(crate) checks: AnswerChecks,
}

/// A row whose work has ended.
pub(crate) struct WorkedRow {
    pub(crate) outcome: WorkOutcome,
    /// Its row worker.
    pub(crate) row_worker: Arc<RowWorker>,
    /// What stops the run, if the row encountered it.
    pub(crate) halt: Option<RunHalt>,
}

/// The outcome of the work on a row.
pub(crate) enum WorkOutcome {
    /// The row ended, successfully or not.
    Ended(Box<EndedRow>),
    /// The row was released, because the run stops.
    Released(Box<PreparedRow>),
    /// The row waits for something outside of the process.
    Parked(Box<PreparedRow>, Vec<String>),
}

impl WorkedRow {
    /// The number of the row.
    pub(crate) fn row(&self) -> u64 {
        match &self.outcome {
            WorkOutcome::Ended(ended) => ended.number,
            WorkOutcome::Released(prepared) | WorkOutcome::Parked(prepared, _) => prepared.row.number(),
        }
    }
}

/// The ticket for the first call of a row, and which call that is.
pub(crate) struct FirstCall<'a> {
    pub(crate) model_role: usize,
    pub(crate) endpoint: usize,
    pub(crate) ticket: CallTicket<'a>,
}

/// Works on a row to its end, with the ticket for its first call. A panic on the way is that row's failure. If it is
/// polled after the run was aborted, the row ends at once.
pub(crate) async fn work_on_row<'a>(
    shared: &'a RunContext,
    row_worker: Arc<RowWorker>,
    mut prepared: PreparedRow,
    first: FirstCall<'a>,
) -> WorkedRow {
    let start = shared.began.elapsed();
    let before = std::mem::take(&mut prepared.earlier_calls);
    let row_state = prepared.row_state.take().unwrap_or_else(|| {
        let messages = std::mem::take(&mut prepared.messages);
        Box::new(RowState::start(&row_worker.graph, messages))
    });
    let context = RowContext::new(shared, row_worker, &prepared, before.spent());
    let mut row_execution = RowExecution::new(&context, *row_state, first, before);
    let executed = {
        // Pinned here, because a combinator would store it twice, and a row is moved with all of it.
        let mut going = pin!(row_execution.run());
        poll_fn(|context| match shared.aborted.load(Ordering::Relaxed) {
            true => Poll::Ready(None),
            false => caught(going.as_mut(), context).map(Some),
        })
        .await
    };
    let cut = row_execution.collect_dropped();
    match executed {
        Some(Ok(())) => {}
        Some(Err(panic)) => {
            let what = panic_message(&*panic);
            row_execution
                .abort(RowError::new(RowErrorKind::Internal, format!("the worker panicked: {what}")));
        }
        None if context.is_untouched() => {}
        None => row_execution.abort(cut),
    }
    let halt = row_execution.take_halt();
    if let Some(waits_for) = row_execution.take_parked() {
        drop(row_execution);
        return WorkedRow {
            outcome: WorkOutcome::Parked(Box::new(prepared), waits_for),
            row_worker: context.row_worker,
            halt,
        };
    }
    if row_execution.is_released() {
        drop(row_execution);
        return WorkedRow {
            outcome: WorkOutcome::Released(Box::new(prepared)),
            row_worker: context.row_worker,
            halt,
        };
    }
    let ended = Box::new(row_execution.finish(prepared, start));
    WorkedRow { outcome: WorkOutcome::Ended(ended), row_worker: context.row_worker, halt }
}

/// Polls a future and catches its panics.
fn caught<T>(
    future: Pin<&mut impl Future<Output = T>>,
    context: &mut Context<'_>,
) -> Poll<Result<T, Box<dyn Any + Send>>> {
    match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    }
}

/// The message of a panic.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
