//! A model with its limits and its price, and how a call gets a ticket for it.

use std::num::NonZeroU64;
use std::sync::Arc;

use rowmill_core::cost::Price;
use rowmill_core::limits::{FailureBlame, Reservation, Spend, WaitReason};
use rowmill_core::ports::{Model, Observer, RunEvent};
use rowmill_types::{CallError, Completion};

use crate::call_demand::{CallDemand, OutputCaps, capped_output_tokens};
use crate::call_gate::{CallGate, CallPermit, PermitDenied, WaitNotice};
use crate::run_account::{GrantedCall, RunAccount, RunHalt};

/// A model that rows can be sent to.
#[derive(Debug, Clone)]
pub struct ModelEndpoint {
    /// The model string.
    pub name: String,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The call gate in front of it.
    pub gate: Arc<CallGate>,
    /// Its price, if known.
    pub price: Option<Price>,
    /// The maximum number of tokens of an answer, if known.
    pub max_output: Option<u64>,
    /// Limits answers call by call so that a budget does not hold calls up; `None` if the user set a limit or the model
    /// respects none.
    pub output_caps: Option<Arc<OutputCaps>>,
    /// The bytes that every request has in common: instruction, schema, settings.
    pub fixed_bytes: usize,
    /// Names what these are, with the model and the tools: two requests with the same messages are the same
    /// request where this is the same, and have the same key.
    pub identity: String,
    /// What answers from batch jobs cost, if this model is called live in a run that has such jobs, too.
    pub batch_terms: Option<BatchTerms>,
}

/// The terms of answers from batch jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchTerms {
    /// Their price, if known.
    pub price: Option<Price>,
}

impl ModelEndpoint {
    /// The price of an answer.
    pub(crate) fn price_of(&self, answer: &Completion) -> Option<Price> {
        match self.batch_terms {
            Some(terms) if answer.batch.is_some() => terms.price,
            _ => self.price,
        }
    }

    /// What an answer cost, if its usage is known.
    pub(crate) fn spend_for(&self, answer: &Completion) -> Option<Spend> {
        let usage = answer.usage.as_ref()?;
        let cost = self.price_of(answer).map(|price| price.cost(usage)).unwrap_or_default();
        Some(Spend { cost, tokens: usage.tokens() })
    }
}

/// How a call waits for its ticket.
#[derive(Clone, Copy)]
pub(crate) struct TicketWait<'w> {
    /// Receives every wait.
    pub(crate) observer: &'w dyn Observer,
    /// Whether another model can be asked.
    pub(crate) elsewhere: &'w (dyn Fn() -> bool + Sync),
}

/// Why there is no ticket.
pub(crate) enum TicketDenied {
    /// The model's provider is down, and another model can be asked.
    Down,
    /// The run ends.
    Halt(RunHalt),
}

/// Permission to make one call: a share of the limits and of the budget.
pub(crate) struct CallTicket<'a> {
    account: &'a RunAccount,
    endpoint: Arc<ModelEndpoint>,
    permit: Option<CallPermit>,
    reservation: Option<Reservation>,
    /// The limit on the answer, if the call has one of its own.
    cap: Option<NonZeroU64>,
    sent: bool,
}

impl<'a> CallTicket<'a> {
    /// A ticket, if it is available at once.
    pub(crate) fn try_acquire(
        account: &'a RunAccount,
        endpoint: &Arc<ModelEndpoint>,
        demand: CallDemand,
    ) -> Option<Result<Self, RunHalt>> {
        let mut ticket = match account.try_reserve(endpoint, &demand)? {
            Ok(granted) => Self::reserved(account, endpoint, granted),
            Err(halt) => return Some(Err(halt)),
        };
        ticket.permit = Some(endpoint.gate.try_admit(demand.limiter_need(ticket.cap()))?);
        Some(Ok(ticket))
    }

    /// A ticket that is available at once, apart from the write to the ledger.
    pub(crate) async fn acquire_now(
        account: &'a RunAccount,
        endpoint: &Arc<ModelEndpoint>,
        demand: CallDemand,
    ) -> Option<Result<Self, RunHalt>> {
        let mut ticket = match account.reserve_now(endpoint, &demand).await? {
            Ok(granted) => Self::reserved(account, endpoint, granted),
            Err(halt) => return Some(Err(halt)),
        };
        ticket.permit = Some(endpoint.gate.try_admit(demand.limiter_need(ticket.cap()))?);
        Some(Ok(ticket))
    }

