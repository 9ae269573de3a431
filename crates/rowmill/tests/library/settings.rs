//! Settings that Langroid has in its clients or not at all: retries, fallback models, timeouts, quotas,
//! prices and providers from a file, rows of a dataset, and recorded turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rowmill::{
    Batch, BatchFailureCause, ConfigFile, LedgerOptions, OnQuota, ProblemCode, ReturnError, ReturnNone,
    RowErrorKind, StopHandle, Worker, WorkerTools,
};
use rowmill_core::ports::{InputReadProgress, ReadLimit, RowSource};
use rowmill_testkit::{FakeModel, SimulatedAnswer, Simulator, SimulatorScript, busy_failure, fake_failure};
use rowmill_types::{CallFailure, Problem, Row, RowReadResult, ToolOutput};
use serde_json::json;

use crate::kit::{At, MODEL, answered, ask, echo, echoing, host, own, tool};

#[tokio::test]
async fn retries_are_made_for_calls_that_may_work_when_tried_again() {
    let simulator = echo();
    let prompt = |item: &usize| ["[[503x2]]", "[[503x9]]", "[[400]]"][*item].to_owned();
    let batch = Batch::over(0..3_usize).prompt(prompt).worker(MODEL).at(&simulator).sequential();
    let batch = batch.retries(2).retry_wait(Duration::from_millis(1)).on_failure(ReturnError);
    let results = batch.map_answers(|done| done.calls);
    let results = results.run().await.unwrap();
    assert_eq!(results.items[0], Ok(3));
    let kinds: Vec<_> = results.items[1..].iter().map(|item| item.as_ref().unwrap_err().kind()).collect();
    assert_eq!(kinds, [Some(RowErrorKind::ServerError), Some(RowErrorKind::BadRequest)]);
    assert_eq!(simulator.stats().requests, 3 + 3 + 1);
}

#[tokio::test]
async fn a_fallback_is_asked_where_the_model_gives_no_answer() {
    let script = SimulatorScript::new()
        .answer_calls(|seen| SimulatedAnswer::Text(format!("{} says {}", seen.model, seen.prompt)));
    let simulator = Simulator::start_blocking(script);
    let worker = Worker::from_model_name("generic.m").fallback("generic.other");
    let prompt = |item: &usize| if *item == 1 { "[[503x1]] one".to_owned() } else { ask(item) };
    let batch = Batch::over(0..2_usize).prompt(prompt).worker(worker).at(&simulator).sequential().retries(0);
    let results = batch.run().await.unwrap();
    assert_eq!(results.items, ["m says item 0", "other says [[503x1]] one"]);
}

#[tokio::test(start_paused = true)]
async fn timeout_bounds_one_call_and_item_timeout_all_calls_of_an_item() {
    let model = Arc::new(FakeModel::default().delay(Duration::from_secs(30)));
    let batch = || Batch::over(0..2_usize).prompt(ask).worker(own(&model)).retries(1);
    let slow = batch().timeout(Duration::from_secs(20)).on_failure(ReturnError).run().await.unwrap();
    assert!(slow.items.iter().all(|item| item.as_ref().unwrap_err().kind() == Some(RowErrorKind::Timeout)));
    assert_eq!(model.seen().len(), 4);
    let slow = batch().item_timeout(Duration::from_secs(20)).on_failure(ReturnError).run().await.unwrap();
    assert!(slow.items.iter().all(|item| item.as_ref().unwrap_err().kind() == Some(RowErrorKind::Timeout)));
    assert_eq!(model.seen().len(), 6);
    assert_eq!(batch().timeout(Duration::from_secs(40)).run().await.unwrap().report.ok, 2);
}

