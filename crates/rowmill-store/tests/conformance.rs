//! The ledger and the store of answers keep the contracts of their ports, as the testkit's
//! suites check them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test cannot set up fails the test")]

use std::path::Path;
use std::sync::Arc;

use rowmill_core::fingerprint::Fingerprint;
use rowmill_core::ports::{AnswerStore, AskedKey, InputIdentity};
use rowmill_store::answers::SqliteAnswers;
use rowmill_store::file::{FileLedger, Header, WorkFolder, scan};
use rowmill_testkit::conformance::{check_answer_store, check_ledger};

fn header() -> Header {
    let fingerprint = Fingerprint {
        input: InputIdentity { path: "-".into(), size: None, probe: None },
        id_field: None,
        model: "passthrough".into(),
        prompt: String::new(),
        instruction: None,
        schema: None,
        agents: None,
        query: None,
        delimiter: None,
        columns: None,
        files: None,
    };
    Header::new("r", "now", &fingerprint, None)
}

#[test]
fn the_ledger_in_a_file_keeps_the_contract_of_ledgers() {
    let home = tempfile::tempdir().unwrap();
    let folder = WorkFolder::open(home.path()).unwrap();
    let header = header();
    folder.write_header(&header).unwrap();
    let mut ledger = FileLedger::open(&folder, &header, 0, 16).unwrap();
    assert_eq!(check_ledger(&mut ledger), Vec::<String>::new());
    drop(ledger);
    // A ledger that is opened again goes on behind what it has.
    let length = scan(&folder.ledger(&header), |_, _, _| Ok(())).unwrap().length;
    let mut again = FileLedger::open(&folder, &header, length, 16).unwrap();
    assert_eq!(check_ledger(&mut again), Vec::<String>::new());
}

fn store(folder: &Path) -> SqliteAnswers {
    SqliteAnswers::open(folder, Arc::new(|notice| panic!("{notice}"))).unwrap()
}

#[tokio::test]
async fn the_store_of_answers_keeps_the_contract_of_stores() {
    let folder = tempfile::tempdir().unwrap();
    let answers = store(folder.path());
    assert_eq!(check_answer_store(&answers).await, Vec::<String>::new());
    drop(answers);
    let reopened = store(folder.path());
    assert_eq!(reopened.find(AskedKey(200)).await.unwrap().text, "second", "it is on disk by then");
}
