//! The store of runs and the store of answers fulfil the contracts of their ports, as checked by the test suites of the
//! testkit.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test cannot set up fails the test")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rowmill_core::ports::{AnswerKey, AnswerStore, RunStore};
use rowmill_store::answers::SqliteAnswerStore;
use rowmill_store::file::{FileRunStore, WorkFolder};
use rowmill_testkit::conformance::{
    append_until_killed, check_answer_store, check_killed_store, check_run_store,
};

/// Set when this binary was started again, to be killed.
const KILLED_FOLDER: &str = "ROWMILL_TEST_KILLED_FOLDER";

fn run_store(folder: &Path) -> Arc<dyn RunStore> {
    Arc::new(FileRunStore::new(WorkFolder::open(folder).unwrap()))
}

#[tokio::test]
async fn a_run_in_a_folder_keeps_the_contract_of_stores() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("run");
    assert_eq!(check_run_store(&|| run_store(&folder)).await, Vec::<String>::new());
}

/// This test starts its own binary again as the process that is killed.
#[tokio::test]
async fn a_run_in_a_folder_outlasts_the_kill_of_its_process_at_any_moment() {
    if let Some(folder) = std::env::var_os(KILLED_FOLDER) {
        append_until_killed(&*run_store(Path::new(&folder))).await.unwrap();
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut confirmed = None;
    for kill in 0..20 {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "a_run_in_a_folder_outlasts_the_kill_of_its_process_at_any_moment",
                "--nocapture",
            ])
            .env(KILLED_FOLDER, home.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let groups = lines.map_while(Result::ok).filter_map(|line| line.trim().parse::<u64>().ok());
        let mut heard = 0;
        for group in groups {
            confirmed = confirmed.max(Some(group));
            heard += 1;
            // Output from before the kill is still read.
            if heard == 1 + kill * 7 {
                process.kill().unwrap();
            }
        }
        process.wait().unwrap();
        assert!(heard > kill * 7, "it ended by itself");
        assert_eq!(check_killed_store(&*run_store(home.path()), confirmed), Vec::<String>::new());
    }
}

fn store(folder: &Path) -> SqliteAnswerStore {
    SqliteAnswerStore::open(folder, Arc::new(|notice| panic!("{notice}"))).unwrap()
}

#[tokio::test]
async fn the_store_of_answers_keeps_the_contract_of_stores() {
    let folder = tempfile::tempdir().unwrap();
    let answers = store(folder.path());
    assert_eq!(check_answer_store(&answers).await, Vec::<String>::new());
    drop(answers);
    let reopened = store(folder.path());
    assert_eq!(reopened.find(AnswerKey(200)).await.unwrap().text, "second", "it is on disk by then");
}
