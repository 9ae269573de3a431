//! What the loop waits for: rows that end, and rows to begin.

use std::future::poll_fn;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rowmill_types::Problem;
use tokio::sync::mpsc;

use crate::feed::Batch;
use crate::work::Ended;

/// Rows that ended are written at the latest when this many are gathered.
const MAX_GROUP: usize = 512;

/// Waits until at least one row has ended and takes all that have.
pub(crate) async fn gather<F: Future<Output = Ended>>(
    flight: &mut FuturesUnordered<F>,
    ended: &mut Vec<Ended>,
) {
    poll_fn(|context| {
        while ended.len() < MAX_GROUP {
            match flight.poll_next_unpin(context) {
                Poll::Ready(Some(row)) => ended.push(row),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if ended.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

/// Waits for the next batch; there is none from an input that has ended.
pub(crate) async fn receive_from(
    feed: &mut Option<mpsc::Receiver<Result<Batch, Problem>>>,
) -> Option<Result<Batch, Problem>> {
    match feed {
        Some(feed) => feed.recv().await,
        None => None,
    }
}
