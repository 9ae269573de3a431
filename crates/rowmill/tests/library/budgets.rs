//! `max_cost` and `max_total_tokens`: Langroid compares a total over all models and batches of the process
//! after each step, so that every item still makes a call and a batch can be over before it starts.
//! Here a batch counts only its own spending, and a call that could exceed the limit is not sent.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rowmill::{
    Batch, BatchFailureCause, BudgetLimits, Money, Price, PriceConfig, ReturnNone, RowErrorKind, RunNotice,
    StopCause, TokenPrices,
};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript, SimulatorStats};

use crate::kit::{At, MODEL, accounts, ask};

const ITEMS: u64 = 40;

/// Tokens for about ten items: a call uses 18, and its worst case is some 650.
const LIMIT: u64 = 900;

fn priced_provider() -> Simulator {
    let dollar = Money::from_pico(1_000_000_000);
    let tokens =
        TokenPrices { input: dollar, cached: dollar, cache_write: dollar, output: dollar, reasoning: dollar };
    let script =
        SimulatorScript::new().answer_prompts(|prompt, _| SimulatedAnswer::Text(format!("{prompt:.<64}")));
    Simulator::start_blocking(script.price(Price { tokens, long: None, batch_percent: None }))
}

fn dollars(amount: f64) -> Money {
    Money::from_dollars(amount).unwrap()
}

fn batch(simulator: &Simulator) -> Batch<usize> {
    Batch::over(0..ITEMS as usize).prompt(ask).worker(MODEL).at(simulator).priced().concurrency(4)
}

fn tokens(stats: &SimulatorStats) -> u64 {
    stats.input_tokens + stats.output_tokens
}

#[tokio::test]
async fn max_cost_is_never_passed_and_items_beyond_it_are_not_begun() {
    let simulator = priced_provider();
    let limit = dollars(LIMIT as f64 / 1e3);
    let error = batch(&simulator).max_cost(limit).run().await.unwrap_err();
    let BatchFailureCause::Stopped(StopCause::Budget { spent, worst }) = error.cause() else {
        unreachable!("{error:?}")
    };
    assert!(spent.cost <= limit && spent.cost + worst.cost > limit, "{spent:?} {worst:?}");
    assert!(error.to_string().starts_with("the batch ended early: $0."), "{error}");
    let stats = simulator.stats();
    assert!(stats.cost_usd.unwrap() <= limit, "{stats:?}");
    let report = error.report().unwrap();
    assert_eq!(report.cost, stats.cost_usd.unwrap());
    let (ok, failed, cancelled, not_run) = accounts(report, ITEMS);
    assert_eq!((ok, failed, cancelled), (stats.requests, 0, 0));
    assert!(ok > 1 && not_run > 1, "{ok} {not_run}");
    assert_eq!(error.partial().iter().flatten().count() as u64, ok);
}

#[tokio::test]
async fn max_cost_counts_this_batch_only() {
    let simulator = priced_provider();
    let mut counts = Vec::new();
    for _ in 0..2 {
        let results = batch(&simulator)
            .max_cost(dollars(LIMIT as f64 / 1e3))
            .on_failure(ReturnNone)
            .run()
            .await
            .unwrap();
        assert!(matches!(results.report.stopped, Some(StopCause::Budget { .. })));
        assert_eq!(results.items.len() as u64, ITEMS);
        counts.push(accounts(&results.report, ITEMS));
    }
    assert_eq!(counts[0], counts[1]);
}

#[tokio::test]
async fn max_cost_that_is_enough_changes_nothing() {
    let simulator = priced_provider();
    let results = batch(&simulator).max_cost(dollars(100.0)).run().await.unwrap();
    assert_eq!((results.report.ok, results.report.stopped), (ITEMS, None));
}

#[tokio::test]
async fn max_cost_counts_the_earlier_runs_of_a_ledger() {
    let (simulator, folder) = (priced_provider(), tempfile::tempdir().unwrap());
    let ledger = || rowmill::LedgerOptions::resume(folder.path());
    let limit = dollars(LIMIT as f64 / 1e3);
    let first =
        batch(&simulator).max_cost(limit).ledger(ledger()).on_failure(ReturnNone).run().await.unwrap();
    let again =
        batch(&simulator).max_cost(limit).ledger(ledger()).on_failure(ReturnNone).run().await.unwrap();
    assert_eq!((again.report.kept, again.report.ok), (first.report.ok, first.report.ok));
    assert_eq!(again.report.spent, first.report.spent);
    assert_eq!(simulator.stats().requests, first.report.ok);
    let more =
        batch(&simulator).max_cost(dollars(LIMIT as f64 * 1.2 / 1e3)).ledger(ledger()).on_failure(ReturnNone);
    let more = more.run().await.unwrap();
    assert!(more.report.ok > first.report.ok);
    assert!(simulator.stats().cost_usd.unwrap() <= dollars(LIMIT as f64 * 1.2 / 1e3));
}

