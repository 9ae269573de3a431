//! The work on one row: calls, retries, repairs, other models, and one report at the end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use rowmill_core::judge::{Judgement, judge};
use rowmill_core::limits::Blame;
use rowmill_core::ports::{Event, KeptAnswer, Observer};
use rowmill_core::record::{CallReport, total_usage};
use rowmill_types::{
    CallError, CallFailure, Completion, ErrorKind, Fault, Message, Money, Request, RowError,
};
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

use crate::account::{Account, Halt};
use crate::call_report::report;
use crate::lane::{Asking, Lane, NoTicket, Ticket, Waiting};
pub(crate) use crate::prepared::Ended;
use crate::prepared::Prepared;
use crate::{Stop, Worker};

/// How long the last rows of a run take a provider for down before they doubt themselves.
const DOUBT: Duration = Duration::from_secs(60);

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
    /// The model that a row is sent to first: the first one that is not down.
    pub(crate) fn route(&self) -> usize {
        self.worker.lanes.iter().position(|lane| !lane.gate.is_down()).unwrap_or(0)
    }

    pub(crate) fn lane(&self, index: usize) -> Option<&Lane> {
        self.worker.lanes.get(index)
    }

    pub(crate) fn is_up(&self, index: usize) -> bool {
        self.lane(index).is_some_and(|lane| !lane.gate.is_down())
    }

    /// The next model after this one that is up.
    fn next_up(&self, index: usize) -> Option<usize> {
        (index + 1..self.worker.lanes.len()).find(|&next| self.is_up(next))
    }
}

/// What became of a row.
pub(crate) enum Done {
    /// It ended, well or not.
    Ended { ended: Box<Ended>, halt: Option<Halt> },
    /// It was given back, because the run stops.
    Released { prepared: Box<Prepared>, halt: Option<Halt> },
}

/// What follows a failed call.
#[derive(Clone, Copy)]
enum Next {
    /// Another try, after this wait.
    After(Duration),
    /// A try with another model.
    Elsewhere,
    /// Nothing: the row has failed.
    None,
}

/// Why there is no answer.
enum NoAnswer {
    /// With what makes the run stop, if that is the cause.
    Failed(RowError, Option<Halt>),
    Released(Option<Halt>),
}

impl From<RowError> for NoAnswer {
    fn from(error: RowError) -> Self {
        Self::Failed(error, None)
    }
}

/// Works on a row to its end, with leave for its first call. A panic on the way is that
/// row's failure.
pub(crate) async fn work<'a>(
    shared: &'a Shared,
    mut prepared: Prepared,
    lane: usize,
    ticket: Ticket<'a>,
) -> Done {
    let start = shared.began.elapsed();
    let mut turn = Turn {
        shared,
        number: prepared.row.number(),
        lane,
        ticket: Some(ticket),
        calls: Vec::new(),
        failure: None,
        unknown_calls: 0,
        saved: Money::ZERO,
        failed: 0,
        worked: Duration::ZERO,
        kept: None,
    };
    let messages = std::mem::take(&mut prepared.messages);
    let keeps = prepared.key.is_some();
    let outcome =
        AssertUnwindSafe(turn.answer(messages, keeps)).catch_unwind().await.unwrap_or_else(|panic| {
            let what = panic.downcast_ref::<&str>().map(ToString::to_string);
            let what = what.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(RowError::new(ErrorKind::Internal, format!("the worker panicked: {what}")).into())
        });
    let Turn { number, calls, failure, unknown_calls, saved, kept, .. } = turn;
    let attempts = u32::try_from(calls.len()).ok().filter(|&made| made > 0);
    let (outcome, halt) = match outcome {
        Ok(result) => (Ok(result), None),
        Err(NoAnswer::Failed(error, halt)) => (Err(RowError { attempts, ..error }), halt),
        Err(NoAnswer::Released(halt)) => return Done::Released { prepared: Box::new(prepared), halt },
    };
    let Prepared { ordinal, id, row, key, .. } = prepared;
    let end = shared.began.elapsed();
    let row = Some(row);
    let reused = None;
    let ended = Box::new(Ended {
        ordinal,
        number,
        id,
        row,
        outcome,
        calls,
        start,
        end,
        failure,
        unknown_calls,
        saved,
        key,
        kept,
        reused,
        trace: None,
    });
    Done::Ended { ended, halt }
}

