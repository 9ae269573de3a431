//! One turn with a model: calls, retries, fallback models.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::limits::{Blame, BudgetLimits, Spend};
use rowmill_core::ports::AnswerCheck;
use rowmill_core::record::CallReport;
use rowmill_core::validate::json_of_answer;
use rowmill_types::settings::ROW_TIMEOUT;
use rowmill_types::{
    CallError, CallFailure, Completion, ErrorKind, Fault, Finish, Message, Money, Request, RowError,
};
use tokio::time::Instant;

use crate::account::Halt;
use crate::asking::{Asking, Tried, generated};
use crate::call_report::report;
use crate::lane::{Lane, NoTicket, Ticket, Waiting};
use crate::row::{RowContext, Share};
use crate::tries::Next;

/// Why there is no answer.
pub(crate) enum NoAnswer {
    /// The row's error, and what stops the run, if that is the cause.
    Failed(RowError, Option<Halt>),
    /// The run stops, and the call was not made.
    Released(Option<Halt>),
    /// The answer arrives by another route; this identifies it.
    Parked(String),
}

impl From<RowError> for NoAnswer {
    fn from(error: RowError) -> Self {
        Self::Failed(error, None)
    }
}

/// The calls of a turn, besides the answer.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) reports: Vec<CallReport>,
    /// The failure that ended the turn, if a call failed.
    pub(crate) failure: Option<CallError>,
    /// Calls without an answer that may have been billed.
    pub(crate) unknown: u64,
    /// What the provider's cache saved.
    pub(crate) saved: Money,
}

/// A model call that is to be made.
pub(crate) struct ModelStep<'r> {
    pub(crate) node: usize,
    pub(crate) voice: usize,
    pub(crate) member: usize,
    pub(crate) lane: usize,
    pub(crate) ticket: Option<Ticket<'r>>,
    /// The number of the model call of the row.
    pub(crate) turn: u32,
    pub(crate) messages: Vec<Message>,
}

/// A model call that has ended.
pub(crate) struct Asked {
    pub(crate) node: usize,
    pub(crate) voice: usize,
    pub(crate) member: usize,
    pub(crate) lane: usize,
    pub(crate) messages: Vec<Message>,
    pub(crate) prompt: Option<String>,
    pub(crate) outcome: Result<Completion, NoAnswer>,
    pub(crate) calls: Calls,
    pub(crate) start: Duration,
    pub(crate) end: Duration,
}

/// A turn that is under way.
pub(crate) struct Turn<'a> {
    pub(crate) row: &'a RowContext<'a>,
    pub(crate) voice: usize,
    pub(crate) member: usize,
    /// The model that is asked, by its index in the list of the model role.
    pub(crate) lane: usize,
    /// The ticket for the next call, if it is there already.
    pub(crate) ticket: Option<Ticket<'a>>,
    pub(crate) calls: Calls,
    /// When the current call was sent.
    pub(crate) sent: Option<Instant>,
    /// How long the last call took.
    took: Duration,
    /// The number of failed calls of this model.
    pub(crate) failed: u32,
    /// How the same request was sent before.
    pub(crate) tried: Tried,
    /// Which model call of the row it is.
    pub(crate) number: u32,
    /// The model for which the request has its key.
    pub(crate) named_for: usize,
    /// The length of that key without what a limit on the answer adds to it.
    pub(crate) key_length: usize,
}

impl<'a> Turn<'a> {
    /// Calls the model until there is an answer or no attempt is left.
    pub(crate) async fn complete(&mut self, request: &mut Request) -> Result<Completion, NoAnswer> {
        loop {
            let (error, blame) = match self.call(request).await? {
                Ok(completion) => match cut_at(request, &completion) {
                    None => return Ok(completion),
                    // We set that limit ourselves, so it costs the row neither an attempt nor a repair.
                    cut_at => {
                        self.tried = Tried { cap: None, cut_at };
                        request.attempt += 1;
                        continue;
                    }
                },
                Err(failed) => failed,
            };
            request.attempt += 1;
            let is_rows = matches!(blame, Blame::Row | Blame::Unwaited);
            if !is_rows && !self.is_suspect(&error) {
                // Time lost through the provider's fault does not count against the row.
                self.row.take_back_work(self.took);
                self.leave_lane_that_is_down();
                // What is rare is boxed: every row is moved with all that its work might need.
                Box::pin(self.step_aside(request, &error, blame)).await?;
                continue;
            }
            self.failed += 1;
            match self.next_try(request, &error, blame) {
                Next::Elsewhere => {}
                Next::After(wait) => {
                    self.row.add_work(wait);
                    if !Box::pin(self.pause(&error, wait)).await {
                        return Err(self.row.given_back(None));
                    }
                }
                Next::None => {
                    let failed = RowError {
                        status: error.status,
                        code: error.code.clone(),
                        ..RowError::new(error.failure.kind(), error.message.clone())
                    };
                    self.calls.failure = Some(error);
                    return Err(failed.into());
                }
            }
        }
    }