#[tokio::test]
async fn max_tokens_are_never_passed_and_items_beyond_them_are_not_begun() {
    let simulator = priced_provider();
    let error = batch(&simulator).max_total_tokens(LIMIT).run().await.unwrap_err();
    assert!(matches!(error.cause(), BatchFailureCause::Stopped(StopCause::Budget { .. })), "{error:?}");
    let stats = simulator.stats();
    assert!(tokens(&stats) <= LIMIT, "{stats:?}");
    let (ok, failed, cancelled, not_run) = accounts(error.report().unwrap(), ITEMS);
    assert_eq!((ok, failed, cancelled), (stats.requests, 0, 0));
    assert!(ok > 1 && not_run > 1, "{ok} {not_run}");
}

#[tokio::test]
async fn max_tokens_count_this_batch_only() {
    let simulator = priced_provider();
    batch(&simulator).run().await.unwrap();
    let spent = tokens(&simulator.stats());
    let results = batch(&simulator).max_total_tokens(LIMIT).on_failure(ReturnNone).run().await.unwrap();
    assert!(results.report.ok > 1);
    assert!(tokens(&simulator.stats()) - spent <= LIMIT);
}

#[tokio::test]
async fn max_tokens_that_not_even_one_call_fits_into_send_nothing() {
    let simulator = priced_provider();
    let results = batch(&simulator).max_total_tokens(20).on_failure(ReturnNone).run().await.unwrap();
    assert_eq!(accounts(&results.report, ITEMS), (0, 0, 0, ITEMS));
    assert_eq!(results.items, vec![None; ITEMS as usize]);
    assert_eq!(simulator.stats().requests, 0);
}

#[tokio::test]
async fn max_tokens_of_an_item_are_that_items_failure() {
    let simulator = priced_provider();
    let prompt = |item: &usize| if *item == 1 { "long ".repeat(200) } else { ask(item) };
    let batch = Batch::over(0..3_usize).prompt(prompt).worker(MODEL).at(&simulator);
    let batch = batch.item_budget(BudgetLimits { cost: None, tokens: Some(LIMIT) });
    let results = batch.on_failure(rowmill::ReturnError).run().await.unwrap();
    assert_eq!(results.items[1].as_ref().unwrap_err().kind(), Some(RowErrorKind::RowLimit));
    assert_eq!((results.report.ok, simulator.stats().requests), (2, 2));
}

#[tokio::test]
async fn max_cost_without_a_bound_on_answers_leaves_items_side_by_side_and_says_what_was_chosen() {
    let simulator = priced_provider();
    let events = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&events);
    let price = PriceConfig { input: 1.0, output: 4.0, max_output: Some(100_000), ..PriceConfig::default() };
    let results = Batch::over(0..ITEMS as usize)
        .prompt(ask)
        .worker("generic.m")
        .at(&simulator)
        .prices(BTreeMap::from([("generic.m".to_owned(), price)]))
        // The longest possible answer costs forty cents.
        .max_cost(dollars(0.3))
        .concurrency(16)
        .on_notice(move |notice| hear.lock().unwrap().push(notice))
        .run()
        .await
        .unwrap();
    assert_eq!((results.report.ok, results.report.stopped), (ITEMS, None));
    let events = events.lock().unwrap();
    let [RunNotice::Info(text)] = &events[..] else { unreachable!("{events:?}") };
    assert!(text.starts_with("answers are capped at ") && text.contains("fit the budget"), "{text}");
}

#[tokio::test]
async fn a_budget_that_slows_a_batch_down_is_reported_in_the_words_of_programs() {
    let simulator = priced_provider();
    let events = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&events);
    let batch = batch(&simulator).max_cost(dollars(2.0)).on_failure(ReturnNone);
    batch.on_notice(move |notice| hear.lock().unwrap().push(notice)).run().await.unwrap();
    let events = events.lock().unwrap();
    let [RunNotice::Info(text)] = &events[..] else { unreachable!("{events:?}") };
    assert!(text.starts_with("the budget allows only "), "{text}");
    assert!(text.contains("a higher `Batch::max_cost` to run faster"), "{text}");
}

#[tokio::test]
async fn max_cost_is_not_used_up_by_answers_that_were_paid_for_before() {
    let (simulator, folder) = (priced_provider(), tempfile::tempdir().unwrap());
    let first = batch(&simulator).cache(folder.path()).run().await.unwrap();
    let again =
        batch(&simulator).cache(folder.path()).max_cost(dollars(LIMIT as f64 / 1e3)).run().await.unwrap();
    assert_eq!((again.items, again.report.cost), (first.items, Money::ZERO));
    assert_eq!(simulator.stats().requests, ITEMS);
}
