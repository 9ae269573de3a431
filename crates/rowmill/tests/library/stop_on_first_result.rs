//! `stop_on_first_result`: in Langroid several items that end together all keep their results, all
//! items of a slice start at once regardless of `sequential`, and a returned exception counts as a
//! result. Here exactly one result is returned, the other settings apply, a failure is not a result,
//! and every other item is accounted for.

use std::sync::Arc;

use rowmill::{Batch, BatchItem, FunctionFailure, ReturnError, ReturnNone, StopCause};
use rowmill_testkit::Simulator;
use tokio::sync::Barrier;

use crate::kit::{At, MODEL, Room, accounts, ask, echoing, raised};

#[tokio::test]
async fn stop_on_first_result_gives_exactly_one_although_all_end_together() {
    let together = Arc::new(Barrier::new(6));
    let batch = Batch::over(0..6_usize).concurrency(6).worker_fn(move |item| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            Ok(*item * 10)
        }
    });
    let first = batch.run_until_first_result().await.unwrap();
    let (index, result) = first.result.unwrap();
    assert_eq!(result, index * 10);
    assert_eq!(accounts(&first.report, 6), (1, 0, 5, 0));
    assert_eq!(first.report.stopped, Some(StopCause::FirstResult));
}

#[tokio::test]
async fn stop_on_first_result_passes_over_results_that_do_not_count() {
    let batch = Batch::over(0..6_usize).sequential();
    let batch = batch.worker_fn(async |item: BatchItem<usize>| Ok((*item == 3).then_some("found")));
    let first = batch.run_until_matching_result(Option::is_some).await.unwrap();
    assert_eq!(first.result, Some((3, Some("found"))));
    assert_eq!(accounts(&first.report, 6), (4, 0, 0, 2));
}

#[tokio::test]
async fn stop_on_first_result_keeps_to_sequential() {
    let room = Room::default();
    let inside = room.clone();
    let batch = Batch::over(0..6_usize).sequential().worker_fn(move |item| {
        let inside = inside.enter();
        async move {
            drop(inside);
            Ok(*item)
        }
    });
    let first = batch.run_until_first_result().await.unwrap();
    assert_eq!((first.result, room.ever(), room.most()), (Some((0, 0)), 1, 1));
    assert_eq!(accounts(&first.report, 6), (1, 0, 0, 5));
}

#[tokio::test]
async fn stop_on_first_result_goes_together_with_batch_size_and_starts_no_later_slice() {
    let room = Room::default();
    let inside = room.clone();
    let batch = Batch::over(0..6_usize).item_group_size(2).worker_fn(move |item| {
        let inside = inside.enter();
        async move {
            drop(inside);
            if *item < 2 { Err(FunctionFailure::new("not yet")) } else { Ok(*item) }
        }
    });
    let first = batch.on_failure(ReturnError).run_until_first_result().await.unwrap();
    assert!(matches!(first.result, Some((2 | 3, _))), "{:?}", first.result);
    assert!(room.ever() <= 4, "{} items began", room.ever());
    let (ok, failed, cancelled, not_run) = accounts(&first.report, 6);
    assert_eq!((ok, failed, cancelled + not_run), (1, 2, 3));
    assert!(not_run >= 2);
}

#[tokio::test]
async fn stop_on_first_result_does_not_stop_for_a_failure_that_is_returned() {
    for returns_none in [false, true] {
        let batch =
            Batch::over(0..4_usize).sequential().worker_fn(async |item: BatchItem<usize>| match *item {
                0 => Err(FunctionFailure::new("no")),
                1 => panic!("no"),
                other => Ok(other),
            });
        let first = match returns_none {
            true => batch.on_failure(ReturnNone).run_until_first_result().await,
            false => batch.on_failure(ReturnError).run_until_first_result().await,
        };
        let first = first.unwrap();
        assert_eq!(first.result, Some((2, 2)));
        assert_eq!(accounts(&first.report, 4), (1, 2, 0, 1));
    }
}

#[tokio::test]
async fn stop_on_first_result_under_raise_ends_with_a_failure_that_comes_before() {
    let batch = Batch::over(0..4_usize).sequential();
    let batch = batch.worker_fn(async |item: BatchItem<usize>| match *item {
        0 => Err(FunctionFailure::new("no")),
        other => Ok(other),
    });
    let error = batch.run_until_first_result().await.unwrap_err();
    assert_eq!(raised(&error), (0, "no".to_owned()));
    assert_eq!(accounts(error.report().unwrap(), 4), (0, 1, 0, 3));
}

#[tokio::test]
async fn stop_on_first_result_without_any_result_has_worked_on_all_items() {
    let batch = Batch::over(0..4_usize).worker_fn(async |item: BatchItem<usize>| Ok(*item));
    let first = batch.run_until_matching_result(|result| *result > 9).await.unwrap();
    assert_eq!((first.result, first.report.stopped.clone()), (None, None));
    assert_eq!(accounts(&first.report, 4), (4, 0, 0, 0));
    let none = Batch::over(Vec::<usize>::new()).worker_fn(async |item: BatchItem<usize>| Ok(*item));
    assert_eq!(none.run_until_first_result().await.unwrap().result, None);
}

#[tokio::test]
async fn stop_on_first_result_cancels_the_calls_of_the_other_items() {
    let simulator = Simulator::start_blocking(echoing().hold_after(0));
    let batch = Batch::over(0..9_usize).prompt(ask).worker(MODEL).at(&simulator).concurrency(4);
    let release = async {
        simulator.wait_until(|stats| stats.in_flight == 4).await;
        simulator.release_some(1);
    };
    let (first, ()) = futures_util::future::join(batch.run_until_first_result(), release).await;
    let first = first.unwrap();
    let (index, answer) = first.result.unwrap();
    assert_eq!(answer, format!("re: item {index}"));
    let stats = simulator.wait_until(|stats| stats.abandoned == 3).await;
    assert_eq!((stats.answers, stats.requests), (1, 4));
    assert_eq!(accounts(&first.report, 9), (1, 0, 3, 5));
}
