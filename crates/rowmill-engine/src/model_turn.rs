//! One turn with a model: calls, retries, fallback models.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::limits::{BudgetLimits, FailureBlame, Spend};
use rowmill_core::ports::AnswerChecker;
use rowmill_core::record::CallReport;
use rowmill_core::validate::extract_json;
use rowmill_types::settings::ROW_TIMEOUT;
use rowmill_types::{
    CallError, CallFailure, CallRetryClass, Completion, FinishReason, Message, Money, Request,
    RequestPurpose, RowError, RowErrorKind,
};
use tokio::time::Instant;

use crate::call_demand::{CallDemand, PreviousAttempt, capped_output_tokens};
use crate::call_report::call_report;
use crate::endpoint::{CallTicket, ModelEndpoint, TicketDenied, TicketWait};
use crate::row_context::{RowContext, RowReservation};
use crate::run_account::RunHalt;
use crate::tries::NextAttempt;

/// Why there is no answer.
pub(crate) enum NoModelAnswer {
    /// The row's error, and what stops the run, if that is the cause.
    Failed(RowError, Option<RunHalt>),
    /// The run stops, and the call was not made.
    Released(Option<RunHalt>),
    /// The answer arrives by another route; this identifies it.
    Parked(String),
}

impl From<RowError> for NoModelAnswer {
    fn from(error: RowError) -> Self {
        Self::Failed(error, None)
    }
}

/// The calls of a turn, besides the answer.
#[derive(Default)]
pub(crate) struct TurnCalls {
    pub(crate) reports: Vec<CallReport>,
    /// The failure that ended the turn, if a call failed.
    pub(crate) failure: Option<CallError>,
    /// Calls without an answer that may have been billed.
    pub(crate) unknown: u64,
    /// What the provider's cache saved.
    pub(crate) saved: Money,
}

/// A model call that is to be made.
pub(crate) struct ModelCallStep<'r> {
    pub(crate) node: usize,
    pub(crate) model_role: usize,
    pub(crate) agent_index: usize,
    pub(crate) endpoint: usize,
    pub(crate) ticket: Option<CallTicket<'r>>,
    /// The number of the model call of the row.
    pub(crate) turn: u32,
    /// What the answer is for.
    pub(crate) purpose: RequestPurpose,
    pub(crate) messages: Vec<Message>,
}

/// A model call that has ended.
pub(crate) struct ModelTurnEnd {
    pub(crate) node: usize,
    pub(crate) model_role: usize,
    pub(crate) agent_index: usize,
    pub(crate) endpoint: usize,
    pub(crate) messages: Vec<Message>,
    pub(crate) prompt: Option<String>,
    pub(crate) outcome: Result<Completion, NoModelAnswer>,
    pub(crate) calls: TurnCalls,
    pub(crate) start: Duration,
    pub(crate) end: Duration,
}

/// A turn that is under way.
pub(crate) struct ModelTurn<'a> {
    pub(crate) row: &'a RowContext<'a>,
    pub(crate) model_role: usize,
    pub(crate) agent_index: usize,
    /// The model that is asked, by its index in the list of the model role.
    pub(crate) endpoint: usize,
    /// The ticket for the next call, if it is there already.
    pub(crate) ticket: Option<CallTicket<'a>>,
    pub(crate) calls: TurnCalls,
    /// When the current call was sent.
    pub(crate) sent: Option<Instant>,
    /// How long the last call took.
    took: Duration,
    /// The number of failed calls of this model.
    pub(crate) failed: u32,
    /// How the same request was sent before.
    pub(crate) tried: PreviousAttempt,
    /// Which model call of the row it is.
    pub(crate) number: u32,
    /// The model for which the request has its key.
    pub(crate) named_for: usize,
    /// The length of that key without what a limit on the answer adds to it.
    pub(crate) key_length: usize,
}

impl<'a> ModelTurn<'a> {
    /// Calls the model until there is an answer or no attempt is left.
    pub(crate) async fn complete(&mut self, request: &mut Request) -> Result<Completion, NoModelAnswer> {
        loop {
            let (error, blame) = match self.call(request).await? {
                Ok(completion) => match cut_at(request, &completion) {
                    None => return Ok(completion),
                    // We set that limit ourselves, so it costs the row neither an attempt nor a repair.
                    cut_at => {
                        self.tried = PreviousAttempt { cap: None, cut_at };
                        request.attempt += 1;
                        continue;
                    }
                },
                Err(failed) => failed,
            };
            request.attempt += 1;
            let is_rows = matches!(blame, FailureBlame::Row | FailureBlame::ProviderNotAwaited);
            if !is_rows && !self.is_suspect(&error) {
                // Time lost through the provider's fault does not count against the row.
                self.row.take_back_work(self.took);
                self.switch_from_down_endpoint();
                // What is rare is boxed: every row is moved with all that its work might need.
                Box::pin(self.wait_as_waiting_row(request, &error, blame)).await?;
                continue;
            }
            self.failed += 1;
            match self.next_try(request, &error, blame) {
                NextAttempt::OtherModel => {}
                NextAttempt::After(wait) => {
                    self.row.add_work(wait);
                    if !Box::pin(self.pause(&error, wait)).await {
                        return Err(self.row.release_or_fail(None));
                    }
                }
                NextAttempt::None => {
                    let failed = RowError {
                        status: error.status,
                        code: error.code.clone(),
                        ..RowError::new(error.failure.error_kind(), error.message.clone())
                    };
                    self.calls.failure = Some(error);
                    return Err(failed.into());
                }
            }
        }
    }

