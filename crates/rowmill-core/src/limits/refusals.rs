//! Tells a refusal that stands alone among answers from refusals that are the rule.
//!
//! A gateway in front of several backends refuses a call now and then although there is room
//! for all others. What counts is the share of refusals among the last calls, as many as
//! are in flight: refusals come back faster than answers, so a few in a row say nothing where
//! many calls were sent at once.

use std::time::Duration;

/// Looked back at least over so many calls.
const LEAST_CALLS: f64 = 20.0;
/// Above this share of refusals they are the rule …
const RULE: f64 = 0.3;
/// … until it is below this one.
const NO_RULE: f64 = 0.2;
/// Above this share of refusals fewer calls at once are better.
const OFTEN: f64 = 0.1;
/// Before so many calls were counted, one refusal says nothing of how often they come.
const ENOUGH_CALLS: f64 = 15.0;

/// Who waits after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Every call to this model: a limit is reached, or refusals are the rule.
    Everybody,
    /// Only the row that was refused, for as long as the provider asked; `None` where it did not say.
    RowAlone(Option<Duration>),
}

/// What a refusal is, beside the calls before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It stands alone.
    Alone,
    /// Others were refused too, but most calls are answered.
    Frequent,
    /// Refusals are the rule.
    Rule,
}

/// Counts calls that were refused and calls that were answered, the latest most.
#[derive(Debug, Clone)]
pub(super) struct Refusals {
    refused: f64,
    all: f64,
    /// Over how many calls is looked back.
    calls: f64,
    are_the_rule: bool,
}

impl Default for Refusals {
    /// Nothing is known in the provider's favour: until a few calls were answered, the first
    /// refusal is taken seriously.
    fn default() -> Self {
        Self { refused: 0.5, all: 1.0, calls: LEAST_CALLS, are_the_rule: true }
    }
}

impl Refusals {
    /// A call was answered while so many were in flight.
    pub(super) fn answered(&mut self, in_flight: usize) {
        self.count(0.0, in_flight);
    }

    /// A call was refused while so many were in flight.
    pub(super) fn refused(&mut self, in_flight: usize) -> Standing {
        self.count(1.0, in_flight);
        if self.are_the_rule {
            Standing::Rule
        } else if self.share() > OFTEN && self.all >= ENOUGH_CALLS {
            Standing::Frequent
        } else {
            Standing::Alone
        }
    }

    /// Whether most of the last calls, or nearly so, were refused.
    pub(super) fn are_the_rule(&self) -> bool {
        self.are_the_rule
    }

    fn share(&self) -> f64 {
        self.refused / self.all
    }

    fn count(&mut self, refused: f64, in_flight: usize) {
        // Calls that were sent together end together, and then few are in flight for a moment.
        self.calls = (self.calls - 0.1).max(in_flight as f64).max(LEAST_CALLS);
        let kept = 1.0 - 1.0 / self.calls;
        self.refused = self.refused * kept + refused;
        self.all = self.all * kept + 1.0;
        let share = self.share();
        self.are_the_rule = share > if self.are_the_rule { NO_RULE } else { RULE };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What refusals are taken for when every so many calls one is refused.
    fn one_in(every: u64, calls: u64, in_flight: usize) -> Vec<Standing> {
        let mut refusals = Refusals::default();
        (0..20).for_each(|_| refusals.answered(in_flight));
        let mut found = Vec::new();
        for call in 1..=calls {
            match call % every {
                0 => found.push(refusals.refused(in_flight)),
                _ => refusals.answered(in_flight),
            }
        }
        found
    }

    #[test]
    fn one_refusal_in_fifty_calls_stands_alone_and_one_in_two_is_the_rule() {
        for in_flight in [1, 64, 1_000] {
            assert!(one_in(50, 5_000, in_flight).iter().all(|standing| *standing == Standing::Alone));
            assert_eq!(one_in(7, 5_000, in_flight).last(), Some(&Standing::Frequent));
            assert_eq!(one_in(2, 5_000, in_flight).last(), Some(&Standing::Rule));
        }
    }

    #[test]
    fn the_first_refusal_is_taken_seriously_until_a_few_calls_were_answered() {
        assert_eq!(Refusals::default().refused(1), Standing::Rule);
        let mut refusals = Refusals::default();
        (0..8).for_each(|_| refusals.answered(8));
        assert_eq!(refusals.refused(8), Standing::Alone);
    }

    #[test]
    fn refusals_in_a_row_are_the_rule_once_they_are_many_beside_the_calls_in_flight() {
        let in_a_row = |in_flight: usize| {
            let mut refusals = Refusals::default();
            (0..5_000).for_each(|_| refusals.answered(in_flight));
            (1..=in_flight.max(20)).find(|_| refusals.refused(in_flight) == Standing::Rule)
        };
        assert_eq!(in_a_row(1), Some(7));
        assert!((150..250).contains(&in_a_row(500).unwrap()), "{:?}", in_a_row(500));
    }

    #[test]
    fn refusals_that_come_before_all_answers_of_their_time_stand_alone() {
        let mut refusals = Refusals::default();
        (0..500).for_each(|left| refusals.answered(500 - left));
        for _ in 0..10 {
            let mut found = (0..10).map(|refused| refusals.refused(500 - refused));
            assert!(found.all(|standing| standing == Standing::Alone));
            (10..500).for_each(|ended| refusals.answered(500 - ended));
        }
    }

    #[test]
    fn what_was_the_rule_is_none_only_when_clearly_fewer_calls_are_refused() {
        let mut refusals = Refusals::default();
        assert!((0..100).all(|_| refusals.refused(1) == Standing::Rule));
        let until = (1..).find(|_| {
            refusals.answered(1);
            !refusals.are_the_rule()
        });
        assert_eq!(until, Some(32), "the share has to fall from all to a fifth");
        assert_ne!(refusals.refused(1), Standing::Rule, "one more does not make it the rule again");
    }
}
