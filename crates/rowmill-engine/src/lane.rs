//! A model with its limits and its price, and the way a call gets leave to go there.

use std::sync::Arc;

use rowmill_core::cost::Price;
use rowmill_core::limits::{Blame, Need, Reservation, Spend, WaitReason};
use rowmill_core::ports::{Event, Model, Observer};
use rowmill_types::{Attachment, CallError, Completion, Message, Usage};

use crate::account::{Account, Halt};
use crate::gate::{Denied, Gate, Permit, Told};

/// What a message may add to its text, in tokens.
const MESSAGE_OVERHEAD: u64 = 16;
/// What a provider may add of its own to a request, such as how to use a tool.
const REQUEST_OVERHEAD: u64 = 512;

/// A model that rows can be sent to.
#[derive(Debug, Clone)]
pub struct Lane {
    /// The model string.
    pub name: String,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The way to it.
    pub gate: Arc<Gate>,
    /// What it costs, where that is known.
    pub price: Option<Price>,
    /// The most tokens that an answer can have, where that is known.
    pub max_output: Option<u64>,
    /// Bytes that are the same in every request: instruction, schema, settings.
    pub fixed_bytes: usize,
}

/// What sending some messages takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking {
    need: Need,
    worst: Spend,
}

impl Lane {
    pub(crate) fn asking(&self, messages: &[Message]) -> Asking {
        let text: usize = messages.iter().map(bytes_of).sum();
        let files = || messages.iter().flat_map(|message| &message.attachments);
        let text = text + self.fixed_bytes;
        let bytes = text + files().map(Attachment::weight).sum::<usize>();
        // No tokenizer makes more tokens than there are bytes.
        let input = text as u64 + files().map(Attachment::most_tokens).sum::<u64>();
        let input = input + REQUEST_OVERHEAD + MESSAGE_OVERHEAD * messages.len() as u64;
        let output = self.max_output.unwrap_or(0);
        let cost = self.price.map(|price| price.worst(input, output)).unwrap_or_default();
        Asking { need: Need { bytes }, worst: Spend { cost, tokens: input.saturating_add(output) } }
    }

    /// The most that sending some messages can cost and use.
    pub(crate) fn worst(&self, messages: &[Message]) -> Spend {
        self.asking(messages).worst
    }

    pub(crate) fn spend(&self, usage: &Usage) -> Spend {
        let cost = self.price.map(|price| price.cost(usage)).unwrap_or_default();
        Spend { cost, tokens: usage.input + usage.output }
    }
}

/// What a message brings along as text: what is said, what is called, what must go back as it came.
fn bytes_of(message: &Message) -> usize {
    let calls = message.calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len() * 2);
    let echo = message.echo.as_ref().map_or(0, |echo| echo.content.len());
    let answers = message.answers.as_ref().map_or(0, |answered| answered.call.len() + answered.tool.len());
    message.text.len() + calls.sum::<usize>() + echo + answers
}

/// How a call waits for its ticket.
#[derive(Clone, Copy)]
pub(crate) struct Waiting<'w> {
    /// Hears of every wait.
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

/// Leave to make one call: a share of the limits and of the budget.
pub(crate) struct Ticket<'a> {
    account: &'a Account,
    lane: Arc<Lane>,
    permit: Option<Permit>,
    reservation: Option<Reservation>,
    sent: bool,
}

impl<'a> Ticket<'a> {
    /// A ticket, if it can be had at once.
    pub(crate) fn try_take(
        account: &'a Account,
        lane: &Arc<Lane>,
        asking: Asking,
    ) -> Option<Result<Self, Halt>> {
        let mut ticket = match account.try_reserve(asking.worst)? {
            Ok(reservation) => Self::reserved(account, lane, reservation),
            Err(halt) => return Some(Err(halt)),
        };
        ticket.permit = Some(lane.gate.try_admit(asking.need)?);
        Some(Ok(ticket))
    }

    /// Waits for a ticket; every wait is told.
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
        let reserved = account.reserve(asking.worst, || tell(&WaitReason::Budget, None)).await;
        let mut ticket = Self::reserved(account, lane, reserved.map_err(NoTicket::Halt)?);
        let told = |told: Told<'_>| match told {
            Told::Waits(wait, left) => tell(&wait.reason, left),
            Told::Goes => observer.observe(&Event::Flowing { lane: &lane.name }),
        };
        let permit = lane.gate.admit(asking.need, &told, elsewhere).await;
        ticket.permit = Some(permit.map_err(|denied| match denied {
            Denied::Down => NoTicket::Down,
            Denied::Problem(problem) => NoTicket::Halt(Halt::Problem(problem)),
        })?);
        Ok(ticket)
    }

    fn reserved(account: &'a Account, lane: &Arc<Lane>, reservation: Reservation) -> Self {
        Self { account, lane: Arc::clone(lane), permit: None, reservation: Some(reservation), sent: false }
    }

    pub(crate) fn lane(&self) -> &Lane {
        &self.lane
    }

    /// The call goes out now; from here on nobody can say that it was not billed.
    pub(crate) fn send(&mut self) {
        self.sent = true;
    }

    pub(crate) fn answered(mut self, completion: &Completion) {
        let actual = completion.usage.as_ref().map(|usage| self.lane.spend(usage));
        self.settle(actual);
        if let Some(permit) = self.permit.take() {
            permit.answered(completion);
        }
    }

    pub(crate) fn failed(mut self, row: u64, error: &CallError) -> Blame {
        let unknown = error.failure.maybe_billed();
        self.settle(if unknown { None } else { Some(Spend::default()) });
        self.permit.take().map_or(Blame::Row, |permit| permit.failed(row, error))
    }

    fn settle(&mut self, actual: Option<Spend>) {
        if let Some(reservation) = self.reservation.take() {
            self.account.settle(reservation, actual);
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let actual = if self.sent { None } else { Some(Spend::default()) };
        self.settle(actual);
    }
}