    pub(crate) fn endpoint_at(&self, index: usize) -> Option<&'a Arc<ModelEndpoint>> {
        self.row.row_worker.endpoint(self.model_role, index)
    }

    /// Switches to the next model that is up, if this one's provider is down.
    fn switch_from_down_endpoint(&mut self) {
        let row_worker = &self.row.row_worker;
        if row_worker.is_available(self.model_role, self.endpoint) {
            return;
        }
        if let Some(next) = row_worker.next_available(self.model_role, self.endpoint) {
            self.endpoint = next;
            self.failed = 0;
        }
    }

    /// Waits for a ticket; a drain ends the wait.
    async fn acquire_ticket(&mut self, request: &Request) -> Result<CallTicket<'a>, NoModelAnswer> {
        let shared = self.row.shared;
        loop {
            let Some(endpoint) = self.endpoint_at(self.endpoint) else {
                return Err(RowError::new(RowErrorKind::Internal, "there is no model").into());
            };
            let demand = CallDemand::for_messages(endpoint, &request.messages, self.row.remaining_budget())
                .as_retry(self.tried);
            let (model_role, index) = (self.model_role, self.endpoint);
            let row_worker = &self.row.row_worker;
            let elsewhere = move || row_worker.next_available(model_role, index).is_some();
            let waiting = TicketWait { observer: &*shared.observer, elsewhere: &elsewhere };
            tokio::select! {
                biased;
                () = shared.stop.wait_for_drain() => return self.try_acquire_ticket(endpoint, demand).await,
                ticket = CallTicket::acquire(&shared.account, endpoint, demand, waiting) => match ticket {
                    Ok(ticket) => return Ok(ticket),
                    Err(TicketDenied::Halt(halt)) => return Err(self.row.release_or_fail(Some(halt))),
                    Err(TicketDenied::Down) => self.switch_from_down_endpoint(),
                }
            }
        }
    }

    /// The run stops: a row that was answered already may finish if it need not wait.
    async fn try_acquire_ticket(
        &self,
        endpoint: &Arc<ModelEndpoint>,
        demand: CallDemand,
    ) -> Result<CallTicket<'a>, NoModelAnswer> {
        let account = &self.row.shared.account;
        let ticket = match self.row.was_answered() {
            true => CallTicket::acquire_now(account, endpoint, demand).await,
            false => None,
        };
        match ticket {
            Some(Ok(ticket)) => Ok(ticket),
            _ => Err(self.row.release_or_fail(None)),
        }
    }

    async fn call(
        &mut self,
        request: &mut Request,
    ) -> Result<Result<Completion, (CallError, FailureBlame)>, NoModelAnswer> {
        self.limit()?;
        let mut ticket = match self.ticket.take() {
            Some(ticket) => ticket,
            // Most calls have a ticket already; for those that wait, speed does not matter.
            None => Box::pin(self.acquire_ticket(request)).await?,
        };
        self.name(request, &ticket);
        let worst = || {
            let demand =
                CallDemand::for_messages(ticket.endpoint(), &request.messages, BudgetLimits::default());
            demand.max_spend(ticket.endpoint(), request.output_cap)
        };
        let share = self.row.set_aside_share(worst).await?;
        let sent = Instant::now();
        let limit = self.limit()?;
        ticket.mark_sent();
        self.sent = Some(sent);
        let mut outcome = match within(limit, ticket.endpoint().model.complete(request)).await {
            Some(outcome) => outcome,
            None => Err(self.timed_out(limit)),
        };
        outcome = outcome.map_err(|error| error.with_vocabulary(self.row.shared.worker.vocabulary));
        self.sent = None;
        if let Err(CallError { failure: CallFailure::Parked, message, .. }) = outcome {
            // Nothing was sent that could be billed: the reservation is freed.
            settle(share, Some(Spend::default()));
            ticket.cancel();
            return Err(NoModelAnswer::Parked(message.to_string()));
        }
        let took = sent.elapsed();
        self.took = took;
        self.row.add_work(took);
        let report = call_report(&mut outcome, ticket.endpoint(), took);
        self.calls.reports.push(CallReport { output_cap: request.output_cap, ..report });
        match outcome {
            Ok(completion) => {
                let endpoint = ticket.endpoint();
                if let (Some(price), Some(usage)) = (endpoint.price_of(&completion), &completion.usage) {
                    self.calls.saved += price.cache_savings(usage);
                }
                let used = endpoint.spend_for(&completion);
                settle(share, used);
                self.row.answered.store(true, Ordering::Relaxed);
                ticket.record_answer(&completion);
                Ok(Ok(completion))
            }
            Err(error) => {
                let unknown = error.failure.may_be_billed();
                self.calls.unknown += u64::from(unknown);
                self.row.mark_maybe_billed(unknown);
                settle(share, (!unknown).then(Default::default));
                let blame = ticket.record_failure(self.row.number, &error);
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
    fn name(&mut self, request: &mut Request, ticket: &CallTicket<'_>) {
        let cap = ticket.cap();
        request.output_cap = cap;
        self.tried.cap = cap;
        if self.named_for != self.endpoint {
            request.key = self.row.key.turn_key(self.number, &ticket.endpoint().identity, &request.messages);
            (self.named_for, self.key_length) = (self.endpoint, request.key.len());
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
    let cap = request.output_cap.filter(|_| completion.finish == FinishReason::Length)?;
    let used = completion.usage.as_ref().map_or(cap, capped_output_tokens);
    (used >= cap / 2).then_some(cap)
}

fn settle(share: Option<RowReservation<'_>>, actual: Option<Spend>) {
    if let Some(share) = share {
        share.settle(actual);
    }
}

/// Carries out a turn, with the hooks around it.
pub(crate) async fn run_model_turn<'r>(context: &'r RowContext<'r>, step: ModelCallStep<'r>) -> ModelTurnEnd {
    let purpose = step.purpose;
    let ModelCallStep { node, model_role, agent_index, endpoint, turn: number, mut messages, .. } = step;
    let start = context.shared.began.elapsed();
    // A hook may wait for a process that a row waiting for a ticket holds, and may change the messages.
    let ticket = step.ticket.filter(|_| !context.has_hooks());
    let hooked = match context.has_hooks() {
        true => Box::pin(context.run_before_model_hook(agent_index, number, &mut messages)).await,
        false => Ok(None),
    };
    let identity =
        context.row_worker.endpoint(model_role, endpoint).map_or("", |endpoint| &endpoint.identity);
    let key = context.key.turn_key(number, identity, &messages);
    let mut request = Request { key, row: context.number, attempt: 1, output_cap: None, purpose, messages };
    let mut turn = ModelTurn {
        row: context,
        model_role,
        agent_index,
        endpoint,
        ticket,
        calls: TurnCalls::default(),
        sent: None,
        took: Duration::ZERO,
        failed: 0,
        tried: PreviousAttempt::default(),
        number,
        named_for: endpoint,
        key_length: request.key.len(),
    };
    let (prompt, mut outcome) = match hooked {
        Ok(prompt) => (prompt, turn.complete(&mut request).await),
        Err(error) => (None, Err(error.into())),
    };
    if let (Ok(completion), true) = (&mut outcome, context.has_hooks()) {
        let hooked = Box::pin(context.run_after_model_hook(agent_index, number, completion)).await;
        if let Err(error) = hooked {
            outcome = Err(error.into());
        }
    }
    if let Ok(completion) = &mut outcome {
        let role = context.row_worker.graph.model_roles().get(model_role);
        let schema = role.and_then(|role| role.schema.as_ref());
        if let Some(check) = schema.and_then(|schema| schema.answer_check()) {
            Box::pin(check_answer(context, check, completion)).await;
        }
    }
    let (endpoint, calls) = (turn.endpoint, std::mem::take(&mut turn.calls));
    let end = context.shared.began.elapsed();
    ModelTurnEnd {
        node,
        model_role,
        agent_index,
        endpoint,
        messages: request.messages,
        prompt,
        outcome,
        calls,
        start,
        end,
    }
}

/// Looks at a complete answer with more than its schema, where somebody can. What is no JSON at all
/// needs no second look.
async fn check_answer(context: &RowContext<'_>, check: &Arc<dyn AnswerChecker>, completion: &mut Completion) {
    if completion.finish != FinishReason::Complete || !completion.calls.is_empty() {
        return;
    }
    if let Some(json) = extract_json(&completion.text) {
        let checking = context.shared.checks.begin_check();
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
    error.retry_class() == CallRetryClass::Fatal
}
