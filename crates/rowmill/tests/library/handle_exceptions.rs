//! `handle_exceptions`: in Langroid RAISE loses the results that were paid for, and items cannot be
//! retried. Here an error holds the results, failures can be retried, and a batch can end at a number
//! or a share of failures.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rowmill::{
    Batch, BatchItem, FunctionFailure, ReturnError, ReturnNone, RowErrorKind, RunEvent, StopCause,
};
use tokio::sync::{Barrier, watch};

use crate::kit::{Room, accounts, raised};

async fn unless_two(item: BatchItem<usize>) -> Result<usize, FunctionFailure> {
    if *item == 2 { Err(FunctionFailure::new("two is no good")) } else { Ok(*item * 10) }
}

#[tokio::test]
async fn handle_exceptions_raise_is_the_default_and_keeps_the_results_before_it() {
    let error = Batch::over(0..6_usize).sequential().worker_fn(unless_two).run().await.unwrap_err();
    assert_eq!(raised(&error), (2, "two is no good".to_owned()));
    assert_eq!(error.to_string(), "item 2 failed: two is no good");
    assert_eq!(error.partial(), [Some(0), Some(10), None, None, None, None]);
    assert_eq!(accounts(error.report().unwrap(), 6), (2, 1, 0, 3));
}

#[tokio::test]
async fn handle_exceptions_raise_finishes_what_is_under_way_and_keeps_it() {
    let (drains, watched) = watch::channel(false);
    let together = Arc::new(Barrier::new(3));
    let batch = Batch::over(0..9_usize).concurrency(3).worker_fn(move |item| {
        let (together, mut watched) = (Arc::clone(&together), watched.clone());
        async move {
            together.wait().await;
            if *item == 0 {
                return Err(FunctionFailure::new("no good"));
            }
            watched.wait_for(|drains| *drains).await?;
            Ok(*item)
        }
    });
    let batch = batch.on_event(move |event| {
        if matches!(event, RunEvent::Draining) {
            drains.send_replace(true);
        }
    });
    let error = batch.run().await.unwrap_err();
    assert_eq!(raised(&error), (0, "no good".to_owned()));
    assert_eq!(error.partial()[..4], [None, Some(1), Some(2), None]);
    assert_eq!(accounts(error.report().unwrap(), 9), (2, 1, 0, 6));
}

#[tokio::test]
async fn handle_exceptions_return_none_goes_on() {
    let results = Batch::over(0..4_usize).worker_fn(unless_two).on_failure(ReturnNone).run().await.unwrap();
    assert_eq!(results.items, [Some(0), Some(10), None, Some(30)]);
    assert_eq!(accounts(&results.report, 4), (3, 1, 0, 0));
}

#[tokio::test]
async fn handle_exceptions_return_exception_goes_on_with_the_error_in_its_place() {
    let results = Batch::over(0..4_usize).worker_fn(unless_two).on_failure(ReturnError).run().await.unwrap();
    let error = results.items[2].as_ref().unwrap_err();
    assert_eq!((error.index(), error.kind()), (2, Some(RowErrorKind::Function)));
    assert_eq!(error.to_string(), "item 2 failed: two is no good");
    assert_eq!(results.items.iter().flatten().copied().collect::<Vec<_>>(), [0, 10, 30]);
}

#[tokio::test]
async fn handle_exceptions_treats_a_panic_as_that_items_failure() {
    let together = Arc::new(Barrier::new(4));
    let batch = Batch::over(0..4_usize).concurrency(4).worker_fn(move |item| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            assert_ne!(*item, 1, "one is {}", "no good");
            Ok(*item)
        }
    });
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let error = results.items[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), Some(RowErrorKind::Function));
    assert!(error.to_string().starts_with("item 1 failed: the worker panicked: "), "{error}");
    assert!(error.to_string().contains("one is no good"), "{error}");
    assert_eq!(results.items.iter().flatten().copied().collect::<Vec<_>>(), [0, 2, 3]);
}

#[tokio::test]
async fn handle_exceptions_treats_a_panic_before_the_future_the_same() {
    let batch = Batch::over(0..3_usize).worker_fn(|item| {
        assert_ne!(*item, 1, "not even begun");
        async move { Ok(*item) }
    });
    let error = batch.sequential().run().await.unwrap_err();
    let (index, message) = raised(&error);
    assert_eq!(index, 1);
    assert!(message.contains("not even begun"), "{message}");
}

