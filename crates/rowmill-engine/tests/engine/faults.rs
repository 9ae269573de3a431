//! A run whose providers fail.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::agent::{AgentDefinition, AgentGraph, AgentKind, AgentSettings};
use rowmill_core::limits::{CallParallelism, MinuteLimits, RunPaceSettings};
use rowmill_core::ports::Model;
use rowmill_engine::{CallGateSettings, ModelEndpoint, OnQuota, StopCause, execute_run};
use rowmill_testkit::{FakeModel, busy_failure, fake_answer, fake_failure};
use rowmill_types::{CallError, CallFailure, ProblemCode};

use crate::acting::{Acting, broken, exhausted, refused, seconds};
use crate::support::{Bench, ENDPOINT, SHARE, endpoint, model_role, paced, shared};

/// A provider that is down during some seconds and otherwise answers after one.
fn down(between: std::ops::Range<f64>, error: fn() -> CallError) -> Arc<Acting> {
    Arc::new(Acting::new(move |call| {
        let is_down = between.contains(&call.at.as_secs_f64());
        if is_down { (seconds(0.1), Err(error())) } else { (seconds(1.0), Ok(fake_answer("fine"))) }
    }))
}

fn no_connection() -> CallError {
    fake_failure(CallFailure::Connect)
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_half_a_minute_fails_no_row_and_is_reported() {
    for error in [busy_failure, broken, no_connection] {
        let model = down(20.0..50.0, error);
        let mut bench = Bench::new(300, model.clone());
        bench.plan.parallel = 8;
        bench.plan.worker.retry.retries = 2;
        let (plan, watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        assert_eq!((watched.outcomes(), end.stopped), (vec!["ok".to_owned(); 300], None));
        let text = format!("model waits for the provider to come back: {}", error().message);
        assert!(watched.log.lines().contains(&text), "{text}");
        let asked_in_vain = model.times().iter().filter(|at| (21.0..50.0).contains(*at)).count();
        assert!(asked_in_vain <= 8, "it is asked now and then, one call at a time: {asked_in_vain}");
        assert!(end.duration < seconds(100.0), "{:?}", end.duration);
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_calls_begin_with_one_and_double() {
    let model = down(20.0..50.0, busy_failure);
    let mut bench = Bench::new(600, model.clone());
    bench.plan.parallel = 16;
    let settings = paced(RunPaceSettings { parallel: CallParallelism::AtMost(16), ..SHARE });
    bench.row_worker().model_roles[0].endpoints = shared(vec![endpoint("model", model.clone(), settings)]);
    let (plan, _) = bench.split();
    execute_run(plan).await.unwrap();
    let times = model.times();
    let back = times.iter().copied().find(|at| *at >= 50.0).unwrap();
    let in_second = |second: usize| {
        let from = back + second as f64 - 0.05;
        times.iter().filter(|at| (from..from + 1.0).contains(*at)).count()
    };
    let counts: Vec<usize> = (0..6).map(in_second).collect();
    assert_eq!(counts[..4], [1, 2, 4, 8], "{counts:?}");
    assert!(counts[5] <= 16, "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_lets_nothing_through_for_too_long_stops_the_run_and_fails_no_row() {
    for error in [busy_failure, no_connection, || refused(None), || refused(Some(7.0))] {
        let model = down(20.0..1e9, error);
        let mut bench = Bench::new(300, model.clone());
        let settings = paced(RunPaceSettings { max_outage: seconds(120.0), ..SHARE });
        bench.row_worker().model_roles[0].endpoints =
            shared(vec![endpoint("model", model.clone(), settings)]);
        let (plan, watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        let Some(StopCause::Problem(problem)) = end.stopped else { panic!("{:?}", end.stopped) };
        assert_eq!(problem.code, ProblemCode::ProviderDown);
        assert!(watched.outcomes().iter().all(|outcome| outcome == "ok"), "{:?}", watched.outcomes());
        // Until most calls are refused, refused rows free their slots for others.
        let released = watched.log.rows("released").len();
        assert!((4..=32).contains(&released), "{released}");
        assert!(end.duration >= seconds(140.0) && end.duration < seconds(175.0), "{:?}", end.duration);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_when_the_longest_outage_is_over_though_the_next_try_is_later() {
    // Attempts are made 1, 3, 7, 15 … seconds after the provider went down.
    for patience in [4.0, 9.0, 40.0] {
        let model = down(20.0..1e9, busy_failure);
        let mut bench = Bench::new(300, model.clone());
        let settings = paced(RunPaceSettings { max_outage: seconds(patience), ..SHARE });
        bench.row_worker().model_roles[0].endpoints =
            shared(vec![endpoint("model", model.clone(), settings)]);
        let (plan, _watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        let Some(StopCause::Problem(problem)) = end.stopped else { panic!("{:?}", end.stopped) };
        assert_eq!(problem.code, ProblemCode::ProviderDown);
        let waited = end.duration.as_secs_f64() - 20.0;
        assert!((patience..patience + 1.5).contains(&waited), "{patience}: {waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_asks_for_more_time_than_it_is_given_does_not_get_it() {
    const TEN_DAYS: f64 = 864_000.0;
    // All rows at once, and a single row.
    for rows in [300, 1] {
        let model = down(if rows == 1 { 0.0..1e9 } else { 20.0..1e9 }, || refused(Some(TEN_DAYS)));
        let mut bench = Bench::new(rows, model.clone());
        let settings = paced(RunPaceSettings { max_outage: seconds(40.0), ..SHARE });
        bench.row_worker().model_roles[0].endpoints =
            shared(vec![endpoint("model", model.clone(), settings)]);
        let (plan, _watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        let Some(StopCause::Problem(problem)) = end.stopped else { panic!("{:?}", end.stopped) };
        assert_eq!(problem.code, ProblemCode::ProviderDown);
        assert!(end.duration < seconds(200.0), "{rows}: {:?}", end.duration);
    }
    // A failure of the provider is retried as long as there are attempts.
    let model = down(0.0..1e9, || CallError { retry_after: Some(seconds(TEN_DAYS)), ..busy_failure() });
    let mut bench = Bench::new(1, model.clone());
    let settings = paced(RunPaceSettings { max_outage: seconds(40.0), ..SHARE });
    bench.row_worker().model_roles[0].endpoints = shared(vec![endpoint("model", model, settings)]);
    let (plan, _watched) = bench.split();
    assert!(execute_run(plan).await.unwrap().duration < seconds(400.0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_can_be_added_to_no_moment_is_longer_than_any_patience_and_no_panic() {
    // What providers ask for is read with a bound; a model of the program's own may say anything.
    let for_ever = |error: CallError| CallError { retry_after: Some(Duration::MAX), ..error };
    let errors: [fn() -> CallError; 3] = [|| refused(None), busy_failure, exhausted];
    for (failed, rows) in errors.into_iter().flat_map(|failed| [(failed, 300), (failed, 1)]) {
        let model = Arc::new(Acting::new(move |_| (seconds(0.1), Err(for_ever(failed())))));
        let mut bench = Bench::new(rows, model.clone());
        let share = RunPaceSettings { max_outage: seconds(40.0), ..SHARE };
        let settings = CallGateSettings { share, on_quota: OnQuota::Stop };
        bench.row_worker().model_roles[0].endpoints = shared(vec![endpoint("model", model, settings)]);
        let (plan, watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        let outcomes = watched.outcomes();
        assert!(!outcomes.contains(&"InternalError".to_owned()), "{}: {outcomes:?}", failed());
        assert!(end.duration < seconds(400.0), "{}: {:?}", failed(), end.duration);
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_every_call_and_is_not_waited_for_costs_rows_their_tries() {
    for (retries, error) in [(0, refused(None)), (2, refused(Some(3.0)))] {
        // If rows waited for ever, all of them would be answered in the end.
        let model = Arc::new(Acting::new(move |call| match call.before {
            ..1_000 => (seconds(0.1), Err(error.clone())),
            _ => (seconds(0.1), Ok(fake_answer("fine"))),
        }));
        let mut bench = Bench::new(20, model.clone());
        let settings = paced(RunPaceSettings { max_outage: Duration::ZERO, ..SHARE });
        bench.row_worker().model_roles[0].endpoints = shared(vec![endpoint("model", model, settings)]);
        bench.plan.worker.retry.retries = retries;
        let (plan, watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        assert_eq!((watched.outcomes(), end.stopped), (vec!["RateLimited".to_owned(); 20], None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_asks_for_more_than_a_minute_costs_tries_if_outages_are_not_waited_for() {
    const TEN_DAYS: f64 = 864_000.0;
    let busy_for_long = || CallError { retry_after: Some(seconds(TEN_DAYS)), ..busy_failure() };
    let refused_for_long = || refused(Some(TEN_DAYS));
    let errors: [fn() -> CallError; 2] = [busy_for_long, refused_for_long];
    for (error, kind) in errors.into_iter().zip(["ServerError", "RateLimited"]) {
        let model = down(20.0..1e9, error);
        let mut bench = Bench::new(100, model.clone());
        let settings = paced(RunPaceSettings { max_outage: Duration::ZERO, ..SHARE });
        bench.row_worker().model_roles[0].endpoints = shared(vec![endpoint("model", model, settings)]);
        bench.plan.worker.retry.retries = 1;
        let (plan, watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        assert_eq!(end.stopped, None);
        let failed = watched.envelopes().into_iter().filter(|envelope| envelope["ok"] == false);
        let failed: Vec<_> = failed.map(|envelope| envelope["error"].clone()).collect();
        assert!(failed.len() >= 10, "{failed:?}");
        assert!(failed.iter().all(|error| error["type"] == kind && error["attempts"] == 2), "{failed:?}");
        assert!(end.duration < seconds(120.0), "{kind}: {:?}", end.duration);
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_lets_calls_through_costs_no_try_even_if_outages_are_not_waited_for() {
    let model = Arc::new(Acting::new(|call| match call.at.as_secs_f64() % 10.0 {
        used @ 5.0.. => (seconds(0.1), Err(refused(Some(10.0 - used)))),
        _ => (seconds(0.1), Ok(fake_answer("fine"))),
    }));
    let mut bench = Bench::new(1_000, model.clone());
    let settings = paced(RunPaceSettings { max_outage: Duration::ZERO, ..SHARE });
    bench.row_worker().model_roles[0].endpoints = shared(vec![endpoint("model", model, settings)]);
    bench.plan.worker.retry.retries = 0;
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert!(watched.outcomes().iter().all(|outcome| outcome == "ok"), "{:?}", watched.outcomes());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_was_there_is_not_waited_for() {
    let model = down(0.0..1e9, no_connection);
    let mut bench = Bench::new(100, model.clone());
    bench.plan.parallel = 8;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    let Some(StopCause::Problem(problem)) = end.stopped else { panic!("{:?}", end.stopped) };
    assert_eq!(problem.code, ProblemCode::Unreachable);
    assert!(end.duration < seconds(30.0), "{:?}", end.duration);
    assert!(
        watched.outcomes().iter().all(|outcome| outcome == "ConnectionError"),
        "{:?}",
        watched.outcomes()
    );
}

#[tokio::test(start_paused = true)]
async fn a_row_that_breaks_the_provider_fails_alone_after_its_tries() {
    let model = Arc::new(Acting::new(|call| match call.prompt {
        "7" => (seconds(0.1), Err(broken())),
        _ => (seconds(0.5), Ok(fake_answer("fine"))),
    }));
    let mut bench = Bench::new(100, model.clone());
    bench.plan.worker.retry.retries = 3;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    let outcomes = watched.outcomes();
    assert_eq!((outcomes[6].as_str(), end.tally.failures.len()), ("ServerError", 1));
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "ok").count(), 99);
    assert_eq!(watched.envelopes()[6]["error"]["attempts"], 4);
    assert!(!watched.log.lines().iter().any(|line| line.contains("is down")));
}

fn two_endpoints(rows: usize, first: Arc<dyn Model>, second: Arc<dyn Model>) -> Bench {
    let mut bench = Bench::new(rows, first.clone());
    bench.row_worker().model_roles[0].endpoints =
        shared(vec![endpoint("first", first, ENDPOINT), endpoint("second", second, ENDPOINT)]);
    bench
}

#[tokio::test(start_paused = true)]
async fn another_model_is_asked_when_the_tries_of_a_row_are_used_up() {
    let first = Arc::new(Acting::new(|call| match call.prompt {
        "3" | "9" => (seconds(0.1), Err(broken())),
        "5" => (seconds(0.1), Err(fake_failure(CallFailure::Refused))),
        _ => (seconds(0.5), Ok(fake_answer("fine"))),
    }));
    let second = Arc::new(FakeModel::default().script("9", vec![Err(broken())]));
    let mut bench = two_endpoints(20, first.clone(), second.clone());
    bench.plan.worker.retry.retries = 1;
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    let outcomes = watched.outcomes();
    assert_eq!([&outcomes[2], &outcomes[4], &outcomes[8]], ["ok", "BadRequest", "ServerError"]);
    let prompts: Vec<String> = second.seen().iter().map(|call| call.messages[0].text.clone()).collect();
    let of = |row: &str| prompts.iter().filter(|prompt| *prompt == row).count();
    assert_eq!((prompts.len(), of("3"), of("9")), (3, 1, 2), "it has tries of its own");
    assert_eq!(watched.envelopes()[8]["error"]["attempts"], 4);
}

#[tokio::test(start_paused = true)]
async fn a_request_has_one_key_for_all_its_tries_and_another_one_at_another_model() {
    let first = Arc::new(FakeModel::default().script("1", vec![Err(broken()), Err(broken())]));
    let second = Arc::new(FakeModel::default());
    let mut bench = Bench::new(1, first.clone());
    let named =
        |name: &str, model| ModelEndpoint { identity: name.into(), ..endpoint(name, model, ENDPOINT) };
    bench.row_worker().model_roles[0].endpoints =
        shared(vec![named("first", first.clone()), named("second", second.clone())]);
    bench.plan.worker.retry.retries = 1;
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"]);
    let keys = |model: &FakeModel| model.seen().into_iter().map(|call| call.key).collect::<Vec<_>>();
    let (tries, instead) = (keys(&first), keys(&second));
    assert_eq!((tries.len(), instead.len()), (2, 1));
    assert_eq!(tries[0], tries[1]);
    assert_ne!(tries[0], instead[0], "its body names another model");
}

#[tokio::test(start_paused = true)]
async fn another_model_takes_over_at_once_while_a_provider_is_down_and_hands_back_after() {
    for error in [busy_failure, no_connection] {
        let first = down(20.0..60.0, error);
        let second = down(0.0..0.0, busy_failure);
        let bench = two_endpoints(400, first.clone(), second.clone());
        let (plan, watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        assert_eq!((watched.outcomes(), end.stopped), (vec!["ok".to_owned(); 400], None));
        // Four concurrent calls of a second each, whichever model answers them.
        assert!(end.duration < seconds(112.0), "{:?}", end.duration);
        let taken_over = second.times();
        assert!(taken_over.iter().all(|at| (20.0..95.0).contains(at)), "{taken_over:?}");
        assert!(taken_over.len() > 120, "{}", taken_over.len());
        assert!(first.times().iter().filter(|at| **at > 95.0).count() > 10, "the first is asked again");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_row_cuts_its_calls_and_leaves_no_wait_that_is_longer() {
    let model = Arc::new(Acting::new(|call| match call.prompt {
        "1" => (seconds(30.0), Ok(fake_answer("late"))),
        "2" if call.at < seconds(5.0) => (seconds(6.0), Err(broken())),
        "2" => (seconds(30.0), Ok(fake_answer("late"))),
        "3" => (seconds(1.0), Err(CallError { retry_after: Some(seconds(60.0)), ..busy_failure() })),
        "4" => (seconds(1.0), Err(CallError { retry_after: Some(seconds(4.0)), ..busy_failure() })),
        _ => (seconds(9.0), Ok(fake_answer("in time"))),
    }));
    let mut bench = Bench::new(5, model.clone());
    bench.plan.parallel = 5;
    bench.plan.worker.row_timeout = Some(seconds(10.0));
    bench.plan.worker.retry.retries = 5;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["Timeout", "Timeout", "ServerError", "ServerError", "ok"]);
    assert_eq!(watched.envelopes()[3]["error"]["attempts"], 2, "waits between tries count");
    assert!(end.duration < seconds(35.0), "{:?}", end.duration);
    let message = watched.envelopes()[0]["error"]["message"].to_string();
    assert!(message.contains("10 s") && message.contains("`row_timeout`"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn what_one_agent_of_a_row_works_counts_while_another_waits_for_its_provider() {
    let agent = |name: &str, kind| AgentDefinition { name: name.into(), description: String::new(), kind };
    let alone = || AgentKind::Agent(AgentSettings { max_iterations: 9, ..AgentSettings::default() });
    let together = AgentKind::Parallel { fan_out: vec![1, 2], fan_in: Some(3), include_request: false };
    let agents = vec![
        agent("all", together),
        agent("slow", alone()),
        agent("refused", alone()),
        agent("last", alone()),
    ];
    let slow = Acting::new(|_| (seconds(8.0), Ok(fake_answer("slow"))));
    let refused = Acting::new(|call| match call.before {
        0 => (seconds(9.0), Err(refused(Some(1.0)))),
        _ => (seconds(1.0), Ok(fake_answer("after all"))),
    });
    let last = Acting::new(|_| (seconds(5.0), Ok(fake_answer("last"))));
    let mut bench = Bench::new(1, Arc::new(FakeModel::default()));
    let row_worker = bench.row_worker();
    row_worker.graph = Arc::new(AgentGraph::new(agents, Vec::new(), 0, None).unwrap());
    row_worker.model_roles = [slow, refused, last]
        .map(|model| model_role(vec![endpoint("model", Arc::new(model), ENDPOINT)]))
        .into();
    bench.plan.worker.row_timeout = Some(seconds(12.0));
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["Timeout"], "eight seconds and one leave three for the last");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_ticket_is_not_the_time_of_a_row() {
    let model = Arc::new(Acting::new(|call| match call.before {
        0 => (seconds(1.0), Err(refused(Some(90.0)))),
        _ => (seconds(1.0), Ok(fake_answer("fine"))),
    }));
    let mut bench = Bench::new(20, model.clone());
    bench.plan.worker.row_timeout = Some(seconds(5.0));
    let rates = MinuteLimits { requests: Some(12), ..MinuteLimits::default() };
    let settings = paced(RunPaceSettings { rates, ..SHARE });
    bench.row_worker().model_roles[0].endpoints = shared(vec![endpoint("model", model.clone(), settings)]);
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"; 20]);
    assert!(end.duration > seconds(150.0), "{:?}", end.duration);
}

#[tokio::test(start_paused = true)]
async fn refusals_that_say_nothing_are_not_the_time_of_a_row_either() {
    let model = Arc::new(Acting::new(|call| match call.at.as_secs() {
        0..60 => (seconds(0.01), Err(refused(None))),
        _ => (seconds(1.0), Ok(fake_answer("fine"))),
    }));
    let mut bench = Bench::new(8, model);
    bench.plan.worker.row_timeout = Some(seconds(3.0));
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"; 8]);
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_on_when_a_run_is_dropped() {
    let model = Arc::new(FakeModel::default().hold_answers());
    let (plan, watched) = Bench::new(50, model.clone()).split();
    let log = watched.log.clone();
    tokio::select! {
        end = execute_run(plan) => panic!("{end:?}"),
        () = log.until(|log| log.rows("taken").len() == 4) => {}
    }
    assert_eq!(Arc::strong_count(&model), 1, "nobody holds the model any more");
    model.release();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((model.seen().len(), watched.numbers().len()), (4, 0));
}
