//! Ledgers: in Langroid nothing is stored, and an interrupted batch is lost. Here every answer is on
//! disk before a result is made from it, and a resume requests only the rest.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::path::Path;

use rowmill::{
    AnsweredItem, Batch, FunctionFailure, LedgerOptions, Problem, ProblemCode, ReturnError, ReturnNone,
    StopAtFirstFailure, StopHandle, Worker,
};
use rowmill_testkit::Simulator;
use tempfile::TempDir;

use crate::kit::{At, MODEL, Notes, accounts, answered, ask, echo, problem};

fn place() -> (Simulator, TempDir) {
    (echo(), tempfile::tempdir().unwrap())
}

fn batch(simulator: &Simulator, items: usize, ledger: LedgerOptions) -> Batch<usize> {
    Batch::over(0..items).prompt(ask).worker(MODEL).at(simulator).ledger(ledger)
}

/// Runs until three items have ended.
async fn broken_off(simulator: &Simulator, folder: &Path) {
    let stop = StopHandle::default();
    let batch = batch(simulator, 10, LedgerOptions::new(folder)).sequential().stop_handle(&stop);
    let batch = batch.map_answers(move |done| {
        if done.index == 2 {
            stop.drain();
        }
        done.answer
    });
    let ended = batch.on_failure(ReturnNone).run().await.unwrap();
    assert_eq!(accounts(&ended.report, 10), (3, 0, 0, 7));
}

fn expected_problem(code: ProblemCode, message: String, hint: &str) -> Problem {
    Problem::new(code, message).hint(hint)
}

#[tokio::test]
async fn a_resume_gives_all_results_in_order_and_asks_only_for_the_rest() {
    let (simulator, folder) = place();
    broken_off(&simulator, folder.path()).await;
    let notes = Notes::default();
    let noted = notes.clone();
    let resumed = batch(&simulator, 10, LedgerOptions::resume(folder.path()));
    let resumed = resumed.on_progress(move |progress| noted.add((progress.kept, progress.done())));
    let results = resumed.run().await.unwrap();
    assert_eq!(results.items, answered(0..10));
    assert_eq!((results.report.ok, results.report.kept), (10, 3));
    assert_eq!(notes.all().last(), Some(&(3, 10)));
    let stats = simulator.stats();
    assert_eq!((stats.requests, stats.repeated_answers), (10, 0));
    let again = batch(&simulator, 10, LedgerOptions::resume(folder.path())).run().await.unwrap();
    assert_eq!((again.items, again.report.kept), (answered(0..10), 10));
    assert_eq!(simulator.stats().requests, 10);
}

#[tokio::test]
async fn a_resume_without_a_ledger_begins_one() {
    let (simulator, folder) = place();
    let path = folder.path().join("not/there/yet");
    let results = batch(&simulator, 3, LedgerOptions::resume(&path)).run().await.unwrap();
    assert_eq!((results.items, results.report.kept), (answered(0..3), 0));
    assert!(path.is_dir());
}

#[tokio::test]
async fn a_new_ledger_is_refused_where_one_is() {
    let (simulator, folder) = place();
    broken_off(&simulator, folder.path()).await;
    let error = batch(&simulator, 10, LedgerOptions::new(folder.path())).run().await.unwrap_err();
    let message = format!("`{}` has the ledger of an earlier batch", folder.path().display());
    let hint = "continue it (`LedgerOptions::resume`) or replace it (`LedgerOptions::overwrite`)";
    assert_eq!(problem(&error), expected_problem(ProblemCode::OutputExists, message.clone(), hint));
    assert_eq!(error.to_string(), format!("{message} ({hint})"));
    assert!(error.report().is_none() && error.partial().is_empty());
    assert_eq!(simulator.stats().requests, 3);
}

#[tokio::test]
async fn a_ledger_that_is_replaced_is_forgotten() {
    let (simulator, folder) = place();
    broken_off(&simulator, folder.path()).await;
    let results = batch(&simulator, 10, LedgerOptions::overwrite(folder.path())).run().await.unwrap();
    assert_eq!((results.report.ok, results.report.kept), (10, 0));
    assert_eq!(simulator.stats().requests, 13);
}

#[tokio::test]
async fn a_resume_with_another_worker_is_refused_unless_that_is_wanted() {
    let (simulator, folder) = place();
    broken_off(&simulator, folder.path()).await;
    let other = |ledger| {
        let worker = Worker::from_model_name("generic.other?max_tokens=16");
        Batch::over(0..10_usize).prompt(ask).worker(worker).at(&simulator).ledger(ledger)
    };
    let error = other(LedgerOptions::resume(folder.path())).run().await.unwrap_err();
    let refused = problem(&error);
    assert_eq!(refused.code, ProblemCode::ChangedRun);
    let begins = "the run to be resumed was started with different settings:\n  model: \
                  `generic.m?max_tokens=16` -> `generic.other?max_tokens=16`";
    assert!(refused.message.starts_with(begins), "{}", refused.message);
    let hint = "restore those settings, or use `LedgerOptions::resume_accepting_changes` to mix both";
    assert_eq!(refused.hint.as_deref(), Some(hint));
    assert_eq!(simulator.stats().requests, 3);
    let mixed = other(LedgerOptions::resume_accepting_changes(folder.path())).run().await.unwrap();
    assert_eq!((mixed.items, mixed.report.kept), (answered(0..10), 3));
    assert_eq!(simulator.stats().requests, 10);
}

