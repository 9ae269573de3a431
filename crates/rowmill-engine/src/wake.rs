//! What the loop waits for between two steps.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rowmill_types::Problem;
use tokio::time::Instant;

use crate::arrivals::{gather, receive_from};
use crate::drive::Driver;
use crate::feed::Batch;
use crate::lane::{Asking, NoTicket, Ticket, Waiting};
use crate::prepared::Ended;
use crate::work::{Done, Shared};

/// What the loop woke up for.
pub(crate) enum Woke<'a> {
    Rows(Vec<Done>),
    LookedUp(Vec<Ended>),
    Leave(Result<Ticket<'a>, NoTicket>),
    Batch(Option<Result<Batch, Problem>>),
    Drain,
    Deadline(Duration),
    Abort,
    Published,
}

impl Driver {
    /// Waits until there is something to do.
    pub(crate) async fn wait<'a, F: Future<Output = Done>>(
        &mut self,
        shared: &'a Shared,
        flight: &mut FuturesUnordered<F>,
    ) -> Woke<'a> {
        // Looked at once: were the publisher to catch up between two looks, nothing would
        // be waited for that could still wake the loop.
        let lags_behind = self.lags_behind();
        let places = self.places();
        let busy = flight.len() + self.releasing.len();
        let has_room = busy < places && !lags_behind;
        let has_place = has_room && busy + self.intake.held() < places;
        if has_place && self.head.is_none() && !self.intake.queue.is_empty() {
            return Woke::Published;
        }
        let wants_rows = has_place && self.intake.queue.is_empty();
        let draining = self.stop.is_draining();
        let at_once = if self.policy.rules().first_result { 1 } else { usize::MAX };
        let deadline = self.policy.rules().deadline.filter(|_| !draining);
        let began = self.began;
        let Self { feed, intake, head, stop, publisher, releasing, .. } = self;
        let asking = head.as_ref().filter(|_| has_room).map(|head| (head.voice, head.lane, head.asking));
        let schema = shared.worker.cast.schema();
        tokio::select! {
            biased;
            () = stop.aborted() => Woke::Abort,
            () = stop.drained(), if !draining => Woke::Drain,
            after = reached(began, deadline) => Woke::Deadline(after),
            done = gather(flight, at_once), if !flight.is_empty() => Woke::Rows(done),
            Some(()) = releasing.next(), if !releasing.is_empty() => Woke::Published,
            ended = intake.looked_up(schema, || began.elapsed()), if intake.is_looking() => Woke::LookedUp(ended),
            leave = leave(shared, asking) => Woke::Leave(leave),
            batch = receive_from(feed), if wants_rows && feed.is_some() => Woke::Batch(batch),
            () = publisher.progress.moved(), if lags_behind => Woke::Published,
        }
    }
}

/// Waits for leave to send the row that is next; for ever if there is none.
async fn leave(shared: &Shared, asking: Option<(usize, usize, Asking)>) -> Result<Ticket<'_>, NoTicket> {
    let found =
        asking.and_then(|(voice, index, asking)| Some(((voice, index), shared.lane(voice, index)?, asking)));
    let Some(((voice, index), lane, asking)) = found else { return std::future::pending().await };
    let elsewhere = || shared.has_other(voice, index);
    let waiting = Waiting { observer: &*shared.observer, elsewhere: &elsewhere };
    Ticket::take(&shared.account, lane, asking, waiting).await
}

/// Waits until the deadline; for ever if there is none.
async fn reached(began: Instant, deadline: Option<Duration>) -> Duration {
    match deadline {
        Some(after) => {
            tokio::time::sleep_until(began + after).await;
            after
        }
        None => std::future::pending().await,
    }
}