struct Turn<'a> {
    shared: &'a Shared,
    number: u64,
    /// The model that is asked, by its place in the list.
    lane: usize,
    /// Leave for the next call, if it is there already.
    ticket: Option<Ticket<'a>>,
    calls: Vec<CallReport>,
    failure: Option<CallError>,
    unknown_calls: u64,
    saved: Money,
    /// Calls of this model that failed; the retries of a row are shared by all its turns.
    failed: u32,
    /// Time spent on calls and between tries. Waiting for leave is nobody's fault.
    worked: Duration,
    kept: Option<KeptAnswer>,
}

impl<'a> Turn<'a> {
    async fn answer(&mut self, mut messages: Vec<Message>, keeps: bool) -> Result<String, NoAnswer> {
        let worker = &self.shared.worker;
        let mut repairs = 0;
        loop {
            let key = format!("{}-{}-{}", self.shared.run, self.number, repairs + 1);
            let mut request = Request { key, attempt: 1, messages };
            let completion = self.complete(&mut request).await?;
            match judge(&completion, worker.schema.as_ref(), repairs < worker.repairs) {
                Judgement::Result(result) => {
                    // What another model said is not what this one would say.
                    if keeps && self.lane == 0 {
                        self.keep(completion);
                    }
                    return Ok(result);
                }
                Judgement::Failed(error) => return Err(error.into()),
                Judgement::Repair(feedback) => {
                    messages = request.messages;
                    messages.push(Message::assistant(completion.text));
                    messages.push(Message::user(feedback));
                    repairs += 1;
                }
            }
        }
    }

    fn keep(&mut self, completion: Completion) {
        let usage = self.calls.iter().any(|call| call.usage.is_some()).then(|| total_usage(&self.calls));
        let model = self.calls.last().and_then(|call| call.model.clone());
        self.kept = Some(KeptAnswer { text: completion.text, usage, model });
    }

    /// One turn with the model: calls until there is an answer or no try is left.
    async fn complete(&mut self, request: &mut Request) -> Result<Completion, NoAnswer> {
        loop {
            let worked = self.worked;
            let (error, blame) = match self.call(request).await? {
                Ok(completion) => return Ok(completion),
                Err(failed) => failed,
            };
            request.attempt += 1;
            if blame == Blame::Provider && !self.is_suspect(&error) {
                // What the provider is to blame for does not use up the row's time.
                self.worked = worked;
                self.leave_lane_that_is_down();
                // Without a word on when to come back, this row alone steps aside for a moment.
                let silent = error.fault() == Fault::Throttled { after: None };
                if silent && !self.pause(&error, self.shared.worker.retry.base).await {
                    return Err(self.given_back(None));
                }
                continue;
            }
            self.failed += 1;
            let next = self.next_try(request, &error);
            if let Next::After(wait) = next {
                self.worked += wait;
                if !self.pause(&error, wait).await {
                    return Err(self.given_back(None));
                }
            }
            if matches!(next, Next::None) {
                let failed = RowError {
                    status: error.status,
                    code: error.code.clone(),
                    ..RowError::new(error.failure.kind(), error.message.clone())
                };
                self.failure = Some(error);
                return Err(failed.into());
            }
        }
    }

    /// Whether this row may be the cause itself: no other is left to show that the provider
    /// is there, and an outage would have passed.
    fn is_suspect(&self, error: &CallError) -> bool {
        matches!(error.fault(), Fault::Transient { .. })
            && self.shared.all_sent.load(Ordering::Relaxed)
            && self.shared.lane(self.lane).is_some_and(|lane| lane.gate.stuck_for() >= DOUBT)
    }

    /// Decides whether there is another try, here or with the next model.
    fn next_try(&mut self, request: &Request, error: &CallError) -> Next {
        let fault = error.fault();
        let retry = &self.shared.worker.retry;
        if let Some(wait) = retry.wait(self.failed, fault, jitter(&request.key, request.attempt)) {
            let left = self.shared.worker.row_timeout.map(|most| most.saturating_sub(self.worked));
            return if left.is_some_and(|left| left <= wait) { Next::None } else { Next::After(wait) };
        }
        let has_next = self.lane + 1 < self.shared.worker.lanes.len();
        // A request that is too large for the limits of one model may fit those of another.
        if has_next && matches!(fault, Fault::Transient { .. } | Fault::Throttled { .. }) {
            self.lane += 1;
            self.failed = 0;
            return Next::Elsewhere;
        }
        Next::None
    }

    /// Goes on with the next model that is up, if this one's provider is down.
    fn leave_lane_that_is_down(&mut self) {
        if self.shared.is_up(self.lane) {
            return;
        }
        if let Some(next) = self.shared.next_up(self.lane) {
            self.lane = next;
            self.failed = 0;
        }
    }