#[tokio::test]
async fn a_quota_that_is_used_up_stops_the_batch_where_that_is_wanted() {
    let simulator = Simulator::start_blocking(echoing().quota_requests(3));
    let batch = Batch::over(0..9_usize).prompt(ask).worker(MODEL).at(&simulator).sequential();
    let error = batch.on_quota(OnQuota::Stop).on_failure(ReturnNone).run().await.unwrap_err();
    let BatchFailureCause::Problem(problem) = error.cause() else { unreachable!("{error:?}") };
    assert_eq!(problem.code, ProblemCode::QuotaExhausted);
    let partial: Vec<String> = error.partial().iter().flatten().cloned().collect();
    assert_eq!(partial, answered(0..3));
    let report = error.report().unwrap();
    assert_eq!((report.ok, report.failed, report.not_run), (3, 0, 6));
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_waited_for_as_long_as_was_set() {
    let scripts = (0..40)
        .fold(FakeModel::default(), |model, item: usize| model.script(ask(&item), vec![Err(busy_failure())]));
    let model = Arc::new(scripts);
    let batch = Batch::over(0..40_usize).prompt(ask).worker(own(&model)).retries(50);
    let batch = batch.max_outage(Duration::from_secs(120)).on_failure(ReturnNone);
    let error = batch.run().await.unwrap_err();
    let BatchFailureCause::Problem(problem) = error.cause() else { unreachable!("{error:?}") };
    assert_eq!(problem.code, ProblemCode::ProviderDown);
    assert_eq!(error.report().unwrap().ok, 0);
}

#[tokio::test]
async fn a_failure_of_an_own_model_is_that_items() {
    let refused = vec![Err(fake_failure(CallFailure::Refused))];
    let model = Arc::new(FakeModel::default().script("item 1", refused));
    let batch = Batch::over(0..3_usize).prompt(ask).worker(own(&model)).on_failure(ReturnError);
    let results = batch.run().await.unwrap();
    assert_eq!(results.items[1].as_ref().unwrap_err().kind(), Some(RowErrorKind::BadRequest));
    assert_eq!((results.report.ok, results.report.failed), (2, 1));
}

#[tokio::test]
async fn providers_and_prices_can_come_from_a_file() {
    let (simulator, folder) = (echo(), tempfile::tempdir().unwrap());
    let path = folder.path().join("rowmill.toml");
    let text = format!(
        "[providers.mine]\nbase_url = \"{}/v1\"\nprotocol = \"chat\"\n\
         [prices.\"mine.m\"]\ninput = 1000\noutput = 1000\n",
        simulator.url()
    );
    std::fs::write(&path, text).unwrap();
    let file = ConfigFile::read(&path).unwrap();
    let batch = Batch::over(0..2_usize).prompt(ask).worker("mine.m").config(&file);
    let results = batch.run().await.unwrap();
    assert_eq!(results.items, answered(0..2));
    assert!(results.report.cost.dollars() > 0.0);
}

/// Rows of a dataset that the program implements.
struct Lines(std::vec::IntoIter<&'static str>, u64);

impl RowSource for Lines {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        for line in self.0.by_ref().take(room.rows) {
            self.1 += 1;
            batch.push(Row::parse(self.1, line.to_owned()));
        }
        Ok(self.0.len() > 0)
    }

    fn position(&self) -> InputReadProgress {
        InputReadProgress::default()
    }
}

#[tokio::test]
async fn rows_of_a_dataset_are_items_and_a_record_that_is_none_is_an_item_that_failed() {
    let simulator = echo();
    let source = Lines(vec!["{\"n\":1}", "no row", "{\"n\":3}"].into_iter(), 0);
    let batch = Batch::over_rows(source).prompt(|row: &Row| row.json_text().to_owned()).worker(MODEL);
    let results = batch.at(&simulator).on_failure(ReturnError).run().await.unwrap();
    assert_eq!(results.items[0].as_deref(), Ok("re: {\"n\":1}"));
    assert_eq!(results.items[1].as_ref().unwrap_err().kind(), Some(RowErrorKind::InvalidJson));
    assert_eq!(results.items[2].as_deref(), Ok("re: {\"n\":3}"));
    assert_eq!(simulator.stats().requests, 2);
}

#[tokio::test]
async fn checkpoint_turns_lets_a_resume_go_on_after_the_last_turn() {
    let (steps, folder) = (Arc::new(AtomicUsize::new(0)), tempfile::tempdir().unwrap());
    let simulator =
        Simulator::start_blocking(SimulatorScript::new().hold_after(2).answer_calls(
            |seen| match seen.turn {
                1..=3 => {
                    SimulatedAnswer::Calls { text: String::new(), calls: vec![("step".into(), json!({}))] }
                }
                _ => SimulatedAnswer::Text(format!("done: {}", seen.last)),
            },
        ));
    let stop = StopHandle::default();
    let batch = || {
        let steps = Arc::clone(&steps);
        let host = host(move |_, _| {
            Ok(ToolOutput::from_text(format!("step {}", steps.fetch_add(1, Ordering::SeqCst) + 1)))
        });
        let worker = Worker::from_model_name(MODEL).tools(WorkerTools::from_host(host, vec![tool("step")]));
        let batch = Batch::over(["go"]).prompt(|item: &&str| *item).worker(worker).at(&simulator);
        batch.checkpoint_turns().ledger(LedgerOptions::resume(folder.path()))
    };
    let cut = async {
        // Two turns and their tools are done, and the third has been requested.
        simulator.wait_until(|stats| stats.requests == 3).await;
        stop.abort();
    };
    let (first, ()) =
        futures_util::future::join(batch().stop_handle(&stop).on_failure(ReturnNone).run(), cut).await;
    assert_eq!(first.unwrap().report.cancelled, 1);
    simulator.release();
    assert_eq!(batch().run().await.unwrap().items, ["done: step 3"]);
    assert_eq!(steps.load(Ordering::SeqCst), 3);
    // Only the interrupted turn is requested again.
    assert_eq!(simulator.stats().requests, 3 + 2);
}
