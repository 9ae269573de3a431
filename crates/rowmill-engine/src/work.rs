//! The work on one row: its course, step by step, and one report at the end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures_util::FutureExt;
use rowmill_core::agent::Course;
use rowmill_core::ports::Observer;
use rowmill_types::{ErrorKind, RowError};
use tokio::time::Instant;

use crate::account::{Account, Halt};
use crate::lane::{Lane, Ticket};
pub(crate) use crate::prepared::Ended;
use crate::prepared::Prepared;
use crate::row::RowContext;
use crate::walk::Walk;
use crate::{Stop, Worker};

/// What all rows of a run share.
pub(crate) struct Shared {
    pub(crate) run: String,
    pub(crate) worker: Worker,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) stop: Stop,
    pub(crate) began: Instant,
    pub(crate) account: Account,
    /// Whether every row was sent, so that only those in flight can show what is wrong.
    pub(crate) all_sent: AtomicBool,
}

impl Shared {
    fn lanes(&self, voice: usize) -> &[Lane] {
        self.worker.voices.get(voice).map(|voice| voice.lanes.as_slice()).unwrap_or_default()
    }

    /// The model that a turn is sent to first: the first one that is not down.
    pub(crate) fn route(&self, voice: usize) -> usize {
        self.lanes(voice).iter().position(|lane| !lane.gate.is_down()).unwrap_or(0)
    }

    pub(crate) fn lane(&self, voice: usize, index: usize) -> Option<&Lane> {
        self.lanes(voice).get(index)
    }

    pub(crate) fn is_up(&self, voice: usize, index: usize) -> bool {
        self.lane(voice, index).is_some_and(|lane| !lane.gate.is_down())
    }

    /// The next model after this one that is up.
    pub(crate) fn next_up(&self, voice: usize, index: usize) -> Option<usize> {
        (index + 1..self.lanes(voice).len()).find(|&next| self.is_up(voice, next))
    }

    /// Whether another model than this one can be asked.
    pub(crate) fn has_other(&self, voice: usize, index: usize) -> bool {
        (0..self.lanes(voice).len()).any(|other| other != index && self.is_up(voice, other))
    }
}

/// What became of a row.
pub(crate) enum Done {
    /// It ended, well or not.
    Ended { ended: Box<Ended>, halt: Option<Halt> },
    /// It was given back, because the run stops.
    Released { prepared: Box<Prepared>, halt: Option<Halt> },
}

/// Leave for the first call of a row, and which call that is.
pub(crate) struct FirstCall<'a> {
    pub(crate) voice: usize,
    pub(crate) lane: usize,
    pub(crate) ticket: Ticket<'a>,
}

/// Works on a row to its end, with leave for its first call. A panic on the way is that
/// row's failure.
pub(crate) async fn work<'a>(shared: &'a Shared, mut prepared: Prepared, first: FirstCall<'a>) -> Done {
    let start = shared.began.elapsed();
    let before = std::mem::take(&mut prepared.before);
    let course = prepared.course.take().unwrap_or_else(|| {
        let messages = std::mem::take(&mut prepared.messages);
        Box::new(Course::start(&shared.worker.cast, messages))
    });
    let context = RowContext::new(shared, &prepared, before.spent());
    let mut walk = Walk::new(&context, *course, first, before);
    let walked = AssertUnwindSafe(walk.go()).catch_unwind().await;
    if let Err(panic) = walked {
        let what = panic.downcast_ref::<&str>().map(ToString::to_string);
        let what = what.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        walk.abort(RowError::new(ErrorKind::Internal, format!("the worker panicked: {what}")));
    }
    let halt = walk.take_halt();
    if walk.is_released() {
        return Done::Released { prepared: Box::new(prepared), halt };
    }
    Done::Ended { ended: Box::new(walk.end(prepared, start)), halt }
}
