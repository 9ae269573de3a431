//! `sequential`, `batch_size`, `max_concurrency` and the order of results: in Langroid sequential is
//! the default, `batch_size` is the way to limit concurrency, and `max_concurrency` is rejected
//! together with `stop_on_first_result` and with the default. Here a rolling window is the default, all
//! settings can be combined, and results are in the order of items.

use std::sync::Arc;

use futures_util::StreamExt;
use rowmill::{Batch, BatchItem, FunctionFailure, ReturnError};
use tokio::sync::{Barrier, watch};

use crate::kit::{Notes, Room};

#[tokio::test]
async fn sequential_works_on_one_item_after_the_other_in_their_order() {
    let (notes, room) = (Notes::default(), Room::default());
    let (noted, entered) = (notes.clone(), room.clone());
    let batch = Batch::over(0..20_usize).sequential().worker_fn(move |item| {
        let (noted, entered) = (noted.clone(), entered.clone());
        async move {
            let _inside = entered.enter();
            tokio::task::yield_now().await;
            noted.add(*item);
            Ok(())
        }
    });
    batch.run().await.unwrap();
    assert_eq!(notes.all(), (0..20).collect::<Vec<_>>());
    assert_eq!((room.most(), room.ever()), (1, 20));
}

#[tokio::test]
async fn sequential_is_not_the_default() {
    let together = Arc::new(Barrier::new(64));
    let batch = Batch::over(0..64_usize).worker_fn(move |item| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            Ok(*item)
        }
    });
    // It ends only if all of them are worked on at once.
    assert_eq!(batch.run().await.unwrap().into_vec(), (0..64).collect::<Vec<_>>());
}

#[tokio::test]
async fn batch_size_begins_with_the_next_items_when_all_before_have_ended() {
    for at_once in [None, Some(1), Some(9)] {
        let (notes, room) = (Notes::default(), Room::default());
        let (noted, entered) = (notes.clone(), room.clone());
        let batch = Batch::over(0..8_usize).item_group_size(3).worker_fn(move |item| {
            let (noted, entered) = (noted.clone(), entered.clone());
            async move {
                let _inside = entered.enter();
                noted.add((*item, true));
                for _ in 0..(3 - *item % 3) * 5 {
                    tokio::task::yield_now().await;
                }
                noted.add((*item, false));
                Ok(*item)
            }
        });
        let batch = at_once.into_iter().fold(batch, |batch, most| batch.concurrency(most));
        assert_eq!(batch.run().await.unwrap().into_vec(), (0..8).collect::<Vec<_>>());
        let notes = notes.all();
        for (place, (item, begins)) in notes.iter().enumerate() {
            let ended = notes[..place].iter().filter(|(_, begins)| !begins).count();
            assert!(!begins || ended >= item / 3 * 3, "{item} began when {ended} had ended: {notes:?}");
        }
        assert!(room.most() <= at_once.unwrap_or(3).min(3), "{}", room.most());
    }
}

#[tokio::test]
async fn batch_size_counts_items_that_fail() {
    let batch = Batch::over(0..7_usize).item_group_size(2).worker_fn(async |item: BatchItem<usize>| {
        if item.is_multiple_of(2) { Err(FunctionFailure::new("even")) } else { Ok(*item) }
    });
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    assert_eq!(results.items.iter().flatten().copied().collect::<Vec<_>>(), [1, 3, 5]);
}

#[tokio::test]
async fn max_concurrency_is_a_rolling_window() {
    let (ended, watched) = watch::channel(0_usize);
    let (ended, room) = (Arc::new(ended), Room::default());
    let entered = room.clone();
    let batch = Batch::over(0..6_usize).concurrency(2).worker_fn(move |item| {
        let (ended, mut watched, entered) = (Arc::clone(&ended), watched.clone(), entered.clone());
        async move {
            let _inside = entered.enter();
            if *item == 0 {
                // The slow item delays no other: it ends when all others have.
                watched.wait_for(|ended| *ended == 5).await?;
            }
            ended.send_modify(|ended| *ended += 1);
            Ok(*item)
        }
    });
    assert_eq!(batch.run().await.unwrap().into_vec(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(room.most(), 2);
}

#[tokio::test]
async fn max_concurrency_stands_beside_batch_size_and_first() {
    let batch = || Batch::over(0..6_usize).worker_fn(async |item: BatchItem<usize>| Ok(*item));
    let both = batch().concurrency(2).item_group_size(4).run().await.unwrap();
    assert_eq!(both.into_vec(), [0, 1, 2, 3, 4, 5]);
    assert!(batch().concurrency(2).run_until_first_result().await.unwrap().result.is_some());
}

#[tokio::test]
async fn order_is_that_of_the_items_whatever_ends_first() {
    let (turn, watched) = watch::channel(9_usize);
    let turn = Arc::new(turn);
    let batch = |next: Option<Arc<watch::Sender<usize>>>| {
        let watched = watched.clone();
        Batch::over(0..10_usize).concurrency(10).worker_fn(move |item| {
            let (next, mut watched) = (next.clone(), watched.clone());
            async move {
                // The last one ends first.
                watched.wait_for(|turn| *turn == *item).await?;
                if let Some(next) = next {
                    next.send_replace(item.wrapping_sub(1));
                }
                Ok(*item)
            }
        })
    };
    let results = batch(Some(Arc::clone(&turn))).run().await.unwrap();
    assert_eq!(results.into_vec(), (0..10).collect::<Vec<_>>());
    let mut streamed = batch(None).stream();
    for item in (0..10).rev() {
        turn.send_replace(item);
        assert_eq!(streamed.next().await.unwrap().unwrap(), (item, item));
    }
}

#[tokio::test]
async fn order_holds_for_iterators_and_streams_of_items() {
    let lazy = Batch::over((0..500_usize).filter(|item| item % 5 == 0));
    let results = lazy.worker_fn(async |item: BatchItem<usize>| Ok(item.index())).run().await.unwrap();
    assert_eq!(results.into_vec(), (0..100).collect::<Vec<_>>());
    let stream = futures_util::stream::iter(0..300_usize);
    let results = Batch::over_stream(stream).worker_fn(async |item: BatchItem<usize>| Ok(*item)).run().await;
    assert_eq!(results.unwrap().into_vec(), (0..300).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_stream_may_give_its_next_item_only_after_the_result_of_the_one_before() {
    let (ended, watched) = watch::channel(0_usize);
    let items = futures_util::stream::unfold((0_usize, watched), async |(item, mut watched)| {
        watched.wait_for(|ended| *ended == item).await.unwrap();
        (item < 5).then_some((item, (item + 1, watched)))
    });
    let mut results = Batch::over_stream(items).worker_fn(async |item: BatchItem<usize>| Ok(*item)).stream();
    let mut seen = Vec::new();
    while let Some(result) = results.next().await {
        seen.push(result.unwrap().1);
        ended.send_modify(|ended| *ended += 1);
    }
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    assert_eq!(results.report().unwrap().ok, 5);
}
