//! Runs that share the knowledge about an account, each with settings of its own.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::limits::{CallParallelism, MinuteLimits, RunPaceSettings};
use rowmill_engine::{
    CallGateSettings, EndpointKey, OnQuota, RunOutcome, RunSetup, SharedLimits, StopCause, execute_run,
};
use rowmill_testkit::fake_answer;
use rowmill_types::ProblemCode;

use crate::acting::{Acting, exhausted, seconds};
use crate::support::{Bench, SHARE, paced};

/// A run over this many rows that calls the shared model.
fn plan(limits: &SharedLimits, model: &Arc<Acting>, rows: usize, settings: CallGateSettings) -> RunSetup {
    let mut bench = Bench::new(rows, model.clone());
    let key = EndpointKey { provider: "one".into(), account: "mine".into(), model: "model".into() };
    bench.endpoint().gate = limits.for_run().gate(key, settings);
    bench.plan.parallel = 1_000;
    bench.plan
}

fn answering(after: f64) -> Arc<Acting> {
    Arc::new(Acting::new(move |_| (seconds(after), Ok(fake_answer("fine")))))
}

fn at_most(calls: usize) -> CallGateSettings {
    paced(RunPaceSettings { parallel: CallParallelism::AtMost(calls), ..SHARE })
}

fn per_minute(requests: u64) -> CallGateSettings {
    paced(RunPaceSettings { rates: MinuteLimits { requests: Some(requests), ..SHARE.rates }, ..SHARE })
}

