//! Limits the length of answers so that a budget does not slow a run down.
//!
//! Without a `max_tokens` set by the user, the worst case of a call is the longest answer that its model can give, and
//! a few of those reserve a whole budget. So each call is sent with a limit of its own: small enough that the wanted
//! number of calls fits at the same time, and well above what earlier answers needed. A truncated answer is requested
//! again with a higher limit.

use rowmill_types::Money;

use super::budget::{BudgetLimits, Spend};
use crate::cost::Price;

/// The minimum for a first answer, if the budget is that tight.
const FIRST_LEAST: u64 = 1_024;
/// The limit for a first answer if it fits: models that think need some thousands of tokens.
const FIRST_ROOMY: u64 = 4_096;
/// The maximum for a first answer, before anything is known.
const FIRST_AMPLE: u64 = 16_384;
/// The minimum for an answer once enough answers were seen.
const LEAST: u64 = 256;
/// The number of answers that is enough.
const TRUSTED: u64 = 8;
/// The multiples of the typical need that an answer gets: at least, if it fits, and at most. The typical need is
/// rounded up to a power of two, which may double it.
const TIMES: (u64, u64, u64) = (1, 2, 16);
/// One answer in this many may be longer than the typical need.
const RARE: u64 = 50;
/// The growth of the limit after a truncated answer: at least, and if it fits.
const LONGER: (u64, u64) = (2, 4);
/// The number of calls that a row's own budget should leave room for.
const CALLS_OF_A_ROW: u64 = 4;

/// The token counts of answers so far, including thinking.
#[derive(Debug, Clone, Default)]
pub struct AnswerLengths {
    /// For each power of two, the number of answers shorter than it, and not shorter than the previous one.
    by_power: [u64; 32],
    seen: u64,
}

impl AnswerLengths {
    /// Adds a complete answer with this many tokens.
    pub fn record(&mut self, tokens: u64) {
        let power = (u64::BITS - tokens.leading_zeros()).min(31) as usize;
        if let Some(count) = self.by_power.get_mut(power) {
            *count += 1;
        }
        self.seen += 1;
    }

    /// Whether there are enough answers to estimate from.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.seen >= TRUSTED
    }

    /// A length that all but a few answers stay below; `None` before the first answer.
    fn usual(&self) -> Option<u64> {
        let longer = self.seen / RARE;
        let mut above = 0;
        let power = self.by_power.iter().rposition(|count| {
            above += count;
            above > longer
        })?;
        Some(1 << power)
    }

    /// The room that the next answer needs. `thinking` is the maximum for thinking before the answer; `cut_at` the
    /// limit that truncated the last answer to the same request.
    #[must_use]
    pub fn needs(&self, thinking: u64, cut_at: Option<u64>) -> AnswerLengthNeeds {
        if let Some(before) = cut_at {
            let times = |factor: u64| before.saturating_mul(factor);
            return AnswerLengthNeeds {
                minimum: times(LONGER.0),
                preferred: times(LONGER.1),
                maximum: times(LONGER.1),
            };
        }
        let (least, roomy, ample) = TIMES;
        let floor = if self.is_trusted() { LEAST } else { FIRST_LEAST };
        let needs = match self.usual() {
            None => AnswerLengthNeeds { minimum: FIRST_LEAST, preferred: FIRST_ROOMY, maximum: FIRST_AMPLE },
            Some(usual) => AnswerLengthNeeds {
                minimum: usual.saturating_mul(least).max(floor),
                preferred: usual.saturating_mul(roomy).max(floor),
                maximum: usual.saturating_mul(ample).max(FIRST_ROOMY),
            },
        };
        // A provider rejects a limit that thinking alone can use up.
        let aside = |tokens: u64| tokens.max(thinking.saturating_add(floor));
        if thinking == 0 {
            return needs;
        }
        AnswerLengthNeeds {
            minimum: aside(needs.minimum),
            preferred: aside(needs.preferred),
            maximum: aside(needs.maximum),
        }
    }
}

/// The room that an answer should have, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerLengthNeeds {
    /// With less than this a call is pointless.
    pub minimum: u64,
    /// Rather than get less than this, calls wait for each other.
    pub preferred: u64,
    /// No more than this is requested, unless the model's longest answer fits.
    pub maximum: u64,
}