    /// Waits for a ticket; every wait is reported.
    pub(crate) async fn acquire(
        account: &'a RunAccount,
        endpoint: &Arc<ModelEndpoint>,
        demand: CallDemand,
        waiting: TicketWait<'_>,
    ) -> Result<Self, TicketDenied> {
        let TicketWait { observer, elsewhere } = waiting;
        let tell = |reason: &WaitReason, wait| {
            observer.observe(&RunEvent::Waiting { endpoint: &endpoint.name, reason, wait });
        };
        let on_wait = |on_wait: WaitNotice<'_>| match on_wait {
            WaitNotice::Waiting(wait, left) => tell(&wait.reason, left),
            WaitNotice::Over => observer.observe(&RunEvent::WaitEnded { endpoint: &endpoint.name }),
        };
        loop {
            let reserved = account.reserve(endpoint, &demand, || tell(&WaitReason::Budget, None)).await;
            let mut ticket = Self::reserved(account, endpoint, reserved.map_err(TicketDenied::Halt)?);
            let permit = endpoint.gate.admit(demand.limiter_need(ticket.cap()), &on_wait, elsewhere).await;
            ticket.permit = Some(permit.map_err(|denied| match denied {
                PermitDenied::Down => TicketDenied::Down,
                PermitDenied::Problem(problem) => TicketDenied::Halt(RunHalt::Problem(problem)),
            })?);
            // During the wait, another call may have shown that its provider respects no limit.
            if ticket.reservation.as_ref().is_none_or(|reservation| account.still_covers(reservation)) {
                return Ok(ticket);
            }
        }
    }

    fn reserved(account: &'a RunAccount, endpoint: &Arc<ModelEndpoint>, granted: GrantedCall) -> Self {
        let GrantedCall { reservation, sizing } = granted;
        let (reservation, cap) = (Some(reservation), sizing.cap.and_then(NonZeroU64::new));
        Self { account, endpoint: Arc::clone(endpoint), permit: None, reservation, cap, sent: false }
    }

    pub(crate) fn endpoint(&self) -> &ModelEndpoint {
        &self.endpoint
    }

    /// The limit on the answer, if the call has one of its own.
    pub(crate) fn cap(&self) -> Option<u64> {
        self.cap.map(NonZeroU64::get)
    }

    /// The call is sent now; from here on it may be billed.
    pub(crate) fn mark_sent(&mut self) {
        self.sent = true;
    }

    pub(crate) fn record_answer(mut self, completion: &Completion) {
        let is_counted = completion.batch.as_ref().is_some_and(|origin| origin.is_counted);
        let spend = self.endpoint.spend_for(completion);
        let actual = if is_counted { spend.map(|_| Spend::default()) } else { spend };
        let passed = self.settle(actual);
        let cap = self.cap();
        let longer = self.endpoint.output_caps.as_ref().and_then(|caps| caps.record_answer(completion, cap));
        // A provider that ignores our limit ignores one set by the user, too.
        let used = longer.or_else(|| completion.usage.as_ref().filter(|_| passed).map(capped_output_tokens));
        if let (Some(used), Some(allowed)) = (used, cap.or(self.endpoint.max_output)) {
            self.account.report_ignored_cap(&self.endpoint, allowed, used);
        }
        if let Some(permit) = self.permit.take() {
            permit.record_answer(completion);
        }
    }

    /// The call was not made after all.
    pub(crate) fn cancel(mut self) {
        self.sent = false;
    }

    pub(crate) fn record_failure(mut self, row: u64, error: &CallError) -> FailureBlame {
        let unknown = error.failure.may_be_billed();
        self.settle(if unknown { None } else { Some(Spend::default()) });
        self.permit.take().map_or(FailureBlame::Row, |permit| permit.record_failure(row, error))
    }

    fn settle(&mut self, actual: Option<Spend>) -> bool {
        self.reservation.take().is_some_and(|reservation| self.account.settle(reservation, actual))
    }
}

impl Drop for CallTicket<'_> {
    fn drop(&mut self) {
        let actual = if self.sent { None } else { Some(Spend::default()) };
        self.settle(actual);
    }
}
