//! The effect of providers' limits on a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use rowmill_core::limits::{CallParallelism, MinuteLimits, RunPaceSettings};
use rowmill_core::ports::Model;
use rowmill_engine::{CallGateSettings, EndpointKey, OnQuota, SharedLimits, StopCause, execute_run};
use rowmill_testkit::{fake_answer, fake_failure};
use rowmill_types::{
    CallError, CallFailure, Completion, ProblemCode, RateLimitState, ReportedRateLimits, Request,
};

use crate::acting::{Acting, exhausted, refused, seconds};
use crate::support::{Bench, ENDPOINT, SHARE, endpoint, paced, shared, with_endpoint};

#[tokio::test(start_paused = true)]
async fn a_refusal_costs_no_try_and_is_waited_out_as_long_as_the_provider_asks() {
    let model = Arc::new(Acting::new(|call| match call.at.as_secs() {
        0..40 => (seconds(0.1), Err(refused(Some(40.0)))),
        _ => (seconds(0.1), Ok(fake_answer("fine"))),
    }));
    let mut bench = Bench::new(6, model.clone());
    bench.plan.worker.retry.retries = 0;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"; 6]);
    assert!(end.duration >= seconds(40.0) && end.duration < seconds(42.0), "{:?}", end.duration);
    assert!(model.times().iter().all(|at| *at < 0.1 || *at >= 40.0), "{:?}", model.times());
    let message = "model waits for the provider, which asked for a pause";
    assert!(watched.log.lines().contains(&message.to_owned()));
}

/// A model on a machine with resources for a limited number of concurrent calls.
#[derive(Debug)]
struct Narrow {
    room: usize,
    now: AtomicUsize,
}

impl Narrow {
    fn new(room: usize) -> Arc<Self> {
        Arc::new(Self { room, now: AtomicUsize::new(0) })
    }
}

