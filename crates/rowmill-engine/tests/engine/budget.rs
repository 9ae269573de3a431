//! The budget of a run.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::cost::{Price, TokenPrices};
use rowmill_core::limits::{Budget, BudgetLimits, Spend};
use rowmill_core::ports::Model;
use rowmill_engine::{StopCause, execute_run};
use rowmill_testkit::{FakeModel, fake_answer, fake_failure};
use rowmill_types::{CallFailure, Completion, Money, TokenUsage};

use crate::acting::{Acting, broken, seconds};
use crate::support::{Bench, disk_full};

const MAX_OUTPUT: u64 = 100;
/// The upper bound of a call with a prompt of one or two bytes, in tokens and picodollars.
const WORST: Spend =
    Spend { cost: Money::from_pico(WORST_INPUT * 3 + MAX_OUTPUT * 10), tokens: WORST_INPUT + MAX_OUTPUT };
const WORST_INPUT: u64 = 1 + 512 + 16;

fn priced(mut bench: Bench, limits: BudgetLimits, spent: Spend) -> Bench {
    let pico = Money::from_pico;
    let tokens = TokenPrices {
        input: pico(3),
        cached: pico(1),
        cache_write: pico(3),
        output: pico(10),
        reasoning: pico(10),
    };
    let endpoint = bench.endpoint();
    endpoint.price = Some(Price { tokens, long: None, batch_percent: None });
    endpoint.max_output = Some(MAX_OUTPUT);
    bench.plan.budget = Budget::new(limits, spent);
    bench
}

fn dollars(pico: u64) -> BudgetLimits {
    BudgetLimits { cost: Some(Money::from_pico(pico)), tokens: None }
}