#[tokio::test]
async fn a_resume_with_another_instruction_is_refused() {
    let (simulator, folder) = place();
    broken_off(&simulator, folder.path()).await;
    let worker = Worker::from_model_name(MODEL).instruction("Be brief.");
    let changed = Batch::over(0..10_usize).prompt(ask).worker(worker).at(&simulator);
    let error = changed.ledger(LedgerOptions::resume(folder.path())).run().await.unwrap_err();
    assert_eq!(problem(&error).code, ProblemCode::ChangedRun);
    assert!(problem(&error).message.contains("instruction: has changed"), "{error}");
}

#[tokio::test]
async fn a_ledger_is_one_batchs_at_a_time() {
    let (simulator, folder) = place();
    let held = Simulator::start_blocking(crate::kit::echoing().hold_after(0));
    let first = batch(&held, 2, LedgerOptions::resume(folder.path()));
    let second = async {
        held.wait_until(|stats| stats.in_flight > 0).await;
        let error = batch(&simulator, 2, LedgerOptions::resume(folder.path())).run().await.unwrap_err();
        held.release();
        problem(&error)
    };
    let (first, refused) = futures_util::future::join(first.run(), second).await;
    let message = format!("another run keeps its ledger in `{}`", folder.path().display());
    assert_eq!(
        refused,
        expected_problem(ProblemCode::OutputBusy, message, "wait for it, or choose another folder")
    );
    assert_eq!(first.unwrap().items, answered(0..2));
}

#[tokio::test]
async fn a_ledger_that_cannot_be_made_keeps_a_batch_from_starting() {
    let (simulator, folder) = place();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = batch(&simulator, 2, LedgerOptions::new(file.join("ledger"))).run().await.unwrap_err();
    let problem = problem(&error);
    assert_eq!(problem.code, ProblemCode::WriteFailed);
    let path = file.join("ledger");
    assert_eq!(problem.message, format!("cannot create the work folder `{}`", path.display()));
    assert!(problem.cause.is_some());
    assert_eq!(problem.hint.as_deref(), Some("choose another folder"));
    assert_eq!(simulator.stats().requests, 0);
}

#[tokio::test]
async fn an_answer_whose_output_failed_is_kept_and_not_paid_for_again() {
    let (simulator, folder) = place();
    let strict = |done: AnsweredItem<usize, String>| match done.index {
        1 => Err(FunctionFailure::new("cannot be used")),
        _ => Ok(done.answer),
    };
    let first = batch(&simulator, 3, LedgerOptions::new(folder.path())).try_map_answers(strict);
    let first = first.on_failure(ReturnError).run().await.unwrap();
    assert_eq!(first.items[1].as_ref().unwrap_err().to_string(), "item 1 failed: cannot be used");
    // The same item fails again, and nothing is sent for it.
    let same = batch(&simulator, 3, LedgerOptions::resume(folder.path())).try_map_answers(strict);
    assert!(same.on_failure(ReturnError).run().await.unwrap().items[1].is_err());
    let mended = batch(&simulator, 3, LedgerOptions::resume(folder.path())).map_answers(|done| done.answer);
    let mended = mended.run().await.unwrap();
    assert_eq!((mended.items, mended.report.kept), (answered(0..3), 3));
    assert_eq!(simulator.stats().requests, 3);
}

#[tokio::test]
async fn items_that_failed_are_tried_again_by_a_resume() {
    let (simulator, folder) = place();
    let prompt = |item: &usize| if *item == 1 { "[[400x1]] one".to_owned() } else { ask(item) };
    let batch = |ledger| Batch::over(0..3_usize).prompt(prompt).worker(MODEL).at(&simulator).ledger(ledger);
    let first = batch(LedgerOptions::new(folder.path())).on_failure(ReturnNone).run().await.unwrap();
    assert_eq!(accounts(&first.report, 3), (2, 1, 0, 0));
    let again =
        batch(LedgerOptions::resume(folder.path())).on_failure(StopAtFirstFailure).run().await.unwrap();
    assert_eq!((again.report.ok, again.report.kept), (3, 2));
    assert_eq!(again.items[1], "re: [[400x1]] one");
    assert_eq!(simulator.stats().requests, 4);
}

#[tokio::test]
async fn a_resume_gives_the_first_result_without_asking() {
    let (simulator, folder) = place();
    broken_off(&simulator, folder.path()).await;
    let first =
        batch(&simulator, 10, LedgerOptions::resume(folder.path())).run_until_first_result().await.unwrap();
    assert_eq!(first.result, Some((0, "re: item 0".to_owned())));
    assert_eq!(simulator.stats().requests, 3);
    assert_eq!(first.report.ok + first.report.cancelled + first.report.not_run, 10);
}

#[tokio::test]
async fn a_resume_streams_kept_results_too() {
    use futures_util::StreamExt;
    let (simulator, folder) = place();
    broken_off(&simulator, folder.path()).await;
    let stream = batch(&simulator, 10, LedgerOptions::resume(folder.path())).stream();
    let mut results: Vec<(usize, String)> = stream.map(Result::unwrap).collect().await;
    results.sort_unstable();
    assert_eq!(results, (0..10).zip(answered(0..10)).collect::<Vec<_>>());
    assert_eq!(simulator.stats().requests, 10);
}