impl AnswerLengthNeeds {
    /// Prefers the minimum if it fits: for providers that count the allowed length of an answer as used until the
    /// answer is complete.
    #[must_use]
    pub fn cap_at_preferred(self) -> Self {
        Self { maximum: self.preferred, ..self }
    }

    /// The same limit as in the last attempt at the same request, as long as it fits.
    #[must_use]
    pub fn like_last_attempt(self, cap: u64) -> Self {
        Self { minimum: self.minimum.min(cap), preferred: cap, maximum: cap }
    }
}

/// The rest of a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemainingBudget {
    /// Assuming that the calls in flight turn out to cost nothing.
    pub whole: BudgetLimits,
    /// After subtracting the worst cases of the calls in flight.
    pub now: BudgetLimits,
}

/// The possible usage of a call, depending on the length of its answer.
#[derive(Debug, Clone, Copy)]
pub struct CallSize {
    /// The token prices, if known.
    pub price: Option<Price>,
    /// The maximum number of tokens of its prompt.
    pub input: u64,
    /// The maximum number of tokens of its answer, unless the request sets a limit.
    pub longest: u64,
}

impl CallSize {
    /// The maximum cost and usage with a limit on the answer.
    #[must_use]
    pub fn max_spend(&self, output_cap: Option<u64>) -> Spend {
        let output = output_cap.unwrap_or(self.longest);
        let cost = self.price.map(|price| price.max_cost(self.input, output)).unwrap_or_default();
        Spend { cost, tokens: self.input.saturating_add(output) }
    }

    /// The longest answer whose worst case fits.
    fn longest_within(&self, limits: BudgetLimits) -> u64 {
        let by_cost =
            limits.cost.zip(self.price).map(|(most, price)| price.max_output_within(self.input, most));
        let by_tokens = limits.tokens.map(|most| most.saturating_sub(self.input));
        by_cost.unwrap_or(u64::MAX).min(by_tokens.unwrap_or(u64::MAX))
    }

    /// The limit on the answer to send, so that `calls` calls like this one fit the rest of the budget; `None` if the
    /// longest answer fits anyway.
    ///
    /// It is below [`AnswerLengthNeeds::preferred`] only if that does not fit the rest of the budget even without any other call,
    /// and never below [`AnswerLengthNeeds::minimum`]. It may therefore not fit: then the call has to wait, or cannot be made
    /// at all.
    #[must_use]
    pub fn output_cap(&self, needs: AnswerLengthNeeds, left: RemainingBudget, calls: u64) -> Option<u64> {
        let share = self.longest_within(shared_by(left.whole, calls.max(1)));
        let now = self.longest_within(left.now);
        if share.min(now) >= self.longest {
            return None;
        }
        let AnswerLengthNeeds { minimum: least, preferred: roomy, maximum: ample } = needs;
        let wanted = round_down(share.min(now).min(ample)).max(roomy);
        let whole = self.longest_within(left.whole);
        let cap = if wanted > whole { whole.max(least) } else { wanted };
        (cap < self.longest).then_some(cap)
    }

    /// The limit on the answer that leaves room for a few calls in a row's own budget.
    #[must_use]
    pub fn output_cap_in_row_budget(&self, needs: AnswerLengthNeeds, left: BudgetLimits) -> Option<u64> {
        self.output_cap(needs, RemainingBudget { whole: left, now: left }, CALLS_OF_A_ROW)
    }
}

fn shared_by(limits: BudgetLimits, calls: u64) -> BudgetLimits {
    BudgetLimits {
        cost: limits.cost.map(|most| Money::from_pico(most.pico() / calls)),
        tokens: limits.tokens.map(|most| most / calls),
    }
}

/// A nearby lower number with only a few binary digits, so that limits rarely change.
fn round_down(tokens: u64) -> u64 {
    let digits = u64::BITS - tokens.leading_zeros();
    let dropped = digits.saturating_sub(3);
    (tokens >> dropped) << dropped
}

#[cfg(test)]
#[path = "output_cap_tests.rs"]
mod tests;
