//! How long an answer may become, chosen so that a budget does not slow a run down.
//!
//! Without a `max_tokens` of the user's, the worst case of a call is the longest answer that its
//! model can give, and a few of those hold a whole budget. So each call is sent with a limit of its
//! own: small enough that the calls that are wanted fit beside each other, and well above what
//! answers are seen to need. An answer that it cuts is asked for again with a larger one.

use rowmill_types::Money;

use super::budget::{BudgetLimits, Spend};
use crate::cost::Price;

/// What a first answer gets at the very least, where the budget is that tight.
const FIRST_LEAST: u64 = 1_024;
/// What a first answer gets where that fits: models that think need some thousands of tokens.
const FIRST_ROOMY: u64 = 4_096;
/// More than this nobody needs before anything is known.
const FIRST_AMPLE: u64 = 16_384;
/// What an answer gets at the very least once so many were seen that they can be trusted.
const LEAST: u64 = 256;
/// So many.
const TRUSTED: u64 = 8;
/// How many times what answers usually need they get: at least, where it fits, and at most.
/// What they usually need is rounded up to a power of two, which may double it.
const TIMES: (u64, u64, u64) = (1, 2, 16);
/// One answer in so many may be longer than what answers usually need.
const RARE: u64 = 50;
/// How much longer an answer may become that was cut, at least and where it fits.
const LONGER: (u64, u64) = (2, 4);
/// The calls of one row that its own budget should leave room for.
const CALLS_OF_A_ROW: u64 = 4;

/// How many tokens answers were seen to need, thoughts included.
#[derive(Debug, Clone, Default)]
pub struct AnswerLengths {
    /// How many answers were shorter than each power of two, and not shorter than the one before.
    by_power: [u64; 32],
    seen: u64,
}

impl AnswerLengths {
    /// An answer was complete with so many tokens.
    pub fn saw(&mut self, tokens: u64) {
        let power = (u64::BITS - tokens.leading_zeros()).min(31) as usize;
        if let Some(count) = self.by_power.get_mut(power) {
            *count += 1;
        }
        self.seen += 1;
    }

    /// Whether enough was seen to go by.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.seen >= TRUSTED
    }

    /// What all answers but a few stay below; `None` before there was one.
    fn usual(&self) -> Option<u64> {
        let longer = self.seen / RARE;
        let mut above = 0;
        let power = self.by_power.iter().rposition(|count| {
            above += count;
            above > longer
        })?;
        Some(1 << power)
    }

    /// What the next answer needs room for. `thinking` is what it may think before it says
    /// anything; `cut_at` the limit that cut the last answer to the same question.
    #[must_use]
    pub fn needs(&self, thinking: u64, cut_at: Option<u64>) -> AnswerNeeds {
        if let Some(before) = cut_at {
            let times = |factor: u64| before.saturating_mul(factor);
            return AnswerNeeds { least: times(LONGER.0), roomy: times(LONGER.1), ample: times(LONGER.1) };
        }
        let (least, roomy, ample) = TIMES;
        let floor = if self.is_trusted() { LEAST } else { FIRST_LEAST };
        let needs = match self.usual() {
            None => AnswerNeeds { least: FIRST_LEAST, roomy: FIRST_ROOMY, ample: FIRST_AMPLE },
            Some(usual) => AnswerNeeds {
                least: usual.saturating_mul(least).max(floor),
                roomy: usual.saturating_mul(roomy).max(floor),
                ample: usual.saturating_mul(ample).max(FIRST_ROOMY),
            },
        };
        // A provider refuses a limit that thinking alone can fill.
        let aside = |tokens: u64| tokens.max(thinking.saturating_add(floor));
        if thinking == 0 {
            return needs;
        }
        AnswerNeeds { least: aside(needs.least), roomy: aside(needs.roomy), ample: aside(needs.ample) }
    }
}

