use rowmill_testkit::conformance::check_observer;

use super::*;

#[test]
fn progress_keeps_the_contract_of_observers() {
    for (progress, every) in [(true, Some(1)), (true, None), (false, None)] {
        let show = DisplayOptions {
            progress,
            every,
            envelopes_on_stdout: false,
            wanted: Some(10),
            budget: BudgetLimits::default(),
            json_summary: false,
        };
        let progress = ProgressDisplay::start(show);
        assert_eq!(check_observer(&*progress.observer()), Vec::<String>::new(), "{show:?}");
        progress.finish();
    }
}

/// The displayed remaining time after 50 of 1,000 rows that cost half a dollar.
fn time_left(budget: BudgetLimits, spent_before: Money) -> String {
    let counts = ProgressCounts { budget, ..ProgressCounts::default() };
    for (count, value) in [
        (&counts.processed, 50),
        (&counts.selected, 1_000),
        (&counts.tokens, 5_000),
        (&counts.cost, 500_000_000_000),
        (&counts.cost_before, spent_before.pico()),
    ] {
        count.store(value, Relaxed);
    }
    counts.all_read.store(true, Relaxed);
    let parts = counts.parts(Instant::now() - Duration::from_secs(10));
    parts.last().map(|part| part.text.clone()).unwrap_or_default()
}

#[test]
fn the_time_left_is_that_until_the_budget_where_it_does_not_last_for_all_rows() {
    let dollars = |dollars: f64| Money::from_dollars(dollars).unwrap();
    let cost = |limit: f64| BudgetLimits { cost: Some(dollars(limit)), tokens: None };
    let tokens = BudgetLimits { cost: None, tokens: Some(10_000) };
    for (budget, before, expected) in [
        (BudgetLimits::default(), 0.0, "about 3m 10s left"),
        (cost(20.0), 0.0, "about 3m 10s left"),
        (cost(2.0), 0.0, "budget exhausted in about 30s, after about 200 rows"),
        (cost(2.0), 1.0, "budget exhausted in about 10s, after about 100 rows"),
        (cost(0.5), 0.0, "budget exhausted soon, after about 50 rows"),
        (tokens, 0.0, "budget exhausted in about 10s, after about 100 rows"),
    ] {
        assert_eq!(time_left(budget, dollars(before)), expected, "{budget:?}");
    }
}
