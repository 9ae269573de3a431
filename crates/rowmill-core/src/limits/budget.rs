//! The hard spending limit of a run: a call is sent only if its worst case fits the rest of the budget.

use rowmill_types::{ExactMoney, Money, exact_money};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::output_cap::RemainingBudget;

/// Money and tokens together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Spend {
    /// Dollars.
    pub cost: Money,
    /// Input and output tokens together.
    pub tokens: u64,
}

impl Spend {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { cost: self.cost + other.cost, tokens: self.tokens.saturating_add(other.tokens) }
    }

    /// The maximum of both, field by field.
    fn at_least(self, other: Self) -> Self {
        Self { cost: self.cost.max(other.cost), tokens: self.tokens.max(other.tokens) }
    }

    fn passes(self, other: Self) -> bool {
        self.cost > other.cost || self.tokens > other.tokens
    }

    fn minus(self, other: Self) -> Self {
        Self { cost: self.cost.saturating_sub(other.cost), tokens: self.tokens.saturating_sub(other.tokens) }
    }
}

/// Limits on spending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetLimits {
    /// Maximum cost in dollars, if limited.
    #[serde(with = "exact_money")]
    #[schemars(with = "Option<ExactMoney>")]
    pub cost: Option<Money>,
    /// Maximum number of tokens, if limited.
    pub tokens: Option<u64>,
}

impl BudgetLimits {
    /// Whether anything is limited.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.cost.is_some() || self.tokens.is_some()
    }

    /// The limits minus this spending.
    #[must_use]
    pub fn minus(&self, spent: Spend) -> Self {
        Self {
            cost: self.cost.map(|most| most.saturating_sub(spent.cost)),
            tokens: self.tokens.map(|most| most.saturating_sub(spent.tokens)),
        }
    }

    /// How many times this spending fits the limits.
    #[must_use]
    pub fn times_it_fits(&self, spend: Spend) -> u64 {
        let by_cost = self.cost.and_then(|most| most.pico().checked_div(spend.cost.pico()));
        let by_tokens = self.tokens.and_then(|most| most.checked_div(spend.tokens));
        by_cost.unwrap_or(u64::MAX).min(by_tokens.unwrap_or(u64::MAX))
    }

    fn allow(&self, spend: Spend) -> bool {
        self.cost.is_none_or(|most| spend.cost <= most) && self.tokens.is_none_or(|most| spend.tokens <= most)
    }
}

/// Keeps the total of a run below its limits.
#[derive(Debug, Clone, Default)]
pub struct Budget {
    limits: BudgetLimits,
    /// What was spent for certain or may have been: interrupted calls count in full.
    spent: Spend,
    reserved: Spend,
    /// The number of calls with a reservation.
    calls: u64,
    /// The highest usage of a call that exceeded its worst case: its provider respects no limit, and further calls may
    /// use as much.
    excess: Spend,
    /// The upper bound of the spending that the ledger states.
    covered: Spend,
}

/// The result of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReserveOutcome {
    /// The worst case is reserved.
    Granted(Reservation),
    /// It would fit if calls in flight turn out cheaper than their worst case.
    Later,
    /// It does not fit, whatever the calls in flight turn out to use.
    Never,
}

/// The reserved worst case of a call, held until the call has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Reservation(Spend);

