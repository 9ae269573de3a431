//! A budget limits the length of answers, so that it does not hold calls up.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rowmill_core::cost::{Price, TokenPrices};
use rowmill_core::limits::{Budget, BudgetLimits, CallParallelism, RunPaceSettings, Spend};
use rowmill_engine::{CallGateSettings, ModelEndpoint, OutputCaps, RunOutcome, StopCause, execute_run};
use rowmill_testkit::fake_answer;
use rowmill_types::{Completion, FinishReason, Money, TokenUsage};

use crate::acting::{Acting, Call, broken, seconds};
use crate::support::{Bench, SHARE, Watched, endpoint, paced, shared};

/// The longest answer of the model, in tokens.
const LONGEST: u64 = 128_000;

/// $0.75 and $4.50 per million tokens.
fn price() -> Price {
    let pico = Money::from_pico;
    let tokens = TokenPrices {
        input: pico(750_000),
        cached: pico(75_000),
        cache_write: pico(750_000),
        output: pico(4_500_000),
        reasoning: pico(4_500_000),
    };
    Price { tokens, long: None, batch_percent: None }
}

fn dollars(dollars: f64) -> BudgetLimits {
    BudgetLimits { cost: Money::from_dollars(dollars), tokens: None }
}

/// The prompt of each call, its limit, and its usage.
type Log = Arc<Mutex<Vec<(String, Option<u64>, u64)>>>;

/// A model whose answers take a third of a second and have as many tokens as a function says.
fn needing(needs: impl Fn(&str) -> u64 + Send + Sync + 'static) -> (Arc<Acting>, Log) {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let model = Acting::new(move |call: Call<'_>| {
        let (needed, most) = (needs(call.prompt), call.cap.unwrap_or(LONGEST));
        let usage = TokenUsage { input: 20, output: needed.min(most), ..TokenUsage::default() };
        seen.lock().unwrap().push((call.prompt.to_owned(), call.cap, usage.output));
        let finish = if needed > most { FinishReason::Length } else { FinishReason::Complete };
        (seconds(0.3), Ok(Completion { usage: Some(usage), finish, ..fake_answer("fine") }))
    });
    (Arc::new(model), log)
}

fn capped(name: &str, model: Arc<Acting>, settings: CallGateSettings) -> ModelEndpoint {
    ModelEndpoint {
        price: Some(price()),
        max_output: Some(LONGEST),
        output_caps: Some(Arc::new(OutputCaps::default())),
        batch_terms: None,
        ..endpoint(name, model, settings)
    }
}

fn bench(rows: usize, model: Arc<Acting>, limits: BudgetLimits) -> Bench {
    let mut bench = Bench::new(rows, model.clone());
    let settings = paced(RunPaceSettings { parallel: CallParallelism::AtMost(64), ..SHARE });
    bench.row_worker().model_roles[0].endpoints = shared(vec![capped("model", model, settings)]);
    bench.plan.parallel = 64;
    bench.plan.worker.retry.retries = 0;
    bench.plan.budget = Budget::new(limits, Spend::default());
    bench
}

async fn ended(bench: Bench) -> (RunOutcome, Watched) {
    let (plan, watched) = bench.split();
    (execute_run(plan).await.unwrap(), watched)
}

fn with_prefix<'w>(watched: &'w [String], start: &str) -> Vec<&'w str> {
    watched.iter().map(String::as_str).filter(|line| line.starts_with(start)).collect()
}

