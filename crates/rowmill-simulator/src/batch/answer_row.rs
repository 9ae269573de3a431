//! Answers the rows of jobs as live calls are answered.

use rowmill_core::cost::Price;
use rowmill_types::{Money, TokenUsage};
use serde_json::Value;

use super::row::{BatchRow, RowContext};
use crate::answer::SimulatedAnswer;
use crate::answer_plan::{AnsweredPrompt, GARBAGE, made_for_schema};
use crate::fault::SimulatedFault;
use crate::limiter::LimitAccount;
use crate::protocol::{ParsedRequest, RequestRefusal};
use crate::reply::{CallCircumstances, SimulatedReply};
use crate::simulator_state::{SimulatorState, server_time};

/// The answer to a row.
#[derive(Debug)]
pub(crate) struct AnsweredRow {
    /// 0 if there was no answer in time.
    pub(crate) status: u16,
    /// JSON.
    pub(crate) body: String,
    pub(crate) usage: TokenUsage,
}

impl AnsweredRow {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn failed(context: &RowContext, refused: &RequestRefusal) -> Self {
        let body = context.protocol.error(refused).to_string();
        Self { status: refused.status, body, usage: TokenUsage::default() }
    }
}

/// The numbers of rows start above those of all live calls.
const FIRST_NUMBER: u64 = 1 << 40;
/// What the vendors charge, in percent of a live call.
const BATCH_PERCENT: u32 = 50;

/// The cost of a row.
fn cost(price: &Price, usage: &TokenUsage) -> Money {
    let percent = u64::from(price.batch_percent.unwrap_or(BATCH_PERCENT));
    let pico = u128::from(price.cost(usage).pico()) * u128::from(percent) / 100;
    Money::from_pico(u64::try_from(pico).unwrap_or(u64::MAX))
}

impl SimulatorState {
    /// Answers a row.
    pub(crate) fn answer_row(&self, context: &RowContext, row: &mut BatchRow, number: u64) -> AnsweredRow {
        let protocol = context.protocol;
        let checked = self.read_row(context, row).and_then(|ask| {
            protocol.check_model(&ask.model, &self.script.models)?;
            Ok(ask)
        });
        let ask = match checked {
            Ok(ask) => ask,
            Err(refused) => return AnsweredRow::failed(context, &refused),
        };
        let number = FIRST_NUMBER + number;
        let asked = AnsweredPrompt { prompt: ask.prompt.clone(), conversation: ask.conversation() };
        let (of_prompt, of_turn) = self.recorder.count_batch_prompt(&asked);
        let key = protocol.key(&context.request).unwrap_or_default();
        let account = LimitAccount { key: key.to_owned(), model: ask.model.clone() };
        let prefix_tokens = self.script.tokenizer.count(&ask.system);
        let prefix =
            self.conditions().cache.look_up(protocol, (&account, &ask), prefix_tokens, server_time());
        let input = self.script.tokenizer.count_prompt(&ask);
        let at = CallCircumstances { number, of_prompt, of_turn, input, prefix };
        let how = match self.decide(&ask, at) {
            SimulatedAnswer::Default => made_for_schema(&ask),
            how => Ok(how),
        };
        let how = match how {
            Ok(how) => how,
            Err(refused) => return AnsweredRow::failed(context, &refused),
        };
        if let SimulatedAnswer::Fail(fault) = &how
            && let Some(failed) = failed_by(context, fault)
        {
            return failed;
        }
        let answered = self.make_row(context, &ask, at, &how);
        if answered.is_success() {
            self.conditions().cache.record_prefix(prefix, server_time());
            let cost = self.script.price.map(|price| cost(&price, &answered.usage));
            self.recorder.record_batch_answer(&asked, &answered.usage, cost);
        }
        answered
    }

    fn make_row(
        &self,
        context: &RowContext,
        ask: &ParsedRequest,
        at: CallCircumstances,
        how: &SimulatedAnswer,
    ) -> AnsweredRow {
        let reply = SimulatedReply::make(&self.script, ask, at, how);
        self.thoughts.remember(ask, &reply);
        let outgoing = context.protocol.render_answer(ask, &reply, &[]);
        let is_garbage = matches!(how, SimulatedAnswer::Fail(SimulatedFault::Garbage));
        let body = match is_garbage {
            true => Value::from(GARBAGE).to_string(),
            false => String::from_utf8(outgoing.pieces.concat()).unwrap_or_default(),
        };
        AnsweredRow { status: outgoing.status, body, usage: reply.tokens }
    }
}

/// The result of a fault that leaves a row without an answer. A row has no connection of its own, so faults of
/// connections are rows that were never answered, and a slow answer is an answer.
fn failed_by(context: &RowContext, fault: &SimulatedFault) -> Option<AnsweredRow> {
    match fault {
        SimulatedFault::Status { code, body, .. } => {
            let usual = || context.protocol.status_error(*code);
            let body = body.as_ref().map_or_else(usual, |body| {
                serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.clone()))
            });
            Some(AnsweredRow { status: *code, body: body.to_string(), usage: TokenUsage::default() })
        }
        SimulatedFault::Reset
        | SimulatedFault::ResetMidway
        | SimulatedFault::Truncate
        | SimulatedFault::Hang => {
            Some(AnsweredRow { status: 0, body: "null".to_owned(), usage: TokenUsage::default() })
        }
        _ => None,
    }
}
