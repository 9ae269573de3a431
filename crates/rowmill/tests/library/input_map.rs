//! `input_map`: Langroid maps all items before anything starts and outside its policy, so that one
//! failure ends a batch before its first call. Here `prompt` is called when an item's turn comes,
//! and its failure is that item's.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rowmill::{Batch, FunctionFailure, ReturnError, RowErrorKind};
use rowmill_testkit::FakeModel;

use crate::kit::{At, MODEL, Room, answered, ask, echo, own, raised};

fn unless_two(item: &usize) -> Result<String, FunctionFailure> {
    match item {
        2 => Ok("x".parse::<u8>()?.to_string()),
        _ => Ok(ask(item)),
    }
}

#[tokio::test]
async fn input_map_that_fails_is_that_items_failure_and_others_go_on() {
    let simulator = echo();
    let batch = Batch::over(0..5_usize).prompt(unless_two).worker(MODEL).at(&simulator);
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let error = results.items[2].clone().unwrap_err();
    assert_eq!(error.kind(), Some(RowErrorKind::Prompt));
    assert_eq!(error.to_string(), "item 2 failed: invalid digit found in string");
    let others: Vec<String> = results.items.into_iter().flatten().collect();
    assert_eq!(others, answered([0, 1, 3, 4]));
    assert_eq!(simulator.stats().requests, 4);
}

#[tokio::test]
async fn input_map_that_panics_is_that_items_failure_and_others_go_on() {
    let simulator = echo();
    let batch = Batch::over(0..4_usize).worker(MODEL).at(&simulator).prompt(|item: &usize| {
        assert_ne!(*item, 1, "no prompt for {item}");
        ask(item)
    });
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let error = results.items[1].clone().unwrap_err();
    assert_eq!(error.kind(), Some(RowErrorKind::Prompt));
    assert!(error.to_string().starts_with("item 1 failed: the prompt panicked: "), "{error}");
    assert!(error.to_string().contains("no prompt for 1"), "{error}");
    assert_eq!((results.report.ok, results.report.failed, simulator.stats().requests), (3, 1, 3));
}

#[tokio::test]
async fn input_map_that_fails_under_raise_keeps_the_results_before_it() {
    let simulator = echo();
    let batch = Batch::over(0..5_usize).prompt(unless_two).worker(MODEL).at(&simulator);
    let error = batch.sequential().run().await.unwrap_err();
    assert_eq!(raised(&error), (2, "invalid digit found in string".to_owned()));
    let [first, second] = answered([0, 1]).try_into().unwrap();
    assert_eq!(error.into_partial(), [Some(first), Some(second), None, None, None]);
    assert_eq!(simulator.stats().requests, 2);
}

#[tokio::test]
async fn input_map_is_called_when_the_turn_of_an_item_comes() {
    let (model, made) = (Arc::new(FakeModel::default().hold_answers()), Room::default());
    let making = made.clone();
    let batch = Batch::over(0..100_usize).worker(own(&model)).sequential().prompt(move |item| {
        drop(making.enter());
        ask(item)
    });
    let watch = async {
        made.until_ever(1).await;
        while model.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(made.ever() <= 2, "{} prompts for one call", made.ever());
        model.release();
    };
    let (results, ()) = futures_util::future::join(batch.run(), watch).await;
    assert_eq!(results.unwrap().items.len(), 100);
    assert_eq!(made.ever(), 100);
}

#[tokio::test]
async fn input_map_that_blocks_holds_up_no_other_item() {
    let (simulator, (answered_one, one_is_answered)) = (echo(), mpsc::channel());
    let one_is_answered = Mutex::new(one_is_answered);
    let batch = Batch::over(0..5_usize).worker(MODEL).at(&simulator).prompt(move |item: &usize| {
        if *item == 0 {
            let heard = one_is_answered.lock().unwrap().recv_timeout(Duration::from_secs(30));
            heard.expect("another item should be answered while this one waits");
        }
        ask(item)
    });
    let batch = batch.on_progress(move |_| answered_one.send(()).unwrap_or_default());
    assert_eq!(batch.run().await.unwrap().into_vec(), answered(0..5));
}

#[tokio::test]
async fn input_map_gives_a_text_a_borrowed_text_or_a_result() {
    let simulator = echo();
    let batch = || Batch::over(["a", "b"]).worker(MODEL).at(&simulator);
    let owned = batch().prompt(|item: &&str| item.to_uppercase()).run().await.unwrap();
    assert_eq!(owned.into_vec(), ["re: A", "re: B"]);
    let borrowed = batch().prompt(|_: &&str| "same").run().await.unwrap();
    assert_eq!(borrowed.into_vec(), ["re: same", "re: same"]);
    let fallible = batch().prompt(|item: &&str| Ok::<_, std::fmt::Error>(*item)).run().await.unwrap();
    assert_eq!(fallible.into_vec(), ["re: a", "re: b"]);
}
