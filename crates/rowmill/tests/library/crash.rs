//! Crashes: in Langroid, a crash at item 9,999 of 10,000 loses everything. Here no answer in the ledger
//! is ever requested again, whatever happened to the process or to the future.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::process::{Command, Stdio};

use futures_util::future::select;
use rowmill::{Batch, LedgerOptions, ProviderConfig};
use rowmill_testkit::Simulator;

use crate::kit::{At, MODEL, answered, ask, echoing};

const ITEMS: usize = 30;
const PROVIDER: &str = "LIBRARY_TEST_PROVIDER";
const LEDGER: &str = "LIBRARY_TEST_LEDGER";

fn batch(ledger: LedgerOptions) -> Batch<usize> {
    Batch::over(0..ITEMS).prompt(ask).worker(MODEL).concurrency(4).ledger(ledger)
}

/// Answers twelve calls and holds the others.
fn holding() -> Simulator {
    Simulator::start_blocking(echoing().hold_after(12))
}

/// Resumes, and checks that only what was in flight is requested again.
async fn goes_on(simulator: &Simulator, folder: &std::path::Path) {
    let before = simulator.stats();
    assert_eq!(before.answers, 12);
    simulator.release();
    let results = batch(LedgerOptions::resume(folder)).at(simulator).run().await.unwrap();
    assert_eq!(results.items, answered(0..ITEMS));
    let after = simulator.stats();
    // A call is sent only after all earlier results have been written, so all twelve are.
    assert_eq!(results.report.kept, 12);
    assert_eq!(after.requests - before.requests, ITEMS as u64 - 12);
}

/// The batch that is killed.
#[test]
#[ignore = "runs in a process of its own"]
fn a_batch_in_a_process_of_its_own() {
    let base_url = Some(std::env::var_os(PROVIDER).unwrap().into_string().unwrap());
    let ledger = std::env::var_os(LEDGER).unwrap();
    let config = ProviderConfig { base_url, ..ProviderConfig::default() };
    let batch = batch(LedgerOptions::new(ledger)).providers([("generic".to_owned(), config)].into());
    batch.run_blocking().unwrap();
}

/// The batch whose process ends in the function that handles an answer.
#[test]
#[ignore = "runs in a process of its own"]
fn a_batch_whose_output_ends_the_process() {
    let ledger = std::env::var_os(LEDGER).unwrap();
    let dying = Batch::over(["paid for"]).prompt(|item| *item).worker("passthrough");
    let dying = dying.ledger(LedgerOptions::new(ledger)).map_answers(|_| -> String { std::process::abort() });
    drop(dying.run_blocking());
}

#[tokio::test]
async fn an_answer_is_on_record_before_the_program_gets_to_see_it() {
    let folder = tempfile::tempdir().unwrap();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::a_batch_whose_output_ends_the_process", "--ignored"])
        .env(LEDGER, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(ended.code().is_none(), "{ended}");
    let resumed = Batch::over(["paid for"]).prompt(|item| *item).worker("passthrough");
    let resumed = resumed.ledger(LedgerOptions::resume(folder.path())).run().await.unwrap();
    assert_eq!((resumed.report.kept, resumed.items), (1, vec!["paid for".to_owned()]));
}

#[tokio::test]
async fn a_process_that_is_killed_loses_nothing_that_is_in_its_ledger() {
    let (simulator, folder) = (holding(), tempfile::tempdir().unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::a_batch_in_a_process_of_its_own", "--ignored"])
        .env(PROVIDER, format!("{}/v1", simulator.url()))
        .env(LEDGER, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Four calls are held, so everything before them was answered and recorded.
    simulator.wait_until(|stats| stats.answers == 12 && stats.in_flight == 4).await;
    child.kill().unwrap();
    child.wait().unwrap();
    simulator.wait_until(|stats| stats.in_flight == 0).await;
    goes_on(&simulator, folder.path()).await;
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_nothing_that_is_in_its_ledger() {
    let (simulator, folder) = (holding(), tempfile::tempdir().unwrap());
    let run = Box::pin(batch(LedgerOptions::new(folder.path())).at(&simulator).run());
    let held = Box::pin(simulator.wait_until(|stats| stats.answers == 12 && stats.in_flight == 4));
    drop(select(run, held).await);
    simulator.wait_until(|stats| stats.in_flight == 0).await;
    goes_on(&simulator, folder.path()).await;
}
