//! The work on one row: step by step, with one report at the end.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use rowmill_core::agent::Course;
use rowmill_core::ports::Observer;
use rowmill_types::{ErrorKind, RowError};
use tokio::time::Instant;

use crate::account::{Account, Halt};
use crate::aside::RowsAside;
use crate::checks::AnswerChecks;
use crate::lane::Ticket;
pub(crate) use crate::prepared::Ended;
use crate::prepared::Prepared;
use crate::row::RowContext;
use crate::walk::Walk;
use crate::{Crew, Stop, Worker};

/// State that all rows of a run share.
pub(crate) struct Shared {
    pub(crate) run: String,
    pub(crate) worker: Worker,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) stop: Stop,
    pub(crate) began: Instant,
    pub(crate) account: Account,
    /// Whether every row was sent, so that only those in flight can show a failure.
    pub(crate) all_sent: AtomicBool,
    /// Whether rows are to end at once, dropping what is under way for them.
    pub(crate) aborted: AtomicBool,
    /// Rows that wait out a refusal of their own.
    pub(crate) aside: Arc<RowsAside>,
    /// Rows whose answers are being checked.
    pub(crate) checks: AnswerChecks,
}

/// A row whose work has ended.
pub(crate) struct Done {
    pub(crate) fate: Fate,
    /// Its row worker.
    pub(crate) crew: Arc<Crew>,
    /// What stops the run, if the row encountered it.
    pub(crate) halt: Option<Halt>,
}

/// The outcome of the work on a row.
pub(crate) enum Fate {
    /// The row ended, successfully or not.
    Ended(Box<Ended>),
    /// The row was released, because the run stops.
    Released(Box<Prepared>),
    /// The row waits for something outside of the process.
    Parked(Box<Prepared>, Vec<String>),
}

impl Done {
    /// The number of the row.
    pub(crate) fn row(&self) -> u64 {
        match &self.fate {
            Fate::Ended(ended) => ended.number,
            Fate::Released(prepared) | Fate::Parked(prepared, _) => prepared.row.number(),
        }
    }
}

/// The ticket for the first call of a row, and which call that is.
pub(crate) struct FirstCall<'a> {
    pub(crate) voice: usize,
    pub(crate) lane: usize,
    pub(crate) ticket: Ticket<'a>,
}

/// Works on a row to its end, with the ticket for its first call. A panic on the way is that row's failure. If it is
/// polled after the run was aborted, the row ends at once.
pub(crate) async fn work<'a>(
    shared: &'a Shared,
    crew: Arc<Crew>,
    mut prepared: Prepared,
    first: FirstCall<'a>,
) -> Done {
    let start = shared.began.elapsed();
    let before = std::mem::take(&mut prepared.before);
    let course = prepared.course.take().unwrap_or_else(|| {
        let messages = std::mem::take(&mut prepared.messages);
        Box::new(Course::start(&crew.cast, messages))
    });
    let context = RowContext::new(shared, crew, &prepared, before.spent());
    let mut walk = Walk::new(&context, *course, first, before);
    let walked = {
        // Pinned here, because a combinator would store it twice, and a row is moved with all of it.
        let mut going = pin!(walk.go());
        poll_fn(|context| match shared.aborted.load(Ordering::Relaxed) {
            true => Poll::Ready(None),
            false => caught(going.as_mut(), context).map(Some),
        })
        .await
    };
    let cut = walk.take_in_cut();
    match walked {
        Some(Ok(())) => {}
        Some(Err(panic)) => {
            let what = said(&*panic);
            walk.abort(RowError::new(ErrorKind::Internal, format!("the worker panicked: {what}")));
        }
        None if context.is_untouched() => {}
        None => walk.abort(cut),
    }
    let halt = walk.take_halt();
    if let Some(waits_for) = walk.take_parked() {
        drop(walk);
        return Done { fate: Fate::Parked(Box::new(prepared), waits_for), crew: context.crew, halt };
    }
    if walk.is_released() {
        drop(walk);
        return Done { fate: Fate::Released(Box::new(prepared)), crew: context.crew, halt };
    }
    let ended = Box::new(walk.end(prepared, start));
    Done { fate: Fate::Ended(ended), crew: context.crew, halt }
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
pub fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