/// How much room an answer should have, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerNeeds {
    /// With less than this a call makes no sense.
    pub least: u64,
    /// Calls wait for each other rather than have less than this.
    pub roomy: u64,
    /// More than this is not asked for, unless the model's longest answer fits.
    pub ample: u64,
}

impl AnswerNeeds {
    /// As little as makes sense where it fits: for providers that take the length that a request
    /// allows for used until the answer is there.
    #[must_use]
    pub fn frugal(self) -> Self {
        Self { ample: self.roomy, ..self }
    }

    /// The same as the last try at the same question, as long as that fits.
    #[must_use]
    pub fn as_before(self, cap: u64) -> Self {
        Self { least: self.least.min(cap), roomy: cap, ample: cap }
    }
}

/// What is left of a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetLeft {
    /// Once no call is in flight, if those that are turn out to cost nothing.
    pub whole: BudgetLimits,
    /// Beside the worst cases of the calls in flight.
    pub now: BudgetLimits,
}

/// What a call can use, as it depends on how long its answer may become.
#[derive(Debug, Clone, Copy)]
pub struct CallSize {
    /// What tokens cost, where that is known.
    pub price: Option<Price>,
    /// The most tokens of its prompt.
    pub input: u64,
    /// The most tokens of its answer, unless the request says otherwise.
    pub longest: u64,
}

impl CallSize {
    /// The most that it can cost and use, with an answer of so many tokens.
    #[must_use]
    pub fn worst(&self, output_cap: Option<u64>) -> Spend {
        let output = output_cap.unwrap_or(self.longest);
        let cost = self.price.map(|price| price.worst(self.input, output)).unwrap_or_default();
        Spend { cost, tokens: self.input.saturating_add(output) }
    }

    /// The longest answer whose worst case fits.
    fn longest_within(&self, limits: BudgetLimits) -> u64 {
        let by_cost = limits.cost.zip(self.price).map(|(most, price)| price.longest_within(self.input, most));
        let by_tokens = limits.tokens.map(|most| most.saturating_sub(self.input));
        by_cost.unwrap_or(u64::MAX).min(by_tokens.unwrap_or(u64::MAX))
    }

    /// The limit on the answer to send, so that `calls` calls like this one fit what is left;
    /// `None` where the longest answer fits as it is.
    ///
    /// It is below [`AnswerNeeds::roomy`] only if that does not fit what is left even without any
    /// other call, and never below [`AnswerNeeds::least`]. So it need not fit: then the call has to
    /// wait, or cannot be made at all.
    #[must_use]
    pub fn output_cap(&self, needs: AnswerNeeds, left: BudgetLeft, calls: u64) -> Option<u64> {
        let share = self.longest_within(shared_by(left.whole, calls.max(1)));
        let now = self.longest_within(left.now);
        if share.min(now) >= self.longest {
            return None;
        }
        let AnswerNeeds { least, roomy, ample } = needs;
        let wanted = round_down(share.min(now).min(ample)).max(roomy);
        let whole = self.longest_within(left.whole);
        let cap = if wanted > whole { whole.max(least) } else { wanted };
        (cap < self.longest).then_some(cap)
    }

    /// The limit on the answer that leaves a row's own budget room for some calls.
    #[must_use]
    pub fn output_cap_of_row(&self, needs: AnswerNeeds, left: BudgetLimits) -> Option<u64> {
        self.output_cap(needs, BudgetLeft { whole: left, now: left }, CALLS_OF_A_ROW)
    }
}

fn shared_by(limits: BudgetLimits, calls: u64) -> BudgetLimits {
    BudgetLimits {
        cost: limits.cost.map(|most| Money::from_pico(most.pico() / calls)),
        tokens: limits.tokens.map(|most| most / calls),
    }
}

/// A number near below that has only a few binary digits, so that limits change seldom.
fn round_down(tokens: u64) -> u64 {
    let digits = u64::BITS - tokens.leading_zeros();
    let dropped = digits.saturating_sub(3);
    (tokens >> dropped) << dropped
}

#[cfg(test)]
#[path = "output_cap_tests.rs"]
mod tests;
