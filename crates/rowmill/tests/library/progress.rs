//! `status_output`: Langroid shows a spinner, or writes a log line, without a count of failures, the
//! cost or the remaining time. Here nothing is shown; a program is notified of every item and shows
//! what it wants.

use std::collections::BTreeMap;
use std::time::Duration;

use rowmill::{Batch, BatchItem, BatchProgress, FunctionFailure, ReturnNone, RunEvent, RunNotice};
use rowmill_testkit::Simulator;

use crate::kit::{At, MODEL, Notes, ask, echo, echoing};

async fn unless_odd(item: BatchItem<usize>) -> Result<usize, FunctionFailure> {
    if *item % 2 == 1 { Err(FunctionFailure::new("odd")) } else { Ok(*item) }
}

#[tokio::test]
async fn status_output_is_a_hook_that_hears_of_every_item() {
    let notes = Notes::default();
    let noted = notes.clone();
    let batch = Batch::over(0..50_usize).concurrency(4).worker_fn(unless_odd).on_failure(ReturnNone);
    batch.on_progress(move |progress| noted.add(*progress)).run().await.unwrap();
    let seen: Vec<BatchProgress> = notes.all();
    assert_eq!(seen.iter().map(BatchProgress::done).collect::<Vec<_>>(), (1..=50).collect::<Vec<_>>());
    assert!(seen.iter().all(|progress| progress.total == Some(50) && progress.in_flight <= 4));
    let last = seen.last().unwrap();
    assert_eq!((last.ok, last.failed, last.kept, last.in_flight), (25, 25, 0, 0));
    assert_eq!(last.time_left(), Some(Duration::ZERO));
    assert!(last.rate() > 0.0);
}

#[tokio::test]
async fn status_output_tells_usage_and_cost_so_far() {
    let (simulator, notes) = (echo(), Notes::default());
    let noted = notes.clone();
    let batch = Batch::over(0..6_usize).prompt(ask).worker(MODEL).at(&simulator).priced();
    let results = batch.on_progress(move |progress| noted.add(*progress)).run().await.unwrap();
    let last: BatchProgress = *notes.all().last().unwrap();
    let stats = simulator.stats();
    assert_eq!((last.usage.input, last.usage.output), (stats.input_tokens, stats.output_tokens));
    assert_eq!(last.cost, results.report.cost);
    assert!(last.cost.dollars() > 0.0);
}

#[tokio::test]
async fn status_output_knows_no_total_where_nobody_does() {
    let notes = Notes::default();
    let noted = notes.clone();
    let items = futures_util::stream::iter(0..3_usize);
    let batch = Batch::over_stream(items).worker_fn(async |item: BatchItem<usize>| Ok(*item));
    batch.on_progress(move |progress| noted.add((progress.total, progress.time_left()))).run().await.unwrap();
    assert_eq!(notes.all(), [(None, None); 3]);
}

#[tokio::test]
async fn events_tell_of_everything_that_happens_to_items() {
    let (simulator, notes) = (Simulator::start_blocking(echoing()), Notes::default());
    let noted = notes.clone();
    let prompt = |item: &usize| if *item == 1 { "[[503x1]] one".to_owned() } else { ask(item) };
    let batch = Batch::over(0..5_usize).prompt(prompt).worker(MODEL).at(&simulator);
    let batch = batch.retry_wait(Duration::from_millis(1)).on_event(move |event| match event {
        RunEvent::Taken { rows } => noted.add(("taken", *rows as u64)),
        RunEvent::Ended { number, error, called, .. } => {
            assert!(error.is_none() && *called);
            noted.add(("ended", *number));
        }
        RunEvent::Retrying { number, error, .. } => {
            assert_eq!(error.status, Some(503));
            noted.add(("retrying", *number));
        }
        RunEvent::AllRead => noted.add(("all read", 1)),
        RunEvent::Draining => noted.add(("draining", 1)),
        _ => {}
    });
    batch.run().await.unwrap();
    let mut sums = BTreeMap::<&str, u64>::new();
    notes.all().into_iter().for_each(|(what, number)| *sums.entry(what).or_default() += number);
    let expected = [("all read", 1), ("ended", 1 + 2 + 3 + 4 + 5), ("retrying", 2), ("taken", 5)];
    assert_eq!(sums, BTreeMap::from(expected));
}

#[tokio::test]
async fn notices_go_to_the_program_and_nowhere_else() {
    let (simulator, notes) = (echo(), Notes::default());
    let noted = notes.clone();
    let batch = Batch::over(["a"]).prompt(|item: &&str| *item).worker("generic.m?wibble=1").at(&simulator);
    let batch = batch.on_notice(move |notice| {
        let (RunNotice::Info(text) | RunNotice::Warning(text) | RunNotice::SignIn(text)) = notice;
        noted.add(text.to_string());
    });
    // Whether the setting causes a notice or an error, it is not silently ignored.
    let refused = batch.run().await.err().map(|error| error.to_string()).unwrap_or_default();
    let message = notes.all().join("\n");
    assert!(format!("{message}{refused}").contains("wibble"), "{message} {refused}");
}