#[tokio::test(start_paused = true)]
async fn as_many_calls_are_in_flight_with_a_budget_as_without() {
    for parallel in [CallParallelism::AtMost(64), CallParallelism::Auto] {
        let mut times = Vec::new();
        for limits in [BudgetLimits::default(), dollars(1.0)] {
            let (model, log) = needing(|_| 50);
            let mut bench = bench(600, model.clone(), limits);
            let settings = paced(RunPaceSettings { parallel, ..SHARE });
            bench.row_worker().model_roles[0].endpoints =
                shared(vec![capped("model", model.clone(), settings)]);
            bench.plan.parallel = parallel.max_calls();
            let (end, watched) = ended(bench).await;
            assert_eq!((end.tally.failed_rows, end.stopped), (0, None));
            let lines = watched.log.lines();
            assert_eq!(
                with_prefix(&lines, "answers of").len(),
                usize::from(limits.is_limited()),
                "reported once"
            );
            assert_eq!(with_prefix(&lines, "budget for"), [""; 0]);
            let log = log.lock().unwrap();
            assert_eq!(log.len(), 600, "nothing is asked twice");
            assert!(log.iter().all(|(_, cap, _)| cap.is_some() == limits.is_limited()));
            assert!(log.iter().all(|(_, cap, _)| cap.is_none_or(|cap| cap >= 250)));
            times.push((model.most_at_once(), end.duration));
        }
        let [(without, plain), (with, limited)] = times[..] else { panic!("two runs") };
        assert_eq!(with, without, "{parallel:?}");
        assert!(limited <= plain + Duration::from_millis(1), "{limited:?} instead of {plain:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_is_asked_for_again_with_more_and_both_are_paid() {
    let (model, log) = needing(|prompt| if prompt == "150" { 40_000 } else { 50 });
    let mut bench = bench(300, model, dollars(1.0));
    bench.plan.worker.retry.retries = 0;
    let (end, watched) = ended(bench).await;
    assert_eq!((watched.outcomes(), end.stopped), (vec!["ok".to_owned(); 300], None));
    let log = log.lock().unwrap();
    let tries: Vec<_> = log.iter().filter(|(prompt, ..)| prompt == "150").collect();
    let caps: Vec<u64> = tries.iter().map(|(_, cap, _)| cap.unwrap_or(LONGEST)).collect();
    assert!((2..=5).contains(&caps.len()), "{caps:?}");
    assert!(caps.windows(2).all(|pair| pair[1] == (pair[0] * 4).min(LONGEST)), "{caps:?}");
    let used: u64 = log.iter().map(|(.., output)| output * 4_500_000 + 20 * 750_000).sum();
    let summed_up = end.tally.summary_numbers(end.duration).cost.usd;
    assert_eq!((end.spent.cost.pico(), summed_up.pico()), (used, used), "every answer is paid for");
    assert_eq!(end.tally.calls, log.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nothing_of_ours_cut_fails_as_ever() {
    // The model stops long before its limit, for example because its context is full; or its own limit is too low.
    for (needs, calls) in [(100, 1), (1_000_000, 6)] {
        let calls_made = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&calls_made);
        let model = Arc::new(Acting::new(move |call| {
            *counted.lock().unwrap() += 1;
            let output = needs.min(call.cap.unwrap_or(LONGEST));
            let usage = TokenUsage { input: 20, output, ..TokenUsage::default() };
            (
                seconds(0.1),
                Ok(Completion { usage: Some(usage), finish: FinishReason::Length, ..fake_answer("par") }),
            )
        }));
        let (_, watched) = ended(bench(1, model, dollars(2.0))).await;
        assert_eq!(watched.outcomes(), ["OutputTruncated"]);
        let made = *calls_made.lock().unwrap();
        assert!(made <= calls && (made > 1) == (calls > 1), "{made} calls for {needs} tokens");
    }
}

#[tokio::test(start_paused = true)]
async fn thoughts_that_fill_the_limit_are_asked_for_again_however_they_are_counted() {
    for apart in [false, true] {
        let model = Arc::new(Acting::new(move |call: Call<'_>| {
            let (needed, most) = (10_000, call.cap.unwrap_or(LONGEST));
            let reasoning = needed.min(most);
            let output = if apart { 0 } else { reasoning };
            let usage = TokenUsage { input: 20, output, reasoning, ..TokenUsage::default() };
            let finish = if needed > most { FinishReason::Length } else { FinishReason::Complete };
            (seconds(0.3), Ok(Completion { usage: Some(usage), finish, ..fake_answer("thought of") }))
        }));
        let (end, watched) = ended(bench(1, model, dollars(1.0))).await;
        assert_eq!((watched.outcomes(), end.tally.calls), (vec!["ok".to_owned()], 2), "{apart}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_users_limit_cut_is_not_asked_for_again() {
    let (model, log) = needing(|_| 1_000_000);
    let mut bench = bench(1, model, dollars(1.0));
    bench.endpoint().output_caps = None;
    bench.endpoint().max_output = Some(500);
    let (_, watched) = ended(bench).await;
    assert_eq!(watched.outcomes(), ["OutputTruncated"]);
    assert_eq!(log.lock().unwrap().len(), 1);
    assert_eq!(with_prefix(&watched.log.lines(), "answers of"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn every_budget_is_kept_and_every_run_ends_however_answers_vary() {
    for (step, limit) in [0.000_5, 0.004, 0.01, 0.03, 0.1, 0.3, 0.7, 2.0].into_iter().enumerate() {
        let (model, log) = needing(move |prompt| {
            let number: u64 = prompt.parse().unwrap();
            [10, 300, 40, 5_000, 90, 2_000, 20_000][(number as usize * 31 + step) % 7]
        });
        let (end, watched) = ended(bench(150, model, dollars(limit))).await;
        let limit = Money::from_dollars(limit).unwrap();
        assert!(end.spent.cost <= limit, "{} of {limit}", end.spent.cost);
        let used: u64 = log.lock().unwrap().iter().map(|(.., output)| output * 4_500_000 + 15_000_000).sum();
        assert_eq!(end.spent.cost.pico(), used);
        match &end.stopped {
            None => assert_eq!(watched.outcomes(), ["ok"; 150]),
            Some(StopCause::Budget { worst, .. }) => {
                assert!(end.spent.cost + worst.cost > limit, "it would have fitted");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_bounds_the_pace_all_the_same_is_reported_once() {
    let (model, log) = needing(|_| 9_000);
    // Answers get at least 2 * 16,384 tokens, which cost $0.15: twenty fit.
    let (end, watched) = ended(bench(40, model.clone(), dollars(3.0))).await;
    assert_eq!((watched.outcomes(), end.stopped), (vec!["ok".to_owned(); 40], None));
    let lines = watched.log.lines();
    assert_eq!(with_prefix(&lines, "budget for").len(), 1, "{lines:?}");
    assert!(log.lock().unwrap().len() >= 40);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_ignores_limits_is_not_relied_on_any_more() {
    let caps = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&caps);
    let model = Arc::new(Acting::new(move |call: Call<'_>| {
        seen.lock().unwrap().push(call.cap);
        let usage = TokenUsage { input: 20, output: 20_000, ..TokenUsage::default() };
        (seconds(0.3), Ok(Completion { usage: Some(usage), ..fake_answer("on and on") }))
    }));
    let (end, watched) = ended(bench(100, model, dollars(4.0))).await;
    assert!(matches!(end.stopped, Some(StopCause::Budget { .. })), "{:?}", end.stopped);
    assert!(end.spent.cost <= Money::from_dollars(4.0).unwrap(), "{}", end.spent.cost);
    let lines = watched.log.lines();
    assert_eq!(with_prefix(&lines, "20000 of ").len(), 1, "{lines:?}");
    let caps = caps.lock().unwrap();
    let later = caps.iter().position(Option::is_none).unwrap();
    assert!(later <= 16 && caps[later..].iter().all(Option::is_none), "{caps:?}");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_ignores_the_users_limit_stops_the_run_before_the_budget_is_passed() {
    let model = Arc::new(Acting::new(|_: Call<'_>| {
        let usage = TokenUsage { input: 20, output: 600, ..TokenUsage::default() };
        (seconds(0.3), Ok(Completion { usage: Some(usage), ..fake_answer("on and on") }))
    }));
    let mut bench = bench(2_000, model, dollars(0.05));
    bench.endpoint().output_caps = None;
    bench.endpoint().max_output = Some(100);
    let (end, watched) = ended(bench).await;
    assert!(matches!(end.stopped, Some(StopCause::Budget { .. })), "{:?}", end.stopped);
    assert!(end.spent.cost <= Money::from_dollars(0.05).unwrap(), "{}", end.spent.cost);
    assert_eq!(with_prefix(&watched.log.lines(), "600 of 100").len(), 1, "{:?}", watched.log.lines());
}

#[tokio::test(start_paused = true)]
async fn a_row_that_needs_much_is_not_passed_by_for_ever() {
    let (model, log) = needing(|prompt| if prompt == "100" { 100_000 } else { 400 });
    let (end, watched) = ended(bench(2_000, model, dollars(5.0))).await;
    assert_eq!((end.tally.failed_rows, end.stopped), (0, None));
    let log = log.lock().unwrap();
    let last = log.iter().rposition(|(prompt, ..)| prompt == "100").unwrap();
    assert!(last < log.len() - 500, "it was call {last} of {}", log.len());
    assert_eq!(watched.numbers().len(), 2_000);
}

#[tokio::test(start_paused = true)]
async fn what_a_row_may_spend_limits_its_answers_too() {
    let (model, log) = needing(|prompt| if prompt == "2" { 60_000 } else { 50 });
    let mut bench = bench(3, model, BudgetLimits::default());
    bench.plan.worker.row_budget = dollars(0.1);
    let (end, watched) = ended(bench).await;
    assert_eq!(watched.outcomes(), ["ok", "RowLimit", "ok"]);
    assert_eq!(end.stopped, None);
    let spent = |row: &str| -> u64 {
        let log = log.lock().unwrap();
        log.iter()
            .filter(|(prompt, ..)| prompt == row)
            .map(|(.., output)| output * 4_500_000 + 15_000_000)
            .sum()
    };
    assert!(spent("2") > 0 && spent("2") <= 100_000_000_000, "{}", spent("2"));
    assert_eq!(with_prefix(&watched.log.lines(), "answers of"), ["answers of 5120 tokens, None calls"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_and_a_model_that_stands_in_keep_the_limit_and_grow_it_alike() {
    let failing = Arc::new(Acting::new(|_| (seconds(0.1), Err(broken()))));
    let (standing_in, log) = needing(|_| 30_000);
    let mut bench = bench(1, standing_in.clone(), dollars(1.0));
    let settings = paced(RunPaceSettings { max_outage: Duration::ZERO, ..SHARE });
    bench.plan.worker.retry.retries = 1;
    bench.row_worker().model_roles[0].endpoints =
        shared(vec![capped("down", failing.clone(), settings), capped("other", standing_in, settings)]);
    let (_, watched) = ended(bench).await;
    assert_eq!((watched.outcomes(), failing.times().len()), (vec!["ok".to_owned()], 2));
    let log = log.lock().unwrap();
    let (first, last) = (log.first().unwrap(), log.last().unwrap());
    assert!(first.1.is_some() && first.2 < 30_000 && last.2 == 30_000, "{log:?}");
}