impl Model for Narrow {
    fn complete<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(async move {
            let before = self.now.fetch_add(1, Ordering::SeqCst);
            if before < self.room {
                tokio::time::sleep(seconds(1.0)).await;
            }
            self.now.fetch_sub(1, Ordering::SeqCst);
            if before < self.room {
                Ok(fake_answer("fine"))
            } else {
                Err(fake_failure(CallFailure::TooManyOpenFiles))
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_this_machine_has_no_room_for_wait_for_others_and_are_no_outage() {
    let model = Narrow::new(10);
    let settings = paced(RunPaceSettings { parallel: CallParallelism::AtMost(300), ..SHARE });
    let mut bench = Bench::new(200, model.clone());
    bench.row_worker().model_roles[0].endpoints = shared(vec![endpoint("model", model, settings)]);
    bench.plan.parallel = 300;
    bench.plan.worker.retry.retries = 0;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!((watched.outcomes(), end.stopped), (vec!["ok".to_owned(); 200], None));
    assert!(end.duration < seconds(30.0), "ten at a time: {:?}", end.duration);
    assert!(!watched.log.lines().iter().any(|line| line.contains("to come back")));
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_room_for_a_single_call_stops_the_run_and_says_so() {
    let (plan, _) = Bench::new(20, Narrow::new(0)).split();
    let end = execute_run(plan).await.unwrap();
    let Some(StopCause::Problem(problem)) = end.stopped else { panic!("{:?}", end.stopped) };
    assert_eq!(problem.code, ProblemCode::OpenFiles);
    assert!(problem.hint.unwrap().contains("ulimit -n"));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_asks_for_no_time_at_all_is_waited_for_all_the_same() {
    let model = Arc::new(Acting::new(|call| match call.at.as_secs() {
        0..60 => (seconds(0.0), Err(refused(Some(0.0)))),
        _ => (seconds(0.1), Ok(fake_answer("fine"))),
    }));
    let (plan, watched) = Bench::new(2, model.clone()).split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"; 2]);
    assert!(model.times().len() < 30, "{:?}", model.times());
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_used_up_pauses_the_run_and_says_why_and_no_row_fails() {
    let model = Arc::new(Acting::new(|call| match call.at.as_secs() {
        5..100 => (seconds(1.0), Err(exhausted())),
        _ => (seconds(1.0), Ok(fake_answer("fine"))),
    }));
    let mut bench = Bench::new(50, model.clone());
    bench.plan.worker.retry.retries = 0;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!((watched.outcomes(), end.stopped), (vec!["ok".to_owned(); 50], None));
    assert!(watched.log.lines().contains(&"model waits for quota: no credit is left".to_owned()));
    let asked_in_vain = model.times().iter().filter(|at| (7.0..100.0).contains(*at)).count();
    assert!(asked_in_vain <= 2, "one call at a time sees whether there is quota: {:?}", model.times());
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_used_up_stops_the_run_if_that_is_wanted_and_rows_are_given_back() {
    let model = Arc::new(Acting::new(|call| match call.before {
        0..10 => (seconds(1.0), Ok(fake_answer("fine"))),
        _ => (seconds(1.0), Err(exhausted())),
    }));
    let share = RunPaceSettings { parallel: CallParallelism::AtMost(4), ..SHARE };
    let settings = CallGateSettings { on_quota: OnQuota::Stop, share };
    let (plan, watched) = with_endpoint(Bench::new(50, model.clone()), &model, settings).split();
    let end = execute_run(plan).await.unwrap();
    let Some(StopCause::Problem(problem)) = end.stopped else { panic!("{:?}", end.stopped) };
    assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::QuotaExhausted, "no credit is left"));
    assert_eq!((watched.outcomes(), end.tally.failures.len()), (vec!["ok".to_owned(); 10], 0));
    let mut released = watched.log.rows("released");
    released.sort_unstable();
    assert_eq!(released, [11, 12]);
}

/// An answer that reports a limit of requests per minute.
fn telling(limit: u64, remaining: u64) -> Completion {
    let window =
        RateLimitState { limit, remaining, reset: seconds((limit - remaining) as f64 * 60.0 / limit as f64) };
    let rates = ReportedRateLimits { requests: Some(window), ..ReportedRateLimits::default() };
    Completion { rate_limits: Some(Box::new(rates)), ..fake_answer("fine") }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_must_wait_does_not_slow_another_of_the_same_provider() {
    let limits = SharedLimits::default();
    let slow = Arc::new(Acting::new(|_| (seconds(0.1), Ok(telling(6, 0)))));
    let fast = Arc::new(Acting::new(|_| (seconds(0.1), Ok(fake_answer("fine")))));
    let mut plans = [("slow", slow.clone()), ("fast", fast.clone())].map(|(name, model)| {
        let mut bench = Bench::new(40, model.clone());
        let key = EndpointKey { provider: "one".into(), account: "mine".into(), model: name.into() };
        bench.endpoint().gate = limits.gate(key, ENDPOINT);
        bench.plan
    });
    plans[0].parallel = 1;
    let [waits, goes] = plans;
    let (waits, goes) = tokio::join!(execute_run(waits), execute_run(goes));
    assert_eq!([waits, goes].map(|end| end.unwrap().tally.processed_rows), [40, 40]);
    let took = |model: &Acting| model.times().last().unwrap() - model.times()[0];
    assert!(took(&slow) > 300.0 && took(&fast) < 5.0, "{} {}", took(&slow), took(&fast));
}

#[tokio::test(start_paused = true)]
async fn runs_that_share_a_model_share_its_limits() {
    let limits = SharedLimits::default();
    let model = Arc::new(Acting::new(|_| (seconds(0.1), Ok(fake_answer("fine")))));
    let rates = MinuteLimits { requests: Some(60), ..MinuteLimits::default() };
    let plans = [1, 2].map(|_| {
        let mut bench = Bench::new(60, model.clone());
        let key = EndpointKey { provider: "one".into(), account: "mine".into(), model: "model".into() };
        bench.endpoint().gate = limits.gate(key, paced(RunPaceSettings { rates, ..SHARE }));
        bench.plan
    });
    let [first, second] = plans.map(execute_run);
    let (first, second) = tokio::join!(first, second);
    assert_eq!([first, second].map(|end| end.unwrap().tally.processed_rows), [60, 60]);
    let times = model.times();
    for (call, at) in times.iter().enumerate() {
        assert!(call as f64 <= at + 5.0, "call {call} came at {at}: more than a burst ahead of the limit");
    }
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_at_first_are_in_flight_when_they_are_slow_and_more_help() {
    let model = Arc::new(Acting::new(|_| (seconds(10.0), Ok(fake_answer("fine")))));
    let settings = paced(RunPaceSettings { parallel: CallParallelism::Auto, ..SHARE });
    let (plan, watched) = with_endpoint(Bench::new(600, model.clone()), &model, settings).split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.numbers().len(), 600);
    assert!(model.most_at_once() >= 128, "{}", model.most_at_once());
    assert!(end.duration < seconds(120.0), "{:?}", end.duration);
}

#[tokio::test(start_paused = true)]
async fn few_calls_are_sent_before_the_first_answer_and_then_as_many_as_are_allowed() {
    let model = Arc::new(Acting::new(|_| (seconds(10.0), Ok(fake_answer("fine")))));
    let settings = paced(RunPaceSettings { parallel: CallParallelism::AtMost(50), ..SHARE });
    let (plan, _) = with_endpoint(Bench::new(200, model.clone()), &model, settings).split();
    execute_run(plan).await.unwrap();
    let at = |time: f64| model.times().iter().filter(|at| (*at - time).abs() < 0.01).count();
    assert_eq!([at(0.0), at(10.0), at(20.0)], [8, 50, 50]);
    assert_eq!(model.most_at_once(), 50);
}

#[tokio::test(start_paused = true)]
async fn the_first_call_goes_alone_where_it_fills_the_cache_for_the_others() {
    let model = Arc::new(Acting::new(|call| match call.before {
        0 => (seconds(3.0), Err(refused(Some(1.0)))),
        _ => (seconds(3.0), Ok(fake_answer("fine"))),
    }));
    let settings = paced(RunPaceSettings { priming: true, parallel: CallParallelism::AtMost(5), ..SHARE });
    let (plan, watched) = with_endpoint(Bench::new(11, model.clone()), &model, settings).split();
    execute_run(plan).await.unwrap();
    let times: Vec<u64> = model.times().iter().map(|at| at.round() as u64).collect();
    assert_eq!(times, [0, 4, 7, 7, 7, 7, 7, 10, 10, 10, 10, 10], "alone until one was answered");
    let message = "model waits for the first call, which fills the provider's cache";
    assert!(watched.log.lines().contains(&message.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_larger_than_the_whole_limit_fails_instead_of_waiting_for_ever() {
    let model = Arc::new(Acting::new(|call| {
        let window = RateLimitState { limit: 100, remaining: 100, reset: seconds(0.0) };
        let rates =
            Some(Box::new(ReportedRateLimits { tokens: Some(window), ..ReportedRateLimits::default() }));
        match call.prompt.len() {
            0..400 => (seconds(0.1), Ok(Completion { rate_limits: rates, ..fake_answer("fine") })),
            _ => (seconds(0.1), Err(rowmill_types::CallError { rate_limits: rates, ..refused(None) })),
        }
    }));
    let texts = ["a", "b", "c"]
        .map(|text| format!("{{\"p\":\"{}\"}}", text.repeat(if text == "b" { 900 } else { 1 })));
    let bench = Bench::over(rowmill_testkit::FakeDataset::from_texts(texts), model.clone());
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok", "RateLimited", "ok"]);
    assert_eq!((end.stopped, model.times().len()), (None, 3));
}
