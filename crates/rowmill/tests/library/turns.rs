//! `turns`: in Langroid an item that runs out of turns has the result `None`, as if nothing had been
//! requested. Here it has failed, with the last message in the error.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rowmill::{Batch, ItemError, LedgerOptions, ReturnError, RowErrorKind, Worker, WorkerTools};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use rowmill_types::ToolOutput;
use serde_json::json;

use crate::kit::{At, MODEL, host, tool};

/// Calls the tool `step` in this many turns, then is done.
fn stepping(steps: u64) -> Simulator {
    Simulator::start_blocking(SimulatorScript::new().answer_calls(move |seen| match seen.turn {
        turn if turn <= steps => {
            SimulatedAnswer::Calls { text: format!("at {turn}"), calls: vec![("step".into(), json!({}))] }
        }
        turn => SimulatedAnswer::Text(format!("done at {turn}: {}", seen.last)),
    }))
}

fn worker(steps: &Arc<AtomicUsize>) -> Worker {
    let steps = Arc::clone(steps);
    let host = host(move |_, _| {
        Ok(ToolOutput::from_text(format!("step {}", steps.fetch_add(1, Ordering::SeqCst) + 1)))
    });
    Worker::from_model_name(MODEL).tools(WorkerTools::from_host(host, vec![tool("step")]))
}

#[tokio::test]
async fn turns_without_a_limit_go_on_until_the_model_is_done() {
    let (simulator, steps) = (stepping(5), Arc::default());
    let batch = Batch::over(["go"]).prompt(|item: &&str| *item).worker(worker(&steps)).at(&simulator);
    let results = batch.map_answers(|done| (done.answer, done.calls)).run().await.unwrap();
    assert_eq!(results.into_vec(), [("done at 6: step 5".to_owned(), 6)]);
}

#[tokio::test]
async fn turns_that_are_used_up_are_a_failure_and_not_none() {
    let (simulator, steps) = (stepping(5), Arc::default());
    let batch = Batch::over(["a", "b"]).prompt(|item: &&str| *item).worker(worker(&steps)).at(&simulator);
    let results = batch.turns(2).on_failure(ReturnError).run().await.unwrap();
    for result in &results {
        let Err(ItemError::Failed { error, .. }) = result else { unreachable!("{result:?}") };
        assert_eq!(error.kind, RowErrorKind::TurnLimit);
        assert_eq!(error.raw_text.as_deref(), Some("at 2"));
        assert_eq!(error.message, "no result after 2 model calls (`Batch::turns`)");
    }
    assert_eq!(simulator.stats().requests, 4);
}

#[tokio::test]
async fn the_ledger_of_a_batch_names_the_method_that_limits_turns() {
    let (simulator, steps) = (stepping(5), Arc::default());
    let folder = tempfile::tempdir().unwrap();
    let batch = Batch::over(["a"]).prompt(|item: &&str| *item).worker(worker(&steps)).at(&simulator);
    let batch = batch.turns(2).ledger(LedgerOptions::new(folder.path().join("ledger")));
    batch.on_failure(ReturnError).run().await.unwrap();
    let files = std::fs::read_dir(folder.path().join("ledger")).unwrap().flatten().map(|entry| entry.path());
    let written: String = files.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    assert!(written.contains("no result after 2 model calls (`Batch::turns`)"), "{written}");
    assert!(!written.contains("--turns"), "{written}");
}

#[tokio::test]
async fn turns_that_are_enough_change_nothing() {
    let (simulator, steps) = (stepping(2), Arc::default());
    let batch = Batch::over(["go"]).prompt(|item: &&str| *item).worker(worker(&steps)).at(&simulator);
    assert_eq!(batch.turns(3).run().await.unwrap().into_vec(), ["done at 3: step 2"]);
    assert_eq!(steps.load(Ordering::SeqCst), 2);
}
