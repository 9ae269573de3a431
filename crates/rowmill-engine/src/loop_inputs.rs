//! The inputs of the loop: rows that have ended, and rows to start.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rowmill_types::Problem;
use tokio::time::Instant;

use crate::batch_queue::BatchQueue;
use crate::feed::ReadBatch;
use crate::row_work::WorkedRow;

/// Ended rows are written at the latest when this many have been gathered.
const MAX_GROUP: usize = 512;

/// The longest time that the loop works without yielding. Models that answer without waiting would otherwise starve
/// everything else, and not even a signal would be handled before the end of the input.
pub(crate) const MAX_LOOP_TURN: Duration = Duration::from_millis(10);

/// Waits until at least one row is done and takes all that are, up to `most` and for at most one turn: some models
/// compute their answers while they are polled.
pub(crate) async fn collect_finished_rows<F: Future<Output = WorkedRow>>(
    rows_in_flight: &mut FuturesUnordered<F>,
    most: usize,
) -> Vec<WorkedRow> {
    let mut done = Vec::new();
    poll_fn(|context| {
        let began = Instant::now();
        while done.len() < MAX_GROUP.min(most) && (done.is_empty() || began.elapsed() < MAX_LOOP_TURN) {
            match rows_in_flight.poll_next_unpin(context) {
                Poll::Ready(Some(row)) => done.push(row),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if done.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    done
}

/// Ends all rows that are under way; they see that the run was aborted.
pub(crate) fn drop_all_rows<F: Future<Output = WorkedRow>>(
    rows_in_flight: FuturesUnordered<F>,
) -> Vec<WorkedRow> {
    let mut context = Context::from_waker(Waker::noop());
    let mut rows_in_flight = pin!(rows_in_flight);
    let ended = rows_in_flight.as_mut().iter_pin_mut().map(|row| row.poll(&mut context));
    ended.filter_map(|polled| if let Poll::Ready(done) = polled { Some(done) } else { None }).collect()
}

/// Waits for the next batch; `None` once the input has ended.
pub(crate) async fn next_batch(feed: &mut Option<BatchQueue>) -> Option<Result<ReadBatch, Problem>> {
    match feed {
        Some(feed) => feed.next().await,
        None => None,
    }
}
