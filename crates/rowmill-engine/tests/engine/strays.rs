//! Calls that are occasionally refused while others are answered.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::limits::{CallParallelism, RunPaceSettings};
use rowmill_engine::execute_run;
use rowmill_testkit::fake_answer;
use xxhash_rust::xxh3::xxh3_64;

use crate::acting::{Acting, refused, seconds};
use crate::support::{Bench, SHARE, paced, with_endpoint};

/// A provider that refuses a share of the calls at random, like a gateway in front of several backends.
#[derive(Clone, Copy)]
struct Gateway {
    share: f64,
    retry_after: Option<f64>,
    parallel: CallParallelism,
    /// The duration of an answer, and of a refusal.
    answers: f64,
    refusals: f64,
}

/// The duration of 5,000 rows, and the maximum number of refusals of one row.
async fn five_thousand_rows(gateway: Gateway) -> (Duration, usize) {
    let Gateway { share, retry_after, parallel, answers, refusals } = gateway;
    let settings = paced(RunPaceSettings { parallel, ..SHARE });
    let model = Arc::new(Acting::new(move |call| {
        let draw = (xxh3_64(&call.before.to_le_bytes()) >> 11) as f64 / (1u64 << 53) as f64;
        match draw < share {
            true => (seconds(refusals), Err(refused(retry_after))),
            false => (seconds(answers), Ok(fake_answer("fine"))),
        }
    }));
    let mut bench = with_endpoint(Bench::new(5_000, model.clone()), &model, settings);
    bench.plan.worker.retry.retries = 0;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert!(watched.outcomes().iter().all(|outcome| outcome == "ok"), "a refusal fails no row");
    assert!(model.most_at_once() <= settings.share.parallel.max_calls());
    let mut calls = HashMap::new();
    model.calls().into_iter().for_each(|(_, prompt)| *calls.entry(prompt).or_insert(0) += 1);
    (end.duration, calls.into_values().max().unwrap_or(1) - 1)
}

#[tokio::test(start_paused = true)]
async fn five_thousand_rows_with_one_refusal_in_fifty_take_at_most_twice_the_time() {
    for parallel in [
        CallParallelism::AtMost(16),
        CallParallelism::AtMost(64),
        CallParallelism::AtMost(500),
        CallParallelism::Auto,
    ] {
        // Three seconds in total.
        let answers = parallel.max_calls().min(500) as f64 * 3.0 / 5_000.0;
        let gateway = Gateway { share: 0.0, retry_after: None, parallel, answers, refusals: 0.001 };
        let (without, _) = five_thousand_rows(gateway).await;
        for retry_after in [None, Some(1.0)] {
            let (with, _) = five_thousand_rows(Gateway { share: 0.02, retry_after, ..gateway }).await;
            assert!(with <= without * 2, "{parallel:?}, {retry_after:?}: {with:?}, without {without:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn with_up_to_four_refusals_in_ten_calls_a_run_takes_at_most_three_times_as_long() {
    let (chosen, found) = (CallParallelism::AtMost(64), CallParallelism::AutoUpTo(64));
    let all = [0.1, 0.2, 0.3, 0.4];
    for (parallel, refusals, shares) in [
        (chosen, 0.001, &all[..]),
        (chosen, 0.2, &all[3..]),
        (found, 0.001, &all[3..]),
        (found, 0.2, &all[2..]),
    ] {
        let gateway = Gateway { share: 0.0, retry_after: Some(1.0), parallel, answers: 0.2, refusals };
        let (without, _) = five_thousand_rows(gateway).await;
        for &share in shares {
            let (with, _) = five_thousand_rows(Gateway { share, ..gateway }).await;
            let case = format!("{share} refused after {refusals} s, {parallel:?}");
            assert!(with <= without * 3, "{case}: {with:?}, without {without:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_cost_a_fast_run_the_waits_of_the_row_that_is_refused_most_often() {
    let parallel = CallParallelism::AtMost(64);
    let gateway = Gateway { share: 0.0, retry_after: Some(1.0), parallel, answers: 0.02, refusals: 0.001 };
    let (without, _) = five_thousand_rows(gateway).await;
    for share in [0.1, 0.2, 0.3, 0.4] {
        let (with, times) = five_thousand_rows(Gateway { share, ..gateway }).await;
        let waits = seconds(1.2) * u32::try_from(times).unwrap();
        assert!(with <= without * 3 + waits, "{share}: {with:?}, without {without:?}, {times} refusals");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_stands_alone_and_asks_for_a_minute_holds_up_nobody_else() {
    let model = Arc::new(Acting::new(|call| match call.before {
        100 => (seconds(0.001), Err(refused(Some(60.0)))),
        _ => (seconds(0.1), Ok(fake_answer("fine"))),
    }));
    let settings = paced(RunPaceSettings { parallel: CallParallelism::AtMost(1), ..SHARE });
    let (plan, watched) = with_endpoint(Bench::new(300, model.clone()), &model, settings).split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"; 300]);
    assert!(end.duration < seconds(72.0), "{:?}", end.duration);
    let times = model.times();
    assert!(times[299] < 31.0, "all others were asked meanwhile, though there is one place: {}", times[299]);
    assert!(times[300] >= 70.0, "the row waits as long as it was asked to: {}", times[300]);
}

#[tokio::test(start_paused = true)]
async fn when_most_calls_are_refused_all_wait_as_long_as_the_provider_asks() {
    for at_once in [8, 500] {
        let model = Arc::new(Acting::new(|call| match call.at.as_secs() {
            10..40 => (seconds(0.01), Err(refused(Some(30.0)))),
            _ => (seconds(1.0), Ok(fake_answer("fine"))),
        }));
        let settings = paced(RunPaceSettings { parallel: CallParallelism::AtMost(at_once), ..SHARE });
        let rows = at_once * 12;
        let (plan, watched) = with_endpoint(Bench::new(rows, model.clone()), &model, settings).split();
        execute_run(plan).await.unwrap();
        assert_eq!(watched.outcomes(), vec!["ok"; rows]);
        let in_vain = model.times().iter().filter(|at| (10.0..40.0).contains(*at)).count();
        assert!(in_vain <= 25 + at_once, "{in_vain} calls were sent while all were refused");
    }
}
