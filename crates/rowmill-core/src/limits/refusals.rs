//! Distinguishes isolated refusals among answers from a provider that refuses most calls.
//!
//! A gateway in front of several backends refuses a call now and then although there is room for all others. What
//! counts is the share of refusals among the last calls, in sending order: refusals arrive faster than answers, so
//! several in a row prove nothing while calls that were sent with them are still in flight.

use std::time::Duration;

/// The approximate number of recent calls that are considered.
const CALLS: f64 = 24.0;
/// Above this share of refusals they count as the rule …
const RULE: f64 = 0.65;
/// … until it drops below this one.
const NO_RULE: f64 = 0.5;

/// Who waits after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalScope {
    /// All calls to this model: a limit is reached, or most calls are refused.
    EveryCall,
    /// Only the refused row, for as long as the provider asked; `None` if it gave no time.
    RowAlone(Option<Duration>),
}

/// Counts refused and answered calls, giving the latest the most weight.
#[derive(Debug, Clone)]
pub(super) struct RefusalRate {
    refused: f64,
    all: f64,
    /// The number of the last call that was counted; all calls sent before it are counted, too.
    counted: u64,
    was_answered: bool,
    are_the_rule: bool,
}

impl Default for RefusalRate {
    /// Pessimistic at the start: until a call was answered, the first refusal is taken seriously.
    fn default() -> Self {
        Self { refused: 0.5, all: 1.0, counted: 0, was_answered: false, are_the_rule: true }
    }
}

impl RefusalRate {
    /// The call with this number was answered. Calls are numbered in sending order, from 1.
    pub(super) fn record_answer(&mut self, number: u64) {
        self.was_answered = true;
        self.count_up_to(number);
        self.judge();
    }

    /// The call with this number was refused.
    pub(super) fn record_refusal(&mut self, number: u64) {
        if self.was_answered {
            self.count_up_to(number);
            self.refused += kept(self.counted - number);
        } else {
            // Nothing suggests that the calls in flight will be answered.
            self.count(1);
            self.refused += 1.0;
            self.counted = self.counted.max(number);
        }
        self.judge();
    }

    /// Whether most of the last calls were refused.
    pub(super) fn is_high(&self) -> bool {
        self.are_the_rule
    }

    /// Counts the calls up to this one as answered: those that are still in flight have been so for longer than a
    /// refusal takes.
    fn count_up_to(&mut self, number: u64) {
        if let Some(more) = number.checked_sub(self.counted) {
            self.count(more);
            self.counted = number;
        }
    }

    fn count(&mut self, calls: u64) {
        let kept = kept(calls);
        self.refused *= kept;
        self.all = self.all * kept + (1.0 - kept) * CALLS;
    }

    fn judge(&mut self) {
        let most = if self.are_the_rule { NO_RULE } else { RULE };
        self.are_the_rule = self.refused / self.all > most;
    }
}

/// The remaining weight of a call after this many others.
fn kept(calls: u64) -> f64 {
    (1.0 - 1.0 / CALLS).powf(calls as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pseudo-random number from 0 to 1, the same for each call.
    fn draw(call: u64) -> f64 {
        (call.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11)
            as f64
            / (1u64 << 53) as f64
    }

    /// How often refusals are mistaken for the rule when this share of calls is refused, `at_once` calls are sent
    /// together, and refusals arrive before answers.
    fn taken_for_the_rule(share: f64, at_once: u64) -> f64 {
        let mut refusals = RefusalRate::default();
        (1..=20).for_each(|call| refusals.record_answer(call));
        let (mut refused, mut rule) = (0.0, 0.0);
        for first in (21..8_000).step_by(at_once as usize) {
            let (yes, no): (Vec<u64>, Vec<u64>) =
                (first..first + at_once).partition(|call| draw(*call) < share);
            for call in yes {
                refusals.record_refusal(call);
                refused += 1.0;
                rule += f64::from(u8::from(refusals.is_high()));
            }
            no.into_iter().for_each(|call| refusals.record_answer(call));
        }
        rule / refused
    }

    #[test]
    fn four_refusals_in_ten_calls_stand_alone_and_eight_are_the_rule_however_many_are_sent_at_once() {
        for at_once in [1, 8, 64, 500] {
            for share in [0.02, 0.1, 0.2, 0.3, 0.4] {
                let rule = taken_for_the_rule(share, at_once);
                assert!(rule < 0.02, "{share} of calls, {at_once} at once: {rule}");
            }
            let rule = taken_for_the_rule(0.8, at_once);
            assert!(rule > 0.9, "{at_once} at once: {rule}");
        }
    }

    #[test]
    fn the_first_refusal_is_taken_seriously_until_calls_were_answered() {
        for first in [1, 8] {
            let mut refusals = RefusalRate::default();
            refusals.record_refusal(first);
            assert!(refusals.is_high(), "call {first} was refused before any answer");
        }
        let mut refusals = RefusalRate::default();
        (1..=8).for_each(|call| refusals.record_answer(call));
        refusals.record_refusal(9);
        assert!(!refusals.is_high());
    }

    #[test]
    fn refusals_in_a_row_are_the_rule_soon_however_many_calls_before_them_are_on_their_way() {
        for on_their_way in [0, 500] {
            let mut refusals = RefusalRate::default();
            (1..=100).for_each(|call| refusals.record_answer(call));
            let first = 101 + on_their_way;
            let in_a_row = (first..).position(|call| {
                refusals.record_refusal(call);
                refusals.is_high()
            });
            assert_eq!(in_a_row, Some(24), "{on_their_way} calls are on their way");
        }
    }

    #[test]
    fn a_refusal_that_comes_after_answers_to_later_calls_is_counted_where_it_was_sent() {
        let mut late = RefusalRate::default();
        let mut in_order = RefusalRate::default();
        (1..=30).for_each(|call| late.record_answer(call));
        (1..=30).for_each(|call| match call {
            25..=28 => in_order.record_refusal(call),
            _ => in_order.record_answer(call),
        });
        (25..=28).for_each(|call| late.record_refusal(call));
        assert!((late.refused - in_order.refused).abs() < 1e-9, "{} and {}", late.refused, in_order.refused);
    }

    #[test]
    fn what_was_the_rule_is_none_only_when_clearly_fewer_calls_are_refused() {
        let mut refusals = RefusalRate::default();
        for call in 1..=100 {
            refusals.record_refusal(call);
            assert!(refusals.is_high());
        }
        let until = (101..).position(|call| {
            refusals.record_answer(call);
            !refusals.is_high()
        });
        assert_eq!(until, Some(16), "the share has to fall from all to half");
        refusals.record_refusal(118);
        assert!(!refusals.is_high(), "one more does not make it the rule again");
    }
}
