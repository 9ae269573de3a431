//! The money of jobs: what they may cost at most is reserved before a request is added to one.

use rowmill_core::limits::{BudgetLimits, Spend};

/// The budget of a run in the batch lane, during one pass.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JobReserve {
    limits: BudgetLimits,
    /// What was spent for certain, or may have been.
    spent: Spend,
    /// The worst case of all requests whose answers were not read yet.
    reserved: Spend,
    /// The worst case of a request that did not fit.
    refused: Option<Spend>,
    /// How many requests did not fit.
    refused_requests: u64,
}

impl JobReserve {
    pub(super) fn new(limits: BudgetLimits, spent: Spend, reserved: Spend) -> Self {
        Self { limits, spent, reserved, refused: None, refused_requests: 0 }
    }

    /// Whether anything is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.limits.is_limited()
    }

    /// Reserves the worst case of a request, if it fits.
    pub(super) fn reserve(&mut self, worst_case: Spend) -> bool {
        if !self.is_limited() {
            return true;
        }
        let BudgetLimits { cost, tokens } = self.limits;
        let total = self.spent.plus(self.reserved).plus(worst_case);
        let fits =
            cost.is_none_or(|most| total.cost <= most) && tokens.is_none_or(|most| total.tokens <= most);
        match fits {
            true => self.reserved = self.reserved.plus(worst_case),
            false => {
                self.refused = Some(worst_case);
                self.refused_requests += 1;
            }
        }
        fits
    }

    /// An answer was read: what it cost replaces its worst case.
    pub(super) fn settle(&mut self, worst_case: Spend, actual: Spend) {
        if !self.is_limited() {
            return;
        }
        self.reserved = Spend {
            cost: self.reserved.cost.saturating_sub(worst_case.cost),
            tokens: self.reserved.tokens.saturating_sub(worst_case.tokens),
        };
        self.spent = self.spent.plus(actual);
    }

    /// How many requests did not fit in this pass.
    pub(super) fn refused_requests(&self) -> u64 {
        self.refused_requests
    }

    /// The worst case of a request that did not fit, if there was one in this pass.
    pub(super) fn refused(&self) -> Option<Spend> {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use rowmill_types::Money;

    use super::*;

    fn spend(pico: u64) -> Spend {
        Spend { cost: Money::from_pico(pico), tokens: 1 }
    }

    fn reserve(limit: u64, spent: u64, reserved: u64) -> JobReserve {
        let limits = BudgetLimits { cost: Some(Money::from_pico(limit)), tokens: None };
        JobReserve::new(limits, spend(spent), spend(reserved))
    }

    #[test]
    fn a_request_is_refused_if_its_worst_case_does_not_fit_beside_those_of_all_jobs() {
        let mut reserve = reserve(100, 20, 30);
        assert!(reserve.reserve(spend(50)));
        assert!(!reserve.reserve(spend(1)));
        assert_eq!(reserve.refused(), Some(spend(1)));
    }

    #[test]
    fn an_answer_that_cost_less_than_its_worst_case_leaves_room_for_another_request() {
        let mut reserve = reserve(100, 0, 100);
        assert!(!reserve.reserve(spend(50)));
        reserve.settle(spend(60), spend(5));
        assert!(reserve.reserve(spend(50)));
        assert!(!reserve.reserve(spend(6)));
    }
}