async fn both(one: RunSetup, other: RunSetup) -> (RunOutcome, RunOutcome) {
    let (one, other) = tokio::join!(Box::pin(execute_run(one)), Box::pin(execute_run(other)));
    (one.unwrap(), other.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_run_with_one_call_at_a_time_holds_up_no_other() {
    let (limits, model) = (SharedLimits::default(), answering(10.0));
    let (slow, fast) = (plan(&limits, &model, 20, at_most(1)), plan(&limits, &model, 200, at_most(50)));
    let (slow, fast) = both(slow, fast).await;
    assert_eq!((slow.tally.processed_rows, fast.tally.processed_rows), (20, 200));
    assert!(slow.duration >= seconds(200.0), "{:?}", slow.duration);
    assert!(fast.duration < seconds(80.0), "{:?}", fast.duration);
    assert!(model.most_at_once() <= 51, "{}", model.most_at_once());
}

#[tokio::test(start_paused = true)]
async fn what_a_run_reported_is_forgotten_when_it_has_ended() {
    let (limits, model) = (SharedLimits::default(), answering(0.1));
    let slow = paced(RunPaceSettings { parallel: CallParallelism::AtMost(1), ..per_minute(60).share });
    let first = execute_run(plan(&limits, &model, 20, slow)).await.unwrap();
    let second = execute_run(plan(&limits, &model, 600, at_most(100))).await.unwrap();
    assert!(first.duration >= seconds(14.0), "{:?}", first.duration);
    assert!(second.duration < seconds(2.0), "{:?}", second.duration);
}

#[tokio::test(start_paused = true)]
async fn of_two_limits_on_one_account_the_tighter_holds_while_both_runs_go_on() {
    let (limits, model) = (SharedLimits::default(), answering(0.1));
    let (tight, loose) =
        (plan(&limits, &model, 30, per_minute(60)), plan(&limits, &model, 600, per_minute(6_000)));
    let (tight, loose) = both(tight, loose).await;
    let while_both = model.times().into_iter().filter(|at| *at <= tight.duration.as_secs_f64()).count();
    let most = tight.duration.as_secs_f64() + 6.0;
    assert!(while_both as f64 <= most, "{while_both} calls in {:?}", tight.duration);
    // Once it is alone, it runs at its own pace.
    let alone = loose.duration.saturating_sub(tight.duration);
    assert!(alone < seconds(10.0), "{alone:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_stops_without_quota_does_not_wait_behind_one_that_waits_for_it() {
    let limits = SharedLimits::default();
    let model = Arc::new(Acting::new(|call| match call.at.as_secs() {
        5..1_000 => (seconds(1.0), Err(exhausted())),
        _ => (seconds(1.0), Ok(fake_answer("fine"))),
    }));
    let waits = plan(&limits, &model, 200, at_most(4));
    let stops = plan(&limits, &model, 200, CallGateSettings { on_quota: OnQuota::Stop, ..at_most(4) });
    let (waits, stops) = both(waits, stops).await;
    assert_eq!((waits.tally.processed_rows, waits.stopped), (200, None));
    let Some(StopCause::Problem(problem)) = stops.stopped else { panic!("{:?}", stops.stopped) };
    assert_eq!(problem.code, ProblemCode::QuotaExhausted);
    assert!(stops.duration < seconds(60.0), "{:?}", stops.duration);
}

#[tokio::test(start_paused = true)]
async fn every_run_waits_for_a_provider_that_is_down_as_long_as_it_wants_to() {
    let limits = SharedLimits::default();
    let model = Arc::new(Acting::new(|call| match call.at.as_secs() {
        5..1_000 => (seconds(1.0), Err(rowmill_testkit::fake_failure(rowmill_types::CallFailure::Server))),
        _ => (seconds(1.0), Ok(fake_answer("fine"))),
    }));
    let patient = plan(&limits, &model, 200, at_most(4));
    let hasty = paced(RunPaceSettings { max_outage: Duration::from_secs(30), ..at_most(4).share });
    let hasty = plan(&limits, &model, 200, hasty);
    let (patient, hasty) = both(patient, hasty).await;
    assert_eq!((patient.tally.processed_rows, patient.stopped), (200, None));
    let Some(StopCause::Problem(problem)) = hasty.stopped else { panic!("{:?}", hasty.stopped) };
    assert_eq!(problem.code, ProblemCode::ProviderDown);
    assert!(hasty.duration < seconds(100.0), "{:?}", hasty.duration);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_waits_for_a_ticket_keeps_its_place_whatever_else_its_run_wakes_up_for() {
    const BEFORE: f64 = 300.0;
    let limits = SharedLimits::default();
    // The calls of five minutes are answered within half a minute, so that its run wakes up several times a second.
    let busy = Arc::new(Acting::new(|call| {
        let end = BEFORE + call.at.as_secs_f64() / 10.0;
        (seconds((end - call.at.as_secs_f64()).max(0.0)), Ok(fake_answer("fine")))
    }));
    let quiet = answering(500.0);
    let settings = per_minute(60);
    let (one, other) = (plan(&limits, &busy, 400, settings), plan(&limits, &quiet, 400, settings));
    both(one, other).await;
    let sent_then =
        |model: &Acting| model.times().into_iter().filter(|at| (BEFORE..BEFORE + 30.0).contains(at)).count();
    let (of_busy, of_quiet) = (sent_then(&busy), sent_then(&quiet));
    assert!(of_busy >= 12 && of_quiet >= 12, "{of_busy} and {of_quiet}: they take turns");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_no_outage_is_held_up_by_none_that_another_run_met() {
    let limits = SharedLimits::default();
    let down = || rowmill_testkit::fake_failure(rowmill_types::CallFailure::Server);
    let model = Arc::new(Acting::new(move |call| match call.at.as_secs() {
        5..1_000 => (seconds(1.0), Err(down())),
        _ => (seconds(1.0), Ok(fake_answer("fine"))),
    }));
    let mut patient = plan(&limits, &model, 200, at_most(4));
    let hasty = paced(RunPaceSettings { max_outage: Duration::ZERO, ..at_most(4).share });
    let mut hasty = plan(&limits, &model, 40, hasty);
    hasty.worker.retry.retries = 1;
    for plan in [&mut patient, &mut hasty] {
        plan.stop_rules.deadline = Some(seconds(5_000.0));
    }
    let (patient, hasty) = both(patient, hasty).await;
    assert_eq!((patient.tally.processed_rows, patient.stopped), (200, None));
    assert_eq!((hasty.tally.processed_rows, hasty.stopped), (40, None));
    assert!(hasty.duration < seconds(200.0), "{:?}", hasty.duration);
}