/// Item `n` fails `n` times with a temporary failure, then succeeds.
fn passing(room: &Room) -> Batch<usize, usize> {
    let (tries, room) = (Arc::new(Mutex::new(HashMap::<usize, usize>::new())), room.clone());
    Batch::over(0..4_usize).retry_wait(Duration::from_millis(1)).worker_fn(move |item| {
        let _inside = room.enter();
        let tried = *tries.lock().unwrap().entry(*item).and_modify(|tried| *tried += 1).or_default();
        async move { if tried < *item { Err(FunctionFailure::temporary("busy")) } else { Ok(tried) } }
    })
}

#[tokio::test(start_paused = true)]
async fn retries_are_made_for_failures_that_may_pass() {
    let room = Room::default();
    let results = passing(&room).retries(2).on_failure(ReturnError).run().await.unwrap();
    assert_eq!(results.items.iter().flatten().copied().collect::<Vec<_>>(), [0, 1, 2]);
    let error = results.items[3].as_ref().unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (Some(RowErrorKind::Function), "item 3 failed: busy".into())
    );
    assert_eq!(room.ever(), 1 + 2 + 3 + 3);
}

#[tokio::test]
async fn retries_are_not_made_where_none_are_wanted_or_none_can_help() {
    let room = Room::default();
    let none = passing(&room).retries(0).on_failure(ReturnNone).run().await.unwrap();
    assert_eq!((none.items, room.ever()), (vec![Some(0), None, None, None], 4));
    let room = Room::default();
    let entered = room.clone();
    let hopeless = Batch::over(0..3_usize).retries(9).worker_fn(move |_| {
        let _inside = entered.enter();
        async { Err::<(), _>(FunctionFailure::new("no")) }
    });
    assert_eq!(hopeless.on_failure(ReturnNone).run().await.unwrap().report.failed, 3);
    assert_eq!(room.ever(), 3);
}

#[tokio::test]
async fn max_errors_ends_a_batch_that_returns_failures() {
    let batch = Batch::over(0..20_usize).sequential();
    let batch =
        batch.worker_fn(
            async |item: BatchItem<usize>| {
                if item.is_multiple_of(2) { Ok(*item) } else { Err(FunctionFailure::new("odd")) }
            },
        );
    let results = batch.max_errors(3).on_failure(ReturnError).run().await.unwrap();
    assert_eq!(results.report.stopped, Some(StopCause::MaxErrors(3)));
    assert_eq!(accounts(&results.report, 20), (3, 3, 0, 14));
    assert_eq!(results.items.len(), 20);
    let last = results.items[19].as_ref().unwrap_err();
    assert_eq!((last.index(), last.kind()), (19, None));
    assert_eq!(last.to_string(), "item 19 was not run: the batch ended before it");
}

#[tokio::test]
async fn max_error_rate_ends_a_batch_once_it_has_seen_enough() {
    let batch = Batch::over(0..100_usize).sequential();
    let batch =
        batch.worker_fn(
            async |item: BatchItem<usize>| {
                if item.is_multiple_of(4) { Err(FunctionFailure::new("fourth")) } else { Ok(*item) }
            },
        );
    let results = batch.max_error_rate(0.2, 10).on_failure(ReturnNone).run().await.unwrap();
    let stopped = results.report.stopped.clone();
    assert_eq!(stopped, Some(StopCause::ErrorRate { failed: 3, ended: 10, allowed: 0.2 }));
    assert_eq!(accounts(&results.report, 100), (7, 3, 0, 90));
}

#[tokio::test]
async fn max_error_rate_is_of_no_matter_while_fewer_fail() {
    let batch = Batch::over(0..100_usize).worker_fn(async |item: BatchItem<usize>| {
        if item.is_multiple_of(10) { Err(FunctionFailure::new("tenth")) } else { Ok(*item) }
    });
    let results = batch.max_error_rate(0.2, 10).on_failure(ReturnNone).run().await.unwrap();
    assert_eq!((accounts(&results.report, 100), results.report.stopped), ((90, 10, 0, 0), None));
}