impl Budget {
    /// A budget of which earlier runs spent `spent`.
    #[must_use]
    pub fn new(limits: BudgetLimits, spent: Spend) -> Self {
        Self { limits, spent, ..Self::default() }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> BudgetLimits {
        self.limits
    }

    /// What was spent, or may have been.
    #[must_use]
    pub fn spent(&self) -> Spend {
        self.spent
    }

    /// The rest of the budget.
    #[must_use]
    pub fn remaining(&self) -> RemainingBudget {
        RemainingBudget {
            whole: self.limits.minus(self.spent),
            now: self.limits.minus(self.spent.plus(self.reserved)),
        }
    }

    /// The number of calls in flight, if anything is limited.
    #[must_use]
    pub fn calls_in_flight(&self) -> u64 {
        self.calls
    }

    /// Whether nearly everything is spent: less than a tenth is left.
    #[must_use]
    pub fn is_nearly_spent(&self) -> bool {
        let BudgetLimits { cost, tokens } = self.limits.minus(self.spent);
        let is_little = |left: u64, most: u64| left < most / 10;
        cost.zip(self.limits.cost).is_some_and(|(left, most)| is_little(left.pico(), most.pico()))
            || tokens.zip(self.limits.tokens).is_some_and(|(left, most)| is_little(left, most))
    }

    /// Reserves the worst case of a call, if it fits.
    pub fn reserve(&mut self, worst: Spend) -> ReserveOutcome {
        if !self.limits.is_limited() {
            return ReserveOutcome::Granted(Reservation(Spend::default()));
        }
        let worst = worst.at_least(self.excess);
        if !self.limits.allow(self.spent.plus(worst)) {
            return ReserveOutcome::Never;
        }
        let reserved = self.reserved.plus(worst);
        if !self.limits.allow(self.spent.plus(reserved)) {
            return ReserveOutcome::Later;
        }
        self.reserved = reserved;
        self.calls += 1;
        ReserveOutcome::Granted(Reservation(worst))
    }

    /// Whether a reservation still covers the worst case, whatever calls have used since.
    #[must_use]
    pub fn is_reservation_sufficient(&self, reservation: &Reservation) -> bool {
        !self.limits.is_limited() || !self.excess.passes(reservation.0)
    }

    /// A call has ended and used `actual`; `None` if it may have been billed and its usage is unknown, so that its
    /// worst case counts. Returns whether it is the first call that exceeded its worst case; further calls then reserve
    /// as much as it used.
    pub fn settle(&mut self, reservation: Reservation, actual: Option<Spend>) -> bool {
        let Reservation(worst) = reservation;
        self.reserved = self.reserved.minus(worst);
        self.calls = self.calls.saturating_sub(1);
        self.spent = self.spent.plus(actual.unwrap_or(worst));
        let Some(actual) = actual.filter(|actual| self.limits.is_limited() && actual.passes(worst)) else {
            return false;
        };
        let is_first = self.excess == Spend::default();
        self.excess = self.excess.at_least(actual);
        is_first
    }

    /// The upper bound that the ledger must state before the reserved calls may be sent. `None` if it states a
    /// sufficient one already.
    ///
    /// It is a little higher than needed now, so that not every call costs a write.
    #[must_use]
    pub fn spend_bound_to_record(&self) -> Option<Spend> {
        let needed = self.spent.plus(self.reserved);
        if !self.limits.is_limited()
            || (needed.cost <= self.covered.cost && needed.tokens <= self.covered.tokens)
        {
            return None;
        }
        let ahead = Spend {
            cost: Money::from_pico(self.limits.cost.unwrap_or(needed.cost).pico() / 100),
            tokens: self.limits.tokens.unwrap_or(needed.tokens) / 100,
        };
        let mut cover = needed.plus(ahead);
        cover.cost = self.limits.cost.map_or(cover.cost, |most| cover.cost.min(most)).max(needed.cost);
        cover.tokens =
            self.limits.tokens.map_or(cover.tokens, |most| cover.tokens.min(most)).max(needed.tokens);
        Some(cover)
    }

    /// The amount that the ledger should state once no call is in flight, so that reservations are not counted as
    /// spent. `None` if it states that already, or has never stated a bound.
    #[must_use]
    pub fn final_spend_bound_to_record(&self) -> Option<Spend> {
        (self.calls == 0 && self.covered != Spend::default() && self.covered != self.spent)
            .then_some(self.spent)
    }

    /// The ledger states `cover` now.
    pub fn set_recorded_spend_bound(&mut self, cover: Spend) {
        self.covered = cover;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend(pico: u64, tokens: u64) -> Spend {
        Spend { cost: Money::from_pico(pico), tokens }
    }

    fn budget(pico: u64) -> Budget {
        let limits = BudgetLimits { cost: Some(Money::from_pico(pico)), tokens: None };
        Budget::new(limits, Spend::default())
    }

    #[test]
    fn a_call_is_granted_only_if_its_worst_case_fits_what_is_left() {
        let mut budget = budget(100);
        let ReserveOutcome::Granted(first) = budget.reserve(spend(60, 1)) else { panic!("it fits") };
        assert_eq!(budget.reserve(spend(60, 1)), ReserveOutcome::Later);
        assert_eq!(budget.reserve(spend(101, 1)), ReserveOutcome::Never);
        budget.settle(first, Some(spend(10, 1)));
        let ReserveOutcome::Granted(second) = budget.reserve(spend(90, 1)) else { panic!("it fits now") };
        budget.settle(second, Some(spend(90, 1)));
        assert_eq!(budget.reserve(spend(1, 0)), ReserveOutcome::Never);
        assert_eq!(budget.spent(), spend(100, 2));
    }

    #[test]
    fn a_call_that_was_cut_counts_with_its_worst_case() {
        let mut budget = budget(100);
        let ReserveOutcome::Granted(cut) = budget.reserve(spend(60, 5)) else { panic!("it fits") };
        budget.settle(cut, None);
        assert_eq!(budget.spent(), spend(60, 5));
    }

    #[test]
    fn what_earlier_runs_spent_counts_and_tokens_are_limited_alike() {
        let limits = BudgetLimits { cost: None, tokens: Some(100) };
        let mut budget = Budget::new(limits, spend(999, 95));
        assert_eq!(budget.reserve(spend(1, 6)), ReserveOutcome::Never);
        assert!(matches!(budget.reserve(spend(1, 5)), ReserveOutcome::Granted(_)));
    }

    #[test]
    fn the_ledger_is_reported_an_amount_that_calls_in_flight_cannot_pass() {
        let mut budget = budget(1_000);
        assert_eq!(budget.spend_bound_to_record(), None);
        let ReserveOutcome::Granted(call) = budget.reserve(spend(60, 5)) else { panic!("it fits") };
        let cover = budget.spend_bound_to_record().unwrap();
        assert_eq!(cover, spend(70, 5));
        budget.set_recorded_spend_bound(cover);
        assert_eq!(budget.spend_bound_to_record(), None);
        budget.settle(call, Some(spend(50, 5)));
        let ReserveOutcome::Granted(_) = budget.reserve(spend(940, 5)) else { panic!("it fits") };
        assert_eq!(budget.spend_bound_to_record(), Some(spend(1_000, 10)));
    }

    #[test]
    fn after_a_call_that_passed_its_worst_case_as_much_is_set_aside_for_every_call() {
        let mut budget = budget(100);
        let ReserveOutcome::Granted(first) = budget.reserve(spend(10, 1)) else { panic!("10 of 100 fit") };
        let ReserveOutcome::Granted(second) = budget.reserve(spend(10, 1)) else { panic!("20 of 100 fit") };
        assert!(budget.settle(first, Some(spend(60, 1))));
        assert!(!budget.settle(second, Some(spend(12, 1))), "it is told once");
        assert!(
            matches!(budget.reserve(spend(10, 1)), ReserveOutcome::Never),
            "28 are left, and 60 may be used"
        );
    }

    #[test]
    fn what_makes_no_sense_counts_as_the_most_there_is() {
        let mut budget = budget(100);
        let ReserveOutcome::Granted(call) = budget.reserve(spend(10, 1)) else { panic!("10 of 100 fit") };
        assert!(budget.settle(call, Some(spend(u64::MAX, u64::MAX))));
        assert!(matches!(budget.reserve(spend(1, 1)), ReserveOutcome::Never));
    }
}