    pub(crate) fn lane_at(&self, index: usize) -> Option<&'a Arc<Lane>> {
        self.row.crew.lane(self.voice, index)
    }

    /// Switches to the next model that is up, if this one's provider is down.
    fn leave_lane_that_is_down(&mut self) {
        let crew = &self.row.crew;
        if crew.is_up(self.voice, self.lane) {
            return;
        }
        if let Some(next) = crew.next_up(self.voice, self.lane) {
            self.lane = next;
            self.failed = 0;
        }
    }

    /// Waits for a ticket; a drain ends the wait.
    async fn leave(&mut self, request: &Request) -> Result<Ticket<'a>, NoAnswer> {
        let shared = self.row.shared;
        loop {
            let Some(lane) = self.lane_at(self.lane) else {
                return Err(RowError::new(ErrorKind::Internal, "there is no model").into());
            };
            let asking = Asking::of(lane, &request.messages, self.row.left()).again(self.tried);
            let (voice, index) = (self.voice, self.lane);
            let crew = &self.row.crew;
            let elsewhere = move || crew.next_up(voice, index).is_some();
            let waiting = Waiting { observer: &*shared.observer, elsewhere: &elsewhere };
            tokio::select! {
                biased;
                () = shared.stop.drained() => return self.leave_at_once(lane, asking).await,
                ticket = Ticket::take(&shared.account, lane, asking, waiting) => match ticket {
                    Ok(ticket) => return Ok(ticket),
                    Err(NoTicket::Halt(halt)) => return Err(self.row.given_back(Some(halt))),
                    Err(NoTicket::Down) => self.leave_lane_that_is_down(),
                }
            }
        }
    }

    /// The run stops: a row that was answered already may finish if it need not wait.
    async fn leave_at_once(&self, lane: &Arc<Lane>, asking: Asking) -> Result<Ticket<'a>, NoAnswer> {
        let account = &self.row.shared.account;
        let ticket = match self.row.was_answered() {
            true => Ticket::take_now(account, lane, asking).await,
            false => None,
        };
        match ticket {
            Some(Ok(ticket)) => Ok(ticket),
            _ => Err(self.row.given_back(None)),
        }
    }

    async fn call(
        &mut self,
        request: &mut Request,
    ) -> Result<Result<Completion, (CallError, Blame)>, NoAnswer> {
        self.limit()?;
        let mut ticket = match self.ticket.take() {
            Some(ticket) => ticket,
            // Most calls have a ticket already; for those that wait, speed does not matter.
            None => Box::pin(self.leave(request)).await?,
        };
        self.name(request, &ticket);
        let worst = || {
            let asking = Asking::of(ticket.lane(), &request.messages, BudgetLimits::default());
            asking.worst(ticket.lane(), request.output_cap)
        };
        let share = self.row.set_aside(worst).await?;
        let sent = Instant::now();
        let limit = self.limit()?;
        ticket.send();
        self.sent = Some(sent);
        let mut outcome = match within(limit, ticket.lane().model.complete(request)).await {
            Some(outcome) => outcome,
            None => Err(self.timed_out(limit)),
        };
        outcome = outcome.map_err(|error| error.worded(self.row.shared.worker.vocabulary));
        self.sent = None;
        if let Err(CallError { failure: CallFailure::Parked, message, .. }) = outcome {
            // Nothing was sent that could be billed: the reservation is freed.
            settle(share, Some(Spend::default()));
            ticket.take_back();
            return Err(NoAnswer::Parked(message.to_string()));
        }
        let took = sent.elapsed();
        self.took = took;
        self.row.add_work(took);
        let report = report(&mut outcome, ticket.lane(), took);
        self.calls.reports.push(CallReport { output_cap: request.output_cap, ..report });
        match outcome {
            Ok(completion) => {
                let lane = ticket.lane();
                if let (Some(price), Some(usage)) = (lane.price, &completion.usage) {
                    self.calls.saved += price.saved(usage);
                }
                let used = completion.usage.as_ref().map(|usage| lane.spend(usage));
                settle(share, used);
                self.row.answered.store(true, Ordering::Relaxed);
                ticket.answered(&completion);
                Ok(Ok(completion))
            }
            Err(error) => {
                let unknown = error.failure.maybe_billed();
                self.calls.unknown += u64::from(unknown);
                self.row.may_be_paid(unknown);
                settle(share, (!unknown).then(Default::default));
                let blame = ticket.failed(self.row.number, &error);
                Ok(Err((error, blame)))
            }
        }
    }

    /// The error of a call that was not answered in time.
    fn timed_out(&self, limit: Duration) -> CallError {
        let is_rows = limit < self.row.shared.worker.timeout;
        let whose = if is_rows { format!(" left by {ROW_TIMEOUT}") } else { String::new() };
        let message = format!("no complete answer within {} s{whose}", limit.as_secs_f64());
        CallError::new(CallFailure::Timeout, message)
    }

    /// Says how long the answer may become. A key must not name two different requests, and what another model
    /// is asked is another request.
    fn name(&mut self, request: &mut Request, ticket: &Ticket<'_>) {
        let cap = ticket.cap();
        request.output_cap = cap;
        self.tried.cap = cap;
        if self.named_for != self.lane {
            request.key = self.row.key.of_turn(self.number, &ticket.lane().identity, &request.messages);
            (self.named_for, self.key_length) = (self.lane, request.key.len());
        }
        request.key.truncate(self.key_length);
        if let Some(cap) = cap {
            request.key.push_str(&format!("-{cap}"));
        }
    }

    /// The time limit of the next call.
    fn limit(&self) -> Result<Duration, RowError> {
        let left = self.row.time_for_call()?;
        Ok(self.row.shared.worker.timeout.min(left.unwrap_or(Duration::MAX)))
    }
}