    /// Waits for leave to call; a drain ends the wait.
    async fn leave(&mut self, request: &Request) -> Result<Ticket<'a>, NoAnswer> {
        let shared = self.shared;
        loop {
            let Some(lane) = shared.lane(self.lane) else {
                return Err(RowError::new(ErrorKind::Internal, "there is no model").into());
            };
            let asking = lane.asking(&request.messages);
            let index = self.lane;
            let elsewhere = move || shared.next_up(index).is_some();
            let waiting = Waiting { observer: &*shared.observer, elsewhere: &elsewhere };
            tokio::select! {
                biased;
                () = shared.stop.drained() => return self.leave_at_once(lane, asking),
                ticket = Ticket::take(&shared.account, lane, asking, waiting) => match ticket {
                    Ok(ticket) => return Ok(ticket),
                    Err(NoTicket::Halt(halt)) => return Err(self.given_back(Some(halt))),
                    Err(NoTicket::Down) => self.leave_lane_that_is_down(),
                }
            }
        }
    }

    /// The run stops: a row that was answered may finish if it need not wait.
    fn leave_at_once(&self, lane: &'a Lane, asking: Asking) -> Result<Ticket<'a>, NoAnswer> {
        let was_answered = self.calls.iter().any(|call| call.error.is_none());
        let ticket = was_answered.then(|| Ticket::try_take(&self.shared.account, lane, asking));
        match ticket.flatten() {
            Some(Ok(ticket)) => Ok(ticket),
            _ => Err(self.given_back(None)),
        }
    }

    /// A row that gets no leave is given back as if it had never been sent, unless it was
    /// paid for already, or may have been: that has to be on record.
    fn given_back(&self, halt: Option<Halt>) -> NoAnswer {
        let was_paid_for = self.unknown_calls > 0 || self.calls.iter().any(|call| call.error.is_none());
        if !was_paid_for {
            return NoAnswer::Released(halt);
        }
        let error = RowError::new(ErrorKind::Interrupted, "the run stopped before its last answer came");
        NoAnswer::Failed(error, halt)
    }

    async fn call(&mut self, request: &Request) -> Result<Result<Completion, (CallError, Blame)>, NoAnswer> {
        let shared = self.shared;
        let mut ticket = match self.ticket.take() {
            Some(ticket) => ticket,
            None => self.leave(request).await?,
        };
        let sent = Instant::now();
        let limit = self.limit();
        ticket.send();
        let mut outcome = match tokio::time::timeout(limit, ticket.lane().model.complete(request)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let whose =
                    if limit < shared.worker.timeout { " of what `--row-timeout` leaves" } else { "" };
                let message = format!("no complete answer within {} s{whose}", limit.as_secs_f64());
                Err(CallError::new(CallFailure::Timeout, message))
            }
        };
        self.worked += sent.elapsed();
        self.calls.push(report(&mut outcome, ticket.lane(), sent));
        match outcome {
            Ok(completion) => {
                if let (Some(price), Some(usage)) = (ticket.lane().price, &completion.usage) {
                    self.saved += price.saved(usage);
                }
                ticket.answered(&completion);
                Ok(Ok(completion))
            }
            Err(error) => {
                self.unknown_calls += u64::from(error.failure.maybe_billed());
                let blame = ticket.failed(self.number, &error);
                Ok(Err((error, blame)))
            }
        }
    }

    /// How long the next call may take.
    fn limit(&self) -> Duration {
        let worker = &self.shared.worker;
        let left = worker.row_timeout.map_or(Duration::MAX, |most| most.saturating_sub(self.worked));
        worker.timeout.min(left)
    }

    /// Waits before a retry; a drain ends the wait, and then there is no retry.
    async fn pause(&self, error: &CallError, wait: Duration) -> bool {
        let number = self.number;
        self.shared.observer.observe(&Event::Retrying { number, error, wait });
        tokio::select! {
            () = tokio::time::sleep(wait) => true,
            () = self.shared.stop.drained() => false,
        }
    }
}

/// A number from 0 to 1 that differs between rows and tries, so that rows that
/// failed together do not come back together.
fn jitter(key: &str, attempt: u32) -> f64 {
    let mixed = xxh3_64(key.as_bytes()).wrapping_add(u64::from(attempt).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (xxh3_64(&mixed.to_le_bytes()) >> 11) as f64 / (1u64 << 53) as f64
}

/// Whether no row can succeed after this failure.
pub(crate) fn is_fatal(error: &CallError) -> bool {
    error.fault() == Fault::Fatal
}