fn used(input: u64, output: u64) -> Completion {
    Completion { usage: Some(TokenUsage { input, output, ..TokenUsage::default() }), ..fake_answer("fine") }
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_never_passed_and_rows_that_do_not_fit_stay_unsent() {
    // Each call costs 20 * 3 + 50 * 10 = 560; the worst case is 2,587.
    let model = Arc::new(Acting::new(|_| (seconds(1.0), Ok(used(20, 50)))));
    let bench = priced(Bench::new(100, model.clone()), dollars(10_000), Spend::default());
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    let sent = model.times().len() as u64;
    assert_eq!(end.spent, Spend { cost: Money::from_pico(560 * sent), tokens: 70 * sent });
    // One more is sent as long as its worst case fits: 10,000 - 2,587 = 7,413, and 14 * 560 = 7,840.
    assert_eq!(sent, 14);
    assert_eq!(end.stopped, Some(StopCause::Budget { spent: end.spent, worst: worst_of_two_bytes() }));
    assert_eq!(watched.numbers(), (1..=14).collect::<Vec<_>>());
    assert_eq!(watched.outcomes(), ["ok"; 14]);
}

fn worst_of_two_bytes() -> Spend {
    Spend { cost: Money::from_pico(WORST.cost.pico() + 3), tokens: WORST.tokens + 1 }
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_those_in_flight_when_only_their_worst_cases_do_not_fit() {
    let model = Arc::new(Acting::new(|_| (seconds(1.0), Ok(used(1, 1)))));
    let limit = WORST.cost.pico() * 2 + 9 * 13;
    let bench = priced(Bench::new(9, model.clone()), dollars(limit), Spend::default());
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!((watched.outcomes(), end.stopped), (vec!["ok".to_owned(); 9], None));
    assert_eq!(model.most_at_once(), 2, "two worst cases fit at once");
    let message = "model waits for calls in flight, which hold the rest of the budget";
    assert!(watched.log.lines().contains(&message.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_have_been_billed_counts_with_its_worst_case() {
    let model = Arc::new(FakeModel::default().delay(seconds(100.0)));
    let mut bench = priced(Bench::new(1, model), dollars(1_000_000), Spend::default());
    bench.plan.worker.timeout = seconds(10.0);
    bench.plan.worker.retry.retries = 1;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["Timeout"]);
    assert_eq!(end.spent, Spend { cost: Money::from_pico(WORST.cost.pico() * 2), tokens: WORST.tokens * 2 });
}

#[tokio::test(start_paused = true)]
async fn calls_that_surely_cost_nothing_count_nothing() {
    for error in [broken(), fake_failure(CallFailure::Connect), fake_failure(CallFailure::Refused)] {
        let script = vec![Err(error), Ok(used(1, 1))];
        let model = Arc::new(FakeModel::default().script("1", script));
        let bench = priced(Bench::new(1, model), dollars(1_000_000), Spend::default());
        let (plan, watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        let answered = watched.outcomes() == ["ok"];
        assert_eq!(end.spent.cost.pico(), if answered { 13 } else { 0 });
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_are_limited_alike_and_what_was_spent_before_counts() {
    let model = Arc::new(Acting::new(|_| (seconds(1.0), Ok(used(400, 100)))));
    let limits = BudgetLimits { cost: None, tokens: Some(10_000) };
    let before = Spend { cost: Money::ZERO, tokens: 5_000 };
    let (plan, watched) = priced(Bench::new(100, model.clone()), limits, before).split();
    let end = execute_run(plan).await.unwrap();
    assert!(matches!(end.stopped, Some(StopCause::Budget { .. })), "{:?}", end.stopped);
    assert_eq!((end.spent.tokens, watched.numbers().len()), (9_500, 9), "500 each, and 629 at worst");
}

#[tokio::test(start_paused = true)]
async fn the_ledger_knows_what_may_be_spent_before_a_call_is_sent() {
    let model = Arc::new(FakeModel::default().hold_answers());
    let bench = priced(Bench::new(3, model.clone()), dollars(1_000_000), Spend::default());
    let (plan, watched) = bench.split();
    let log = watched.log.clone();
    let (end, ()) = tokio::join!(execute_run(plan), async {
        log.until(|log| log.rows("taken").len() == 3).await;
        while model.seen().len() < 3 {
            tokio::task::yield_now().await;
        }
        let cover = log.rows("cover").last().copied().unwrap();
        assert!(cover >= WORST.cost.pico() * 3, "{cover}");
        model.release();
    });
    assert_eq!(end.unwrap().stopped, None);
}

#[tokio::test(start_paused = true)]
async fn the_ledger_knows_what_was_spent_when_the_run_has_ended_for_whatever_reason() {
    for (trouble_at, sink_fails) in [(None, false), (Some(4), false), (None, true)] {
        let model = Arc::new(Acting::new(|_| (seconds(1.0), Ok(used(1, 1)))));
        let mut bench = priced(Bench::new(9, model), dollars(1_000_000), Spend::default());
        if let Some(at) = trouble_at {
            bench.plan.ledger = bench.ledger().trouble_at(at).open();
        }
        if sink_fails {
            bench.plan.sinks.in_input_order = vec![bench.sink("output", true)];
        }
        let (plan, watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        assert_eq!(end.stopped.is_some(), trouble_at.is_some() || sink_fails, "{:?}", end.stopped);
        assert!(end.spent.cost > Money::ZERO && end.spent.cost < WORST.cost);
        assert_eq!(watched.log.rows("cover").last(), Some(&end.spent.cost.pico()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_ledger_cannot_vouch_for_is_not_sent() {
    let model = Arc::new(FakeModel::default());
    let mut bench = priced(Bench::new(3, model.clone()), dollars(1_000_000), Spend::default());
    bench.plan.ledger = bench.ledger().fails_at(1).open();
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(end.stopped, Some(StopCause::Problem(disk_full())));
    assert_eq!((model.seen().len(), watched.numbers().len()), (0, 0));
    assert_eq!(end.spent, Spend::default());
}

#[tokio::test(start_paused = true)]
async fn a_row_that_waits_for_another_try_is_given_back_when_the_budget_ends_the_run() {
    let model = Arc::new(Acting::new(|call| match call.prompt {
        "1" => (seconds(0.1), Err(broken())),
        _ => (seconds(1.0), Ok(used(20, 50))),
    }));
    let mut bench = priced(Bench::new(100, model.clone()), dollars(10_000), Spend::default());
    bench.plan.worker.retry.base = Duration::from_secs(50);
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert!(matches!(end.stopped, Some(StopCause::Budget { .. })), "{:?}", end.stopped);
    assert!(watched.outcomes().iter().all(|outcome| outcome == "ok"));
    assert_eq!(watched.log.rows("released"), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_was_paid_for_is_on_record_when_the_budget_ends_the_run() {
    let model: Arc<dyn Model> = Arc::new(
        FakeModel::default()
            .script("1", vec![Err(fake_failure(CallFailure::ConnectionBroken)), Ok(used(1, 1))]),
    );
    let limit = WORST.cost.pico() + 10;
    let mut bench = priced(Bench::new(1, model), dollars(limit), Spend::default());
    bench.plan.parallel = 1;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert!(matches!(end.stopped, Some(StopCause::Budget { .. })), "{:?}", end.stopped);
    assert_eq!((watched.outcomes(), end.tally.unknown_calls), (vec!["Interrupted".to_owned()], 1));
    assert_eq!(end.spent, WORST);
}