/// The limit that truncated an answer, if it was the call's own. A provider that stops long before it has another
/// reason, which a higher limit does not remove.
fn cut_at(request: &Request, completion: &Completion) -> Option<u64> {
    let cap = request.output_cap.filter(|_| completion.finish == Finish::Length)?;
    let used = completion.usage.as_ref().map_or(cap, generated);
    (used >= cap / 2).then_some(cap)
}

fn settle(share: Option<Share<'_>>, actual: Option<Spend>) {
    if let Some(share) = share {
        share.settle(actual);
    }
}

/// Carries out a turn, with the hooks around it.
pub(crate) async fn ask<'r>(context: &'r RowContext<'r>, step: ModelStep<'r>) -> Asked {
    let ModelStep { node, voice, member, lane, ticket, turn: number, mut messages } = step;
    let start = context.shared.began.elapsed();
    // A hook may wait for a process that a row waiting for a ticket holds, and may change the messages.
    let ticket = ticket.filter(|_| !context.has_hooks());
    let hooked = match context.has_hooks() {
        true => Box::pin(context.hook_before_model(member, number, &mut messages)).await,
        false => Ok(None),
    };
    let identity = context.crew.lane(voice, lane).map_or("", |lane| &lane.identity);
    let key = context.key.of_turn(number, identity, &messages);
    let mut request = Request { key, row: context.number, attempt: 1, output_cap: None, messages };
    let mut turn = Turn {
        row: context,
        voice,
        member,
        lane,
        ticket,
        calls: Calls::default(),
        sent: None,
        took: Duration::ZERO,
        failed: 0,
        tried: Tried::default(),
        number,
        named_for: lane,
        key_length: request.key.len(),
    };
    let (prompt, mut outcome) = match hooked {
        Ok(prompt) => (prompt, turn.complete(&mut request).await),
        Err(error) => (None, Err(error.into())),
    };
    if let (Ok(completion), true) = (&mut outcome, context.has_hooks()) {
        let hooked = Box::pin(context.hook_after_model(member, number, completion)).await;
        if let Err(error) = hooked {
            outcome = Err(error.into());
        }
    }
    if let Ok(completion) = &mut outcome {
        let schema = context.crew.cast.voices().get(voice).and_then(|voice| voice.schema.as_ref());
        if let Some(check) = schema.and_then(|schema| schema.answer_check()) {
            Box::pin(check_answer(context, check, completion)).await;
        }
    }
    let (lane, calls) = (turn.lane, std::mem::take(&mut turn.calls));
    let end = context.shared.began.elapsed();
    Asked { node, voice, member, lane, messages: request.messages, prompt, outcome, calls, start, end }
}

/// Looks at a complete answer with more than its schema, where somebody can. What is no JSON at all
/// needs no second look.
async fn check_answer(context: &RowContext<'_>, check: &Arc<dyn AnswerCheck>, completion: &mut Completion) {
    if completion.finish != Finish::Complete || !completion.calls.is_empty() {
        return;
    }
    if let Some(json) = json_of_answer(&completion.text) {
        let checking = context.shared.checks.begin();
        completion.verdict = Some(Box::new(check.check(json).await));
        drop(checking);
    }
}

/// Waits for an answer up to a limit. Most calls of a function are ready at the first poll, so a timer is set only for
/// those that are not.
async fn within<T>(limit: Duration, mut answer: BoxFuture<'_, T>) -> Option<T> {
    let mut timer = None;
    poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(Some(answer));
        }
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        timer.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// Whether no row can succeed after this failure.
pub(crate) fn is_fatal(error: &CallError) -> bool {
    error.fault() == Fault::Fatal
}
