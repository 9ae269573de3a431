//! A model with its limits and its price, and how a call gets a ticket for it.

use std::num::NonZeroU64;
use std::sync::Arc;

use rowmill_core::cost::Price;
use rowmill_core::limits::{Blame, Reservation, Spend, WaitReason};
use rowmill_core::ports::{Event, Model, Observer};
use rowmill_types::{CallError, Completion, Usage};

use crate::account::{Account, Granted, Halt};
use crate::asking::{Asking, OutputCaps, generated};
use crate::gate::{Denied, Gate, Permit, Told};

/// A model that rows can be sent to.
#[derive(Debug, Clone)]
pub struct Lane {
    /// The model string.
    pub name: String,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The call gate in front of it.
    pub gate: Arc<Gate>,
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
}

impl Lane {
    pub(crate) fn spend(&self, usage: &Usage) -> Spend {
        let cost = self.price.map(|price| price.cost(usage)).unwrap_or_default();
        Spend { cost, tokens: usage.tokens() }
    }
}

/// How a call waits for its ticket.
#[derive(Clone, Copy)]
pub(crate) struct Waiting<'w> {
    /// Receives every wait.
    pub(crate) observer: &'w dyn Observer,
    /// Whether another model can be asked.
    pub(crate) elsewhere: &'w (dyn Fn() -> bool + Sync),
}

/// Why there is no ticket.
pub(crate) enum NoTicket {
    /// The model's provider is down, and another model can be asked.
    Down,
    /// The run ends.
    Halt(Halt),
}

/// Permission to make one call: a share of the limits and of the budget.
pub(crate) struct Ticket<'a> {
    account: &'a Account,
    lane: Arc<Lane>,
    permit: Option<Permit>,
    reservation: Option<Reservation>,
    /// The limit on the answer, if the call has one of its own.
    cap: Option<NonZeroU64>,
    sent: bool,
}

impl<'a> Ticket<'a> {
    /// A ticket, if it is available at once.
    pub(crate) fn try_take(
        account: &'a Account,
        lane: &Arc<Lane>,
        asking: Asking,
    ) -> Option<Result<Self, Halt>> {
        let mut ticket = match account.try_reserve(lane, &asking)? {
            Ok(granted) => Self::reserved(account, lane, granted),
            Err(halt) => return Some(Err(halt)),
        };
        ticket.permit = Some(lane.gate.try_admit(asking.need(ticket.cap()))?);
        Some(Ok(ticket))
    }

    /// A ticket that is available at once, apart from the write to the ledger.
    pub(crate) async fn take_now(
        account: &'a Account,
        lane: &Arc<Lane>,
        asking: Asking,
    ) -> Option<Result<Self, Halt>> {
        let mut ticket = match account.reserve_now(lane, &asking).await? {
            Ok(granted) => Self::reserved(account, lane, granted),
            Err(halt) => return Some(Err(halt)),
        };
        ticket.permit = Some(lane.gate.try_admit(asking.need(ticket.cap()))?);
        Some(Ok(ticket))
    }

    /// Waits for a ticket; every wait is reported.
    pub(crate) async fn take(
        account: &'a Account,
        lane: &Arc<Lane>,
        asking: Asking,
        waiting: Waiting<'_>,
    ) -> Result<Self, NoTicket> {
        let Waiting { observer, elsewhere } = waiting;
        let tell = |reason: &WaitReason, wait| {
            observer.observe(&Event::Waiting { lane: &lane.name, reason, wait });
        };
        let told = |told: Told<'_>| match told {
            Told::Waits(wait, left) => tell(&wait.reason, left),
            Told::Goes => observer.observe(&Event::Flowing { lane: &lane.name }),
        };
        loop {
            let reserved = account.reserve(lane, &asking, || tell(&WaitReason::Budget, None)).await;
            let mut ticket = Self::reserved(account, lane, reserved.map_err(NoTicket::Halt)?);
            let permit = lane.gate.admit(asking.need(ticket.cap()), &told, elsewhere).await;
            ticket.permit = Some(permit.map_err(|denied| match denied {
                Denied::Down => NoTicket::Down,
                Denied::Problem(problem) => NoTicket::Halt(Halt::Problem(problem)),
            })?);
            // During the wait, another call may have shown that its provider respects no limit.
            if ticket.reservation.as_ref().is_none_or(|reservation| account.is_enough(reservation)) {
                return Ok(ticket);
            }
        }
    }

    fn reserved(account: &'a Account, lane: &Arc<Lane>, granted: Granted) -> Self {
        let Granted { reservation, sizing } = granted;
        let (reservation, cap) = (Some(reservation), sizing.cap.and_then(NonZeroU64::new));
        Self { account, lane: Arc::clone(lane), permit: None, reservation, cap, sent: false }
    }

    pub(crate) fn lane(&self) -> &Lane {
        &self.lane
    }

    /// The limit on the answer, if the call has one of its own.
    pub(crate) fn cap(&self) -> Option<u64> {
        self.cap.map(NonZeroU64::get)
    }

    /// The call is sent now; from here on it may be billed.
    pub(crate) fn send(&mut self) {
        self.sent = true;
    }

    pub(crate) fn answered(mut self, completion: &Completion) {
        let actual = completion.usage.as_ref().map(|usage| self.lane.spend(usage));
        let passed = self.settle(actual);
        let cap = self.cap();
        let longer = self.lane.output_caps.as_ref().and_then(|caps| caps.saw(completion, cap));
        // A provider that ignores our limit ignores one set by the user, too.
        let used = longer.or_else(|| completion.usage.as_ref().filter(|_| passed).map(generated));
        if let (Some(used), Some(allowed)) = (used, cap.or(self.lane.max_output)) {
            self.account.tell_of_longer_answer(&self.lane, allowed, used);
        }
        if let Some(permit) = self.permit.take() {
            permit.answered(completion);
        }
    }

    /// The call was not made after all.
    pub(crate) fn take_back(mut self) {
        self.sent = false;
    }

    pub(crate) fn failed(mut self, row: u64, error: &CallError) -> Blame {
        let unknown = error.failure.maybe_billed();
        self.settle(if unknown { None } else { Some(Spend::default()) });
        self.permit.take().map_or(Blame::Row, |permit| permit.failed(row, error))
    }

    fn settle(&mut self, actual: Option<Spend>) -> bool {
        self.reservation.take().is_some_and(|reservation| self.account.settle(reservation, actual))
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let actual = if self.sent { None } else { Some(Spend::default()) };
        self.settle(actual);
    }
}
