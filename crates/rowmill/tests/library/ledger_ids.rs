//! How a resume recognizes items: by the id that `id` gives them, or else by their index and prompt;
//! and what functions write to a ledger.

use rowmill::{Batch, BatchItem, FunctionFailure, LedgerOptions, ReturnError, ReturnNone, RowErrorKind};
use rowmill_testkit::Simulator;
use serde::{Deserialize, Serialize};

use crate::kit::{At, MODEL, Room, echo};

fn named(simulator: &Simulator, items: &[&'static str], ledger: LedgerOptions) -> Batch<&'static str> {
    let batch = Batch::over(items.to_vec()).prompt(|item: &&str| *item).worker(MODEL).at(simulator);
    batch.id(|item| (*item).to_owned()).ledger(ledger)
}

#[tokio::test]
async fn items_with_an_id_are_known_again_although_they_have_moved() {
    let (simulator, folder) = (echo(), tempfile::tempdir().unwrap());
    named(&simulator, &["a", "b", "c"], LedgerOptions::new(folder.path())).run().await.unwrap();
    let moved = named(&simulator, &["c", "new", "a"], LedgerOptions::resume(folder.path()));
    let results = moved.run().await.unwrap();
    assert_eq!(results.items, ["re: c", "re: new", "re: a"]);
    assert_eq!((results.report.ok, results.report.kept), (3, 2));
    assert_eq!(simulator.stats().requests, 4);
}

#[tokio::test]
async fn items_without_an_id_are_asked_again_where_they_have_moved() {
    let (simulator, folder) = (echo(), tempfile::tempdir().unwrap());
    let batch = |items: [&'static str; 3], ledger| {
        let batch = Batch::over(items).prompt(|item: &&str| *item).worker(MODEL).at(&simulator);
        batch.ledger(ledger).run()
    };
    batch(["a", "b", "c"], LedgerOptions::new(folder.path())).await.unwrap();
    let results = batch(["a", "c", "b"], LedgerOptions::resume(folder.path())).await.unwrap();
    assert_eq!(
        (results.items, results.report.kept),
        (vec!["re: a".into(), "re: c".into(), "re: b".into()], 1)
    );
    assert_eq!(simulator.stats().requests, 5);
}

#[tokio::test]
async fn an_id_that_came_before_is_that_items_failure() {
    for with_ledger in [false, true] {
        let (simulator, folder) = (echo(), tempfile::tempdir().unwrap());
        let batch =
            Batch::over(["a", "b", "a", "c"]).prompt(|item: &&str| *item).worker(MODEL).at(&simulator);
        let batch = batch.id(|item| (*item).to_owned());
        let batch = if with_ledger { batch.ledger(LedgerOptions::new(folder.path())) } else { batch };
        let results = batch.on_failure(ReturnError).run().await.unwrap();
        let error = results.items[2].as_ref().unwrap_err();
        assert_eq!((error.index(), error.kind()), (2, Some(RowErrorKind::DuplicateId)));
        let message = "item 2 failed: Duplicate value 'a' of id field 'id': an earlier row has it too";
        assert_eq!(error.to_string(), message);
        assert_eq!((results.report.ok, simulator.stats().requests), (3, 3));
    }
}

#[tokio::test]
async fn an_id_that_is_empty_or_panics_is_that_items_failure() {
    let simulator = echo();
    let batch = Batch::over(["a", "", "!"]).prompt(|item: &&str| *item).worker(MODEL).at(&simulator);
    let batch = batch.id(|item| {
        assert_ne!(*item, "!", "no name for this");
        (*item).to_owned()
    });
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let errors: Vec<_> = results.items.iter().filter_map(|item| item.as_ref().err()).collect();
    assert_eq!(errors.len(), 2);
    assert!(errors.iter().all(|error| error.kind() == Some(RowErrorKind::InvalidIdField)), "{errors:?}");
    let reported = errors[1].to_string();
    assert!(
        reported.starts_with("item 2 failed: the function that identifies items panicked: "),
        "{reported}"
    );
    assert!(reported.contains("no name for this"), "{reported}");
    assert_eq!(simulator.stats().requests, 1);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Seen {
    letters: usize,
    twice: String,
}

fn seeing(room: &Room, ledger: LedgerOptions) -> Batch<&'static str, Seen> {
    let room = room.clone();
    let batch = Batch::over(["a", "bb", "ccc"]).worker_fn(move |item: BatchItem<&'static str>| {
        let first = room.ever() < 3;
        let _inside = room.enter();
        async move {
            if first && item.index() == 1 {
                return Err(FunctionFailure::new("not yet"));
            }
            Ok(Seen { letters: item.len(), twice: item.repeat(2) })
        }
    });
    batch.id(|item| (*item).to_owned()).ledger(ledger)
}

#[tokio::test]
async fn what_a_function_answers_is_kept_as_json_of_its_type() {
    let (room, folder) = (Room::default(), tempfile::tempdir().unwrap());
    let first = seeing(&room, LedgerOptions::new(folder.path())).on_failure(ReturnNone).run().await.unwrap();
    assert_eq!(first.report.failed, 1);
    let again = seeing(&room, LedgerOptions::resume(folder.path())).run().await.unwrap();
    let seen = |text: &str| Seen { letters: text.len(), twice: text.repeat(2) };
    assert_eq!((again.items, again.report.kept), (["a", "bb", "ccc"].map(seen).to_vec(), 2));
    assert_eq!(room.ever(), 4);
}

#[tokio::test]
async fn what_is_not_json_cannot_be_kept_and_is_that_items_failure() {
    let folder = tempfile::tempdir().unwrap();
    let batch = Batch::over(["a"]).worker_fn(async |_: BatchItem<&str>| {
        Ok(std::collections::BTreeMap::from([((1_u8, 2_u8), "keys of JSON are texts".to_owned())]))
    });
    let batch = batch.id(|item| (*item).to_owned()).ledger(LedgerOptions::new(folder.path()));
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let error = results.items[0].as_ref().unwrap_err();
    assert_eq!(error.to_string(), "item 0 failed: the answer is not JSON: key must be a string");
}

#[tokio::test]
async fn a_kept_answer_of_another_type_is_that_items_failure_with_the_answer_inside() {
    let folder = tempfile::tempdir().unwrap();
    let texts = Batch::over([1_u8]).worker_fn(async |item: BatchItem<u8>| Ok(format!("n{}", *item)));
    texts.id(u8::to_string).ledger(LedgerOptions::new(folder.path())).run().await.unwrap();
    let numbers = Batch::over([1_u8]).worker_fn(async |item: BatchItem<u8>| Ok(u64::from(*item)));
    let numbers = numbers.id(u8::to_string).ledger(LedgerOptions::resume(folder.path()));
    let results = numbers.on_failure(ReturnError).run().await.unwrap();
    let Err(rowmill::ItemError::Failed { error, .. }) = &results.items[0] else { unreachable!() };
    assert!(
        error.message.starts_with("the answer does not match its type: invalid type: string"),
        "{error:?}"
    );
    assert_eq!(error.raw_text.as_deref(), Some("\"n1\""));
}
