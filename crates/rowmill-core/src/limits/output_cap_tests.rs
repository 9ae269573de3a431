use proptest::prelude::*;

use super::*;
use crate::cost::TokenPrices;
use crate::limits::{Budget, ReserveOutcome};

fn money(pico: u64) -> Money {
    Money::from_pico(pico)
}

/// $1 and $4 per million tokens, with higher prices for long prompts.
fn price() -> Price {
    let tokens = TokenPrices {
        input: money(1_000_000),
        cached: money(100_000),
        cache_write: money(1_250_000),
        output: money(4_000_000),
        reasoning: money(4_000_000),
    };
    let long = TokenPrices { output: money(6_000_000), ..tokens };
    Price { tokens, long: Some((100_000, long)), batch_percent: None }
}

fn call() -> CallSize {
    CallSize { price: Some(price()), input: 800, longest: 128_000 }
}

fn dollars(dollars: f64) -> BudgetLimits {
    BudgetLimits { cost: Money::from_dollars(dollars), tokens: None }
}

fn untouched(whole: BudgetLimits) -> RemainingBudget {
    RemainingBudget { whole, now: whole }
}

fn seen(lengths: impl IntoIterator<Item = u64>) -> AnswerLengths {
    let mut known = AnswerLengths::default();
    lengths.into_iter().for_each(|length| known.record(length));
    known
}

#[test]
fn answers_get_several_times_what_they_are_seen_to_need() {
    let needs = |lengths: &AnswerLengths| {
        let AnswerLengthNeeds { minimum: least, preferred: roomy, maximum: ample } = lengths.needs(0, None);
        (least, roomy, ample)
    };
    assert_eq!(needs(&seen([])), (1_024, 4_096, 16_384), "nothing is known");
    assert_eq!(needs(&seen([3])), (1_024, 1_024, 4_096), "one answer is not much to go by");
    assert_eq!(needs(&seen([3; 8])), (256, 256, 4_096), "eight are");
    assert_eq!(needs(&seen([1_000; 8])), (1_024, 2_048, 16_384));
    assert_eq!(needs(&seen([1_024; 8])), (2_048, 4_096, 32_768));
    assert_eq!(needs(&seen([u64::MAX])).0, 1 << 31, "the length of an answer may be a lie");
    let outlier = |others| seen(std::iter::repeat_n(100, others).chain([60_000]));
    assert_eq!(needs(&outlier(48)).1, 65_536 * 2, "one long answer in 49 counts");
    assert_eq!(needs(&outlier(49)).1, 256, "one in 50 is asked for again");
}

#[test]
fn an_answer_that_was_cut_gets_more_and_thinking_always_has_its_room() {
    let needs = seen([10; 9]).needs(0, Some(4_096));
    assert_eq!(needs, AnswerLengthNeeds { minimum: 8_192, preferred: 16_384, maximum: 16_384 });
    let needs = seen([10; 9]).needs(16_000, None);
    assert_eq!(needs, AnswerLengthNeeds { minimum: 16_256, preferred: 16_256, maximum: 16_256 });
    let needs = seen([]).needs(2_000, None);
    assert_eq!(needs, AnswerLengthNeeds { minimum: 3_024, preferred: 4_096, maximum: 16_384 });
}

#[test]
fn the_wanted_calls_fit_what_is_left() {
    let known = seen([50; 20]).needs(0, None);
    let new = seen([]).needs(0, None);
    for (needs, budget, calls, expected) in [
        (known, 1_000.0, 64, None),
        (new, 1.0, 1, None),
        (new, 1.0, 8, Some(16_384)),
        (new, 1.0, 64, Some(4_096)),
        (known, 1.0, 64, Some(3_584)),
        (known, 1.0, 256, Some(640)),
        (known, 1.0, 2_000, Some(256)),
        // Four thousand do not fit: the limit is what does.
        (new, 0.01, 16, Some(2_250)),
        // Nothing sensible fits; the budget rejects it.
        (new, 0.001, 16, Some(1_024)),
    ] {
        let cap = call().output_cap(needs, untouched(dollars(budget)), calls);
        assert_eq!(cap, expected, "{budget} for {calls} calls");
    }
}

#[test]
fn a_limit_on_tokens_is_shared_alike_and_the_tighter_one_counts() {
    let needs = seen([50; 20]).needs(0, None);
    let tokens = BudgetLimits { cost: None, tokens: Some(100_000) };
    assert_eq!(call().output_cap(needs, untouched(tokens), 50), Some(1_024), "2,000 less the prompt");
    let both = BudgetLimits { cost: Some(money(1)), ..tokens };
    assert_eq!(call().output_cap(needs, untouched(both), 50), Some(256));
    let free = CallSize { price: None, ..call() };
    assert_eq!(free.output_cap(needs, untouched(BudgetLimits::default()), 50), None);
}

