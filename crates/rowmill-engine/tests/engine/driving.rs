//! The loop with fakes on every port, in virtual time, which advances only when nothing else happens.

use std::sync::Arc;
use std::time::Duration;

use crate::acting::Acting;
use crate::support::{Bench, disk_full, kept_line};
use futures_util::future::BoxFuture;
use rowmill_core::ports::Model;
use rowmill_core::record::EnvelopeHead;
use rowmill_core::retry;
use rowmill_engine::{StopCause, execute_run};
use rowmill_testkit::{FakeDataset, FakeModel, busy_failure, fake_answer, fake_failure};
use rowmill_types::{CallError, CallFailure, Completion, ProblemCode, Request, RowErrorKind, RowId};
use tokio::time::Instant;

type Outcome = Result<Completion, CallError>;

/// A model whose answers are a function of the prompt, with a wait before each.
#[derive(Debug)]
struct ByPrompt(fn(&str) -> (Duration, Outcome));

impl Model for ByPrompt {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let (wait, result) = (self.0)(&request.messages[0].text);
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            result
        })
    }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[tokio::test(start_paused = true)]
async fn waits_between_tries_double_and_the_budget_of_a_row_is_kept() {
    let model = Arc::new(FakeModel::default().script("1", vec![Err(busy_failure())]));
    let mut bench = Bench::new(2, model.clone());
    bench.plan.worker.retry = retry::RetryPolicy { retries: 3, base: seconds(8), cap: seconds(60) };
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ServerError", "ok"]);
    assert_eq!(watched.envelopes()[0]["error"]["attempts"], 4);
    let waits = watched.log.rows("wait");
    let bounds = [(4_000, 8_000), (8_000, 16_000), (16_000, 32_000)];
    assert_eq!(waits.len(), 3);
    for (wait, (least, most)) in waits.iter().zip(bounds) {
        assert!((least..=most).contains(wait), "{waits:?}");
    }
    assert!(end.duration >= Duration::from_millis(waits.iter().sum()), "{:?}", end.duration);
    let attempts: Vec<u32> = model
        .seen()
        .iter()
        .filter(|call| call.key.starts_with("run-1-1-"))
        .map(|call| call.attempt)
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4], "the key stays the same, so that a provider can see the repeat");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_provider_asks_for_is_waited() {
    let asked = CallError { retry_after: Some(seconds(120)), ..busy_failure() };
    let model = FakeModel::default().script("1", vec![Err(asked), Ok(fake_answer("fine"))]);
    let (plan, watched) = Bench::new(1, Arc::new(model)).split();
    let began = Instant::now();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"]);
    assert!(began.elapsed() >= seconds(120));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_cut_and_tried_again() {
    let model = Arc::new(FakeModel::default().delay(seconds(100)));
    let mut bench = Bench::new(1, model.clone());
    bench.plan.worker.timeout = seconds(30);
    bench.plan.worker.retry.retries = 2;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["Timeout"]);
    assert!(watched.envelopes()[0]["error"]["message"].as_str().unwrap().contains("30 s"));
    assert_eq!((model.seen().len(), end.tally.unknown_calls), (3, 3), "each may have been billed");
    assert!(end.duration >= seconds(90) && end.duration < seconds(100), "{:?}", end.duration);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_not_tried_again() {
    let model = Arc::new(FakeModel::default().script("1", vec![Err(fake_failure(CallFailure::Refused))]));
    let (plan, watched) = Bench::new(1, model.clone()).split();
    execute_run(plan).await.unwrap();
    assert_eq!((watched.outcomes(), model.seen().len()), (vec!["BadRequest".to_owned()], 1));
}

#[tokio::test(start_paused = true)]
async fn a_slow_first_row_holds_back_the_output_and_nothing_else() {
    let model = ByPrompt(|prompt| {
        let wait = if prompt == "1" { seconds(1_000) } else { Duration::from_millis(10) };
        (wait, Ok(fake_answer(prompt)))
    });
    let mut bench = Bench::new(100, Arc::new(model));
    let arrival = bench.sink("telemetry", false);
    bench.plan.sinks.on_arrival.push(arrival);
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.numbers(), (1..=100).collect::<Vec<_>>());
    let arrived = watched.log.rows("telemetry");
    assert_eq!((arrived.len(), arrived.last()), (100, Some(&1)), "telemetry does not wait for its turn");
    assert!(watched.log.place("ledger 100") < watched.log.place("output 1"));
}

#[tokio::test(start_paused = true)]
async fn no_more_rows_are_in_flight_than_allowed() {
    let model = Arc::new(FakeModel::default().delay(seconds(1)));
    let mut bench = Bench::new(100, model.clone());
    bench.plan.parallel = 7;
    let (plan, _) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(model.most_at_once(), 7);
    assert!(end.duration >= seconds(15) && end.duration < seconds(16), "{:?}", end.duration);
}

