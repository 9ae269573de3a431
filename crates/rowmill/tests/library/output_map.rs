//! `output_map`: Langroid 0.65 calls it outside its policy in parallel batches, and even on the
//! placeholders of failed items. Here it receives only answers, and its failures follow the policy.

use rowmill::{AnsweredItem, Batch, FunctionFailure, ReturnError, ReturnNone, RowErrorKind};
use rowmill_testkit::Simulator;

use crate::kit::{At, MODEL, Notes, answered, ask, echo, echoing, raised};

type Asking<P> = Batch<usize, String, String, P>;

fn batch(simulator: &Simulator) -> Asking<rowmill::StopAtFirstFailure> {
    Batch::over(0..4_usize).prompt(ask).worker(MODEL).at(simulator)
}

fn unless_two(done: AnsweredItem<usize, String>) -> Result<String, FunctionFailure> {
    match *done.item {
        2 => Err(FunctionFailure::new("two is no good")),
        _ => Ok(done.answer),
    }
}

#[tokio::test]
async fn output_map_gets_the_item_its_place_its_answer_and_what_it_used() {
    let simulator = echo();
    let batch = Batch::over(["a", "b"]).prompt(|item: &&str| *item).worker(MODEL).at(&simulator).priced();
    let results = batch.map_answers(|done| {
        let tokens = done.usage.input + done.usage.output;
        (done.index, *done.item, done.answer, tokens, done.cost.dollars(), done.calls)
    });
    let results = results.run().await.unwrap();
    let stats = simulator.stats();
    let each = (stats.input_tokens + stats.output_tokens) / 2;
    let dollars = each as f64 / 1_000.0;
    let expected = [(0, "a", "re: a"), (1, "b", "re: b")];
    let expected = expected.map(|(index, item, text)| (index, item, text.to_owned(), each, dollars, 1));
    assert_eq!(results.items, expected);
    assert_eq!(results.report.usage.input + results.report.usage.output, each * 2);
    assert_eq!(results.report.cost.dollars(), dollars * 2.0);
}

#[tokio::test]
async fn output_map_that_fails_follows_return_exception_in_parallel_too() {
    let simulator = echo();
    let results = batch(&simulator).try_map_answers(unless_two).on_failure(ReturnError).run().await.unwrap();
    let error = results.items[2].clone().unwrap_err();
    assert_eq!((error.index(), error.kind()), (2, Some(RowErrorKind::Output)));
    assert_eq!(error.to_string(), "item 2 failed: two is no good");
    assert_eq!(results.items.into_iter().flatten().collect::<Vec<_>>(), answered([0, 1, 3]));
}

#[tokio::test]
async fn output_map_that_fails_follows_return_none() {
    let simulator = echo();
    let results = batch(&simulator).try_map_answers(unless_two).on_failure(ReturnNone).run().await.unwrap();
    assert_eq!(results.items[2], None);
    assert_eq!(results.into_iter().flatten().collect::<Vec<_>>(), answered([0, 1, 3]));
}

#[tokio::test]
async fn output_map_that_fails_follows_raise() {
    let simulator = echo();
    let error = batch(&simulator).sequential().try_map_answers(unless_two).run().await.unwrap_err();
    assert_eq!(raised(&error), (2, "two is no good".to_owned()));
    assert_eq!(error.partial().iter().flatten().count(), 2);
    assert_eq!(simulator.stats().requests, 3);
}

#[tokio::test]
async fn output_map_that_panics_is_that_items_failure() {
    let simulator = echo();
    let batch = batch(&simulator).map_answers(|done: AnsweredItem<usize, String>| {
        assert_ne!(done.index, 1, "no output for {}", done.index);
        done.answer
    });
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let error = results.items[1].clone().unwrap_err();
    assert_eq!(error.kind(), Some(RowErrorKind::Output));
    assert!(error.to_string().starts_with("item 1 failed: the output panicked: "), "{error}");
    assert!(error.to_string().contains("no output for 1"), "{error}");
    assert_eq!((results.report.ok, results.report.failed), (3, 1));
}

#[tokio::test]
async fn output_map_never_sees_an_item_that_failed() {
    let simulator = Simulator::start_blocking(echoing());
    let seen = Notes::default();
    let noted = seen.clone();
    let prompt = |item: &usize| if *item == 1 { "[[400]]".to_owned() } else { ask(item) };
    let batch = Batch::over(0..4_usize).prompt(prompt).worker(MODEL).at(&simulator);
    let batch = batch.map_answers(move |done| noted.add(done.index)).on_failure(ReturnNone);
    let results = batch.run().await.unwrap();
    let mut seen = seen.all();
    seen.sort_unstable();
    assert_eq!(seen, [0, 2, 3]);
    assert_eq!(results.items, [Some(()), None, Some(()), Some(())]);
}