#[test]
fn a_call_takes_no_more_than_those_in_flight_leave_and_a_retry_asks_for_the_same() {
    let needs = seen([50; 20]).needs(0, None);
    let left = RemainingBudget { whole: dollars(1.0), now: dollars(0.005) };
    assert_eq!(call().output_cap(needs, left, 8), Some(896));
    assert_eq!(call().output_cap(needs.like_last_attempt(640), untouched(dollars(1.0)), 8), Some(640));
    assert_eq!(call().output_cap(needs.cap_at_preferred(), untouched(dollars(1.0)), 8), Some(256));
}

#[test]
fn a_row_with_a_budget_of_its_own_keeps_some_for_its_further_calls() {
    let needs = seen([]).needs(0, None);
    assert_eq!(call().output_cap_in_row_budget(needs, dollars(10.0)), None);
    assert_eq!(call().output_cap_in_row_budget(needs, dollars(0.1)), Some(5_120));
    assert_eq!(call().output_cap_in_row_budget(needs, dollars(0.001)), Some(1_024));
}

#[derive(Debug, Clone)]
struct Case {
    size: CallSize,
    needs: AnswerLengthNeeds,
    left: RemainingBudget,
    calls: u64,
}

prop_compose! {
    fn cases()(
        input in 0..300_000_u64,
        longest in 1..200_000_u64,
        lengths in proptest::collection::vec(0..100_000_u64, 0..80),
        thinking in prop_oneof![Just(0), 0..40_000_u64],
        cut_at in proptest::option::of(1..200_000_u64),
        cost in proptest::option::of(0..2_000_000_000_000_u64),
        tokens in proptest::option::of(0..10_000_000_u64),
        held in 0..100_u64,
        calls in 1..2_000_u64,
    ) -> Case {
        let whole = BudgetLimits { cost: cost.map(money), tokens };
        let held = Spend {
            cost: money(cost.unwrap_or(0) / 100 * held),
            tokens: tokens.unwrap_or(0) / 100 * held,
        };
        Case {
            size: CallSize { price: Some(price()), input, longest },
            needs: seen(lengths).needs(thinking, cut_at),
            left: RemainingBudget { whole, now: whole.minus(held) },
            calls,
        }
    }
}

proptest! {
    #[test]
    fn a_cap_is_never_below_what_makes_sense_nor_above_the_longest_answer(case in cases()) {
        let Case { size, needs, left, calls } = case;
        if let Some(cap) = size.output_cap(needs, left, calls) {
            prop_assert!(cap < size.longest, "{cap}");
            prop_assert!(cap >= needs.minimum.min(needs.preferred), "{cap}");
        }
    }

    #[test]
    fn whatever_is_chosen_fits_where_the_least_that_makes_sense_does(case in cases()) {
        let Case { size, needs, left, calls } = case;
        let fits = |output: u64| {
            let spend = size.max_spend(Some(output.min(size.longest)));
            left.whole.cost.is_none_or(|most| spend.cost <= most)
                && left.whole.tokens.is_none_or(|most| spend.tokens <= most)
        };
        let cap = size.output_cap(needs, left, calls);
        if fits(needs.minimum) {
            prop_assert!(fits(cap.unwrap_or(size.longest)), "{cap:?}");
        }
        if fits(needs.preferred) {
            prop_assert!(cap.unwrap_or(size.longest) >= needs.preferred.min(size.longest), "{cap:?}");
        }
    }

    #[test]
    fn the_wanted_calls_fit_unless_answers_would_have_too_little_room(case in cases()) {
        let Case { size, needs, left, calls } = case;
        let left = untouched(left.whole);
        let cap = size.output_cap(needs, left, calls);
        let mut budget = Budget::new(left.whole, Spend::default());
        let granted = (0..calls).take_while(|_| {
            matches!(budget.reserve(size.max_spend(cap)), ReserveOutcome::Granted(_))
        });
        let granted = granted.count() as u64;
        prop_assert!(granted == calls || cap.is_some_and(|cap| cap <= needs.preferred) ||
            (cap.is_none() && needs.preferred >= size.longest), "{granted} of {calls} with {cap:?}");
    }

    #[test]
    fn nothing_is_reported_where_the_longest_answers_fit_beside_each_other(case in cases()) {
        let Case { size, needs, left, calls } = case;
        let mut budget = Budget::new(left.whole, Spend::default());
        let all_fit = (0..calls).all(|_| matches!(budget.reserve(size.max_spend(None)), ReserveOutcome::Granted(_)));
        if all_fit && left.now == left.whole {
            prop_assert_eq!(size.output_cap(needs, left, calls), None);
        }
    }

    #[test]
    fn an_answer_that_was_cut_always_gets_more(mut case in cases(), before in 1..200_000_u64) {
        case.needs = AnswerLengths::default().needs(0, Some(before));
        let cap = case.size.output_cap(case.needs, case.left, case.calls);
        prop_assert!(cap.is_none_or(|cap| cap > before), "{cap:?}");
    }
}