#[tokio::test(start_paused = true)]
async fn a_row_is_in_the_ledger_before_it_is_sent_and_before_it_is_published() {
    let (plan, watched) = Bench::new(50, Arc::new(FakeModel::default())).split();
    execute_run(plan).await.unwrap();
    for row in 1..=50 {
        let places = ["taken", "ledger", "output"].map(|word| watched.log.place(&format!("{word} {row}")));
        assert!(places.is_sorted(), "row {row}: {places:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rows_in_flight_are_finished_when_as_many_failed_as_are_allowed() {
    let model = ByPrompt(|prompt| match prompt {
        "2" | "3" => (seconds(1), Err(fake_failure(CallFailure::Refused))),
        _ => (seconds(5), Ok(fake_answer("fine"))),
    });
    let mut bench = Bench::new(50, Arc::new(model));
    bench.plan.stop_rules.max_errors = Some(2);
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(end.stopped, Some(StopCause::MaxErrors(2)));
    assert_eq!(watched.outcomes(), ["ok", "BadRequest", "BadRequest", "ok"]);
}

#[tokio::test(start_paused = true)]
async fn rows_that_cannot_be_asked_count_as_failed_at_once() {
    let dataset = FakeDataset::from_texts(["[]"; 200]);
    let mut bench = Bench::over(dataset, Arc::new(FakeModel::default()));
    bench.plan.stop_rules.max_errors = Some(3);
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(end.stopped, Some(StopCause::MaxErrors(3)));
    assert_eq!(watched.outcomes(), ["InvalidRow"; 3]);
}

#[tokio::test(start_paused = true)]
async fn no_row_is_taken_when_no_error_is_allowed() {
    let model = Arc::new(FakeModel::default());
    let mut bench = Bench::new(5, model.clone());
    bench.plan.stop_rules.max_errors = Some(0);
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!((end.stopped, model.seen().len()), (Some(StopCause::MaxErrors(0)), 0));
    assert!(watched.numbers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_a_wait_before_a_retry_and_lets_calls_finish() {
    let model = ByPrompt(|prompt| match prompt {
        "1" => (Duration::ZERO, Err(CallError { retry_after: Some(seconds(3_600)), ..busy_failure() })),
        _ => (seconds(60), Ok(fake_answer("fine"))),
    });
    let bench = Bench::new(50, Arc::new(model));
    let stop = bench.plan.stop.clone();
    let (plan, watched) = bench.split();
    let log = watched.log.clone();
    let (end, ()) = tokio::join!(execute_run(plan), async {
        log.until(|log| log.rows("taken").len() == 4 && log.rows("wait").len() == 1).await;
        stop.drain();
    });
    let end = end.unwrap();
    assert_eq!(end.stopped, Some(StopCause::Interrupted));
    assert_eq!(watched.outcomes(), ["ok", "ok", "ok"]);
    assert_eq!(watched.log.rows("released"), [1], "it did not fail: it was not tried to the end");
    assert!(end.duration < seconds(61), "{:?}", end.duration);
}

#[tokio::test(start_paused = true)]
async fn an_abort_cuts_calls_and_records_their_rows_as_unknown() {
    let bench = Bench::new(50, Arc::new(FakeModel::default().hold_answers()));
    let stop = bench.plan.stop.clone();
    let (plan, watched) = bench.split();
    let log = watched.log.clone();
    let (end, ()) = tokio::join!(execute_run(plan), async {
        log.until(|log| log.rows("taken").len() == 4).await;
        stop.abort();
    });
    let end = end.unwrap();
    assert_eq!((end.stopped, end.unknown_rows), (Some(StopCause::Interrupted), 4));
    assert_eq!((end.tally.calls, end.tally.unknown_calls), (4, 4), "each may have been billed");
    assert_eq!(watched.outcomes(), ["Interrupted"; 4]);
    assert_eq!(watched.numbers(), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn an_abort_gives_rows_back_for_which_nothing_is_under_way_and_tells_the_failed_tries_of_others() {
    let model = Acting::new(|call| match (call.prompt, call.before) {
        ("1", _) => (Duration::ZERO, Err(CallError { retry_after: Some(seconds(9_999)), ..busy_failure() })),
        ("2", ..4) => (Duration::ZERO, Err(busy_failure())),
        _ => (seconds(9_999), Ok(fake_answer("never"))),
    });
    let bench = Bench::new(50, Arc::new(model));
    let stop = bench.plan.stop.clone();
    let (plan, watched) = bench.split();
    let log = watched.log.clone();
    let (end, ()) = tokio::join!(execute_run(plan), async {
        log.until(|log| log.rows("wait").len() == 2).await;
        tokio::time::sleep(seconds(10)).await;
        stop.abort();
    });
    let end = end.unwrap();
    assert_eq!((watched.log.rows("released"), watched.numbers()), (vec![1], vec![2, 3, 4]));
    let failed: Vec<_> = end.tally.failed_calls.into_iter().collect();
    assert_eq!(failed, [(RowErrorKind::ServerError, 1), (RowErrorKind::Interrupted, 3)]);
    assert_eq!((end.unknown_rows, end.tally.unknown_calls), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_model_is_the_failure_of_that_row_alone() {
    let model = ByPrompt(|prompt| {
        assert!(prompt != "2", "the model broke");
        (Duration::ZERO, Ok(fake_answer("fine")))
    });
    let (plan, watched) = Bench::new(4, Arc::new(model)).split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!((watched.outcomes()[1].as_str(), end.stopped), ("InternalError", None));
    assert!(watched.envelopes()[1]["error"]["message"].as_str().unwrap().contains("the model broke"));
    assert_eq!(end.tally.failures, [(RowErrorKind::Internal, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_needed_its_reserve_drains_the_run_and_keeps_what_was_in_flight() {
    let mut bench = Bench::new(100, Arc::new(FakeModel::default().delay(seconds(1))));
    bench.plan.ledger = bench.ledger().trouble_at(3).open();
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(end.stopped, Some(StopCause::Problem(disk_full())));
    let taken = watched.log.rows("taken");
    assert!(taken.len() < 100, "no further rows are taken");
    assert_eq!(watched.numbers(), taken, "every row that was sent is recorded and published");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_or_published_that_the_ledger_could_not_take() {
    let model = Arc::new(FakeModel::default().delay(seconds(1)));
    let mut bench = Bench::new(100, model.clone());
    bench.plan.ledger = bench.ledger().fails_at(3).open();
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(end.stopped, Some(StopCause::Problem(disk_full())));
    assert_eq!(watched.numbers(), watched.log.rows("ledger"));
    assert_eq!(
        model.seen().len(),
        watched.log.rows("taken").len(),
        "a call that is not in the ledger is not made"
    );
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_stops_the_run_and_the_ledger_has_every_row_that_was_sent() {
    let mut bench = Bench::new(5_000, Arc::new(FakeModel::default().delay(seconds(1))));
    let broken = bench.sink("broken", true);
    bench.plan.sinks.in_input_order.push(broken);
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(end.stopped, Some(StopCause::Problem(disk_full())));
    let mut recorded = watched.log.rows("ledger");
    recorded.sort_unstable();
    assert_eq!(recorded, watched.log.rows("taken"));
    assert!(recorded.len() < 5_000, "the run went on without an output");
}

#[tokio::test(start_paused = true)]
async fn rows_that_the_ledger_has_are_published_in_their_places_without_a_call() {
    let model = Arc::new(FakeModel::default());
    let mut bench = Bench::new(5, model.clone());
    let ledger = bench.ledger();
    for number in [2, 4] {
        let span = ledger.holds(&kept_line(number));
        let head = EnvelopeHead {
            id: RowId::Number(number),
            number,
            ok: true,
            interrupted: false,
            stopped: false,
            outcome_unknown: false,
            number_stands_in: false,
        };
        bench.plan.resume.add_ended_row(&head, span);
    }
    bench.plan.ledger = ledger.open();
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.numbers(), [1, 2, 3, 4, 5]);
    assert_eq!(watched.envelopes()[3]["result"], "kept");
    assert_eq!((model.seen().len(), end.tally.skipped_rows, end.tally.processed_rows), (3, 2, 3));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_turn_beyond_memory_is_read_back_from_the_ledger() {
    let model = ByPrompt(|prompt| match prompt {
        "1" => (seconds(1_000), Ok(fake_answer("fine"))),
        _ => (Duration::ZERO, Ok(fake_answer(prompt.repeat(100_000)))),
    });
    let (plan, watched) = Bench::new(99, Arc::new(model)).split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.numbers(), (1..=99).collect::<Vec<_>>());
    assert_eq!(watched.envelopes()[98]["result"], "99".repeat(100_000));
    assert!(watched.log.lines().contains(&"read back".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_is_refused_stops_the_run_with_one_cause() {
    for (found, code) in [
        (CallFailure::Unauthorized, ProblemCode::Unauthorized),
        (CallFailure::UnknownModel, ProblemCode::UnknownModel),
        (CallFailure::UnknownPath, ProblemCode::UnknownModel),
    ] {
        let prompts = (1..=100).map(|number| number.to_string());
        let model = prompts.fold(FakeModel::default().delay(seconds(1)), |model, prompt| {
            model.script(prompt, vec![Err(fake_failure(found))])
        });
        let model = Arc::new(model);
        let (plan, watched) = Bench::new(100, model.clone()).split();
        let end = execute_run(plan).await.unwrap();
        assert!(matches!(end.stopped, Some(StopCause::Problem(problem)) if problem.code == code));
        assert_eq!((model.seen().len(), watched.numbers().len()), (4, 4));
    }
}

#[tokio::test(start_paused = true)]
async fn an_input_that_breaks_off_stops_the_run_after_the_rows_that_were_read() {
    let texts = (1..=10).map(|number| format!("{{\"p\":\"{number}\"}}"));
    let dataset = FakeDataset::from_texts(texts).failing_after(6, disk_full());
    let (plan, watched) = Bench::over(dataset, Arc::new(FakeModel::default().delay(seconds(1)))).split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(end.stopped, Some(StopCause::Problem(disk_full())));
    assert_eq!(watched.numbers(), [1, 2, 3, 4, 5, 6]);
}
