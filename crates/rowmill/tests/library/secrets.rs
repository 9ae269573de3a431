//! Secrets do not appear in any file, even though a batch writes its ledger itself.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::path::Path;
use std::process::Command;

use rowmill::{Batch, BatchItem, FunctionFailure, LedgerOptions, ReturnError, RunNotice, Worker};

use crate::kit::{At, MODEL, Notes, echo};

const KEY: &str = "sk-of-the-program-123456";
/// The variable with the folder of the ledger for the child process.
const FOLDER: &str = "LIBRARY_TEST_FOLDER";
/// A variable whose name indicates a secret.
const VARIABLE: &str = "LIBRARY_TEST_TOKEN";

/// Every file of a folder as one text.
fn written(folder: &Path) -> String {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn the_key_of_a_worker_is_masked_in_the_ledger_and_in_results() {
    let (simulator, folder) = (echo(), tempfile::tempdir().unwrap());
    let heard = Notes::default();
    let noted = heard.clone();
    let batch = Batch::over(["mine"]).prompt(|_| format!("my key is {KEY}"));
    let batch = batch.worker(Worker::from_model_name(MODEL).key(KEY)).at(&simulator);
    let batch = batch.ledger(LedgerOptions::new(folder.path())).on_notice(move |notice| noted.add(notice));
    assert_eq!(batch.run_blocking().unwrap().into_vec(), ["re: my key is ***"]);
    let written = written(folder.path());
    assert!(written.contains("re: my key is ***") && !written.contains(KEY), "{written}");
    let is_reported = |notice: &RunNotice| matches!(notice, RunNotice::Warning(text) if text.starts_with("known secrets were replaced"));
    assert!(heard.all().iter().any(is_reported), "{:?}", heard.all());
}

#[test]
fn what_variables_hold_is_masked_in_errors_and_answers_of_functions() {
    let folder = tempfile::tempdir().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "secrets::in_a_process_of_its_own", "--ignored"])
        .env(FOLDER, folder.path())
        .env(VARIABLE, KEY)
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let written = written(folder.path());
    assert!(written.contains("it is ***") && written.contains("no luck with ***"), "{written}");
    assert!(!written.contains(KEY), "{written}");
}

#[test]
#[ignore = "runs in a process of its own"]
fn in_a_process_of_its_own() {
    let work = async |item: BatchItem<bool>| match *item {
        true => Ok(format!("it is {KEY}")),
        false => Err(FunctionFailure::new(format!("no luck with {KEY}"))),
    };
    let folder = std::env::var_os(FOLDER).unwrap();
    let batch = Batch::over([true, false]).id(|item| item.to_string()).worker_fn(work);
    let batch = batch.ledger(LedgerOptions::new(folder)).on_failure(ReturnError);
    batch.run_blocking().unwrap();
}
