//! The rules by which a run ends before its input does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use rowmill_core::ports::AnswerChecker;
use rowmill_core::validate::ResultSchema;
use rowmill_engine::{ErrorRateLimit, RunOutcome, StopCause, execute_run};
use rowmill_testkit::{fake_answer, fake_failure};
use rowmill_types::{AnswerVerdict, CallFailure};
use tokio::time::Duration;

use crate::acting::{Acting, broken, refused, seconds};
use crate::support::{Bench, Watched};

#[tokio::test(start_paused = true)]
async fn a_share_of_failed_rows_stops_the_run_once_enough_rows_have_ended() {
    // Every second row fails, starting with the first.
    let model = Arc::new(Acting::new(|call| match call.before % 2 {
        0 => (seconds(1.0), Err(fake_failure(CallFailure::Refused))),
        _ => (seconds(1.0), Ok(fake_answer("fine"))),
    }));
    for (after, ended) in [(20, 20_u64), (1, 1)] {
        let mut bench = Bench::new(100, model.clone());
        bench.plan.parallel = 1;
        bench.plan.stop_rules.max_error_rate = Some(ErrorRateLimit { share: 0.2, after });
        let (plan, watched) = bench.split();
        let end = execute_run(plan).await.unwrap();
        let failed = ended.div_ceil(2);
        assert_eq!(end.stopped, Some(StopCause::ErrorRate { failed, ended, allowed: 0.2 }));
        assert_eq!(watched.numbers().len() as u64, ended);
    }
}

#[tokio::test(start_paused = true)]
async fn a_share_that_is_allowed_does_not_stop_the_run() {
    let model = Arc::new(Acting::new(|call| match call.prompt.parse::<u64>().unwrap() % 5 {
        0 => (seconds(1.0), Err(fake_failure(CallFailure::Refused))),
        _ => (seconds(1.0), Ok(fake_answer("fine"))),
    }));
    let mut bench = Bench::new(100, model);
    bench.plan.parallel = 1;
    bench.plan.stop_rules.max_error_rate = Some(ErrorRateLimit { share: 0.2, after: 5 });
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!((end.stopped, watched.numbers().len()), (None, 100));
}

#[tokio::test(start_paused = true)]
async fn the_first_result_cancels_the_rest() {
    let model = Arc::new(Acting::new(|call| match call.prompt {
        "1" => (seconds(1.0), Err(fake_failure(CallFailure::Refused))),
        "4" | "5" => (seconds(2.0), Ok(fake_answer("fine"))),
        _ => (seconds(60.0), Ok(fake_answer("late"))),
    }));
    let mut bench = Bench::new(50, model.clone());
    bench.plan.stop_rules.first_result = true;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(end.stopped, Some(StopCause::FirstResult));
    assert_eq!(watched.outcomes(), ["BadRequest", "Interrupted", "Interrupted", "ok", "Interrupted"]);
    assert!(end.duration < seconds(3.0), "{:?}", end.duration);
}

#[tokio::test(start_paused = true)]
async fn a_run_sends_nothing_after_its_deadline_and_finishes_what_is_in_flight() {
    let model = Arc::new(Acting::new(|call| match call.prompt {
        "2" => (seconds(1.0), Err(broken())),
        "3" => (seconds(1.0), Err(refused(Some(500.0)))),
        _ => (seconds(7.0), Ok(fake_answer("fine"))),
    }));
    let mut bench = Bench::new(100, model.clone());
    bench.plan.worker.retry.base = seconds(100.0);
    bench.plan.stop_rules.deadline = Some(seconds(10.0));
    let (plan, watched) = bench.split();
    // Keeps the clock from passing the deadline while the first rows are being read.
    let begun = watched.log.until(|log| !log.rows("taken").is_empty());
    let (end, ()) = tokio::join!(execute_run(plan), begun);
    let end = end.unwrap();
    assert_eq!(end.stopped, Some(StopCause::Deadline(seconds(10.0))));
    assert!(model.times().iter().all(|at| *at <= 10.0), "{:?}", model.times());
    assert!(watched.outcomes().iter().all(|outcome| outcome == "ok"), "{:?}", watched.outcomes());
    let mut released = watched.log.rows("released");
    released.sort_unstable();
    assert_eq!(released, [2, 3], "neither has failed for good");
    assert!(end.duration < seconds(17.1), "{:?}", end.duration);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_was_answered_may_be_corrected_while_the_run_drains() {
    let model = Arc::new(Acting::new(|call| match (call.prompt, call.before) {
        ("1", 0) => (seconds(5.0), Ok(fake_answer("no object"))),
        _ => (seconds(5.0), Ok(fake_answer("{}"))),
    }));
    let mut bench = Bench::new(20, model.clone());
    bench.plan.parallel = 1;
    bench.with_schema(ResultSchema::parse(r#"{"type":"object"}"#, "test").unwrap());
    let stop = bench.plan.stop.clone();
    let (plan, watched) = bench.split();
    let log = watched.log.clone();
    let (end, ()) = tokio::join!(execute_run(plan), async {
        log.until(|log| !log.rows("taken").is_empty()).await;
        stop.drain();
    });
    assert_eq!(end.unwrap().stopped, Some(StopCause::Interrupted));
    assert_eq!((watched.outcomes(), model.times()), (vec!["ok".to_owned()], vec![0.0, 5.0]));
}

/// Checks every answer for this long.
#[derive(Debug)]
struct SlowCheck {
    takes: Duration,
    verdict: AnswerVerdict,
    begun: AtomicUsize,
}

impl AnswerChecker for SlowCheck {
    fn check<'a>(&'a self, _: &'a str) -> BoxFuture<'a, AnswerVerdict> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            tokio::time::sleep(self.takes).await;
            self.verdict.clone()
        })
    }
}

/// A run of four concurrent rows that is aborted while the answers to the odd ones are being checked and those to the
/// even ones are pending; also returns how many calls were sent.
#[expect(clippy::unwrap_used, reason = "what fails here fails the test")]
async fn aborted_during_checks(takes: f64, verdict: AnswerVerdict) -> (RunOutcome, Watched, usize) {
    let model = Arc::new(Acting::new(|call| match call.prompt.parse::<u64>().unwrap() % 2 {
        1 => (seconds(1.0), Ok(fake_answer("{}"))),
        _ => (seconds(9_999.0), Ok(fake_answer("{}"))),
    }));
    let check = Arc::new(SlowCheck { takes: seconds(takes), verdict, begun: AtomicUsize::new(0) });
    let mut bench = Bench::new(9, model.clone());
    let schema = ResultSchema::parse("{}", "schema").unwrap().with_answer_check(Some(check.clone()));
    bench.with_schema(schema);
    let stop = bench.plan.stop.clone();
    let (plan, watched) = bench.split();
    let log = watched.log.clone();
    let (end, ()) = tokio::join!(execute_run(plan), async {
        // Time advances only once the rows are under way.
        log.until(|log| log.rows("taken").len() == 4).await;
        while check.begun.load(Ordering::Relaxed) < 2 {
            tokio::time::sleep(seconds(0.1)).await;
        }
        stop.abort();
    });
    (end.unwrap(), watched, model.times().len())
}

#[tokio::test(start_paused = true)]
async fn an_abort_waits_for_the_checks_of_answers_that_are_there_and_keeps_what_was_paid_for() {
    let (end, watched, _) = aborted_during_checks(5.0, AnswerVerdict::Valid("{}".into())).await;
    assert_eq!(watched.outcomes(), ["ok", "Interrupted", "ok", "Interrupted"]);
    assert_eq!((end.stopped, end.unknown_rows), (Some(StopCause::Interrupted), 2));
}

#[tokio::test(start_paused = true)]
async fn an_abort_does_not_wait_long_for_a_check_and_asks_for_no_repair() {
    let (end, watched, sent) = aborted_during_checks(60.0, AnswerVerdict::Valid("{}".into())).await;
    assert_eq!(watched.outcomes(), ["RunStopped", "Interrupted", "RunStopped", "Interrupted"]);
    assert!(end.duration < seconds(20.0), "{:?}", end.duration);
    assert_eq!(sent, 4);
    let wrong = AnswerVerdict::Invalid(vec!["wrong".into()]);
    let (_, watched, sent) = aborted_during_checks(5.0, wrong).await;
    assert_eq!(watched.outcomes(), ["RunStopped", "Interrupted", "RunStopped", "Interrupted"]);
    assert_eq!(sent, 4);
}
