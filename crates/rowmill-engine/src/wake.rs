//! Where the loop waits between two iterations.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rowmill_types::Problem;
use tokio::time::Instant;

use crate::Crew;
use crate::arrivals::{gather, receive_from};
use crate::asking::Asking;
use crate::drive::Driver;
use crate::feed::Batch;
use crate::finishing::Finishing;
use crate::heads::Head;
use crate::lane::{NoTicket, Ticket, Waiting};
use crate::prepared::Ended;
use crate::publish::Publisher;
use crate::work::{Done, Shared};

/// Why the loop woke up.
pub(crate) enum Woke<'a> {
    Rows(Vec<Done>),
    LookedUp(Vec<Ended>),
    Finished(Result<Vec<Ended>, Problem>),
    Leave(Result<Ticket<'a>, NoTicket>),
    Batch(Option<Result<Batch, Problem>>),
    Drain,
    Deadline(Duration),
    Abort,
    Published,
}

/// The next row's wait for a ticket. It continues after every wake-up, so that the row keeps its position in the queue.
pub(crate) type Leaving<'a> = Option<BoxFuture<'a, Result<Ticket<'a>, NoTicket>>>;

impl Driver {
    /// Waits until there is something to do.
    pub(crate) async fn wait<'a, F: Future<Output = Done>>(
        &mut self,
        shared: &'a Shared,
        flight: &mut FuturesUnordered<F>,
        leaving: &mut Leaving<'a>,
    ) -> Woke<'a> {
        // Read only once: if the publisher caught up between two reads, there would be nothing left to wake the loop.
        let lags_behind = self.lags_behind();
        let places = self.places();
        let busy = self.busy(flight.len());
        let has_room = busy < places && !lags_behind;
        // A row that waits for memory is woken by the end of another row.
        let is_waiting = !self.intake.prompted.is_empty() || !self.intake.wants_prompts();
        let has_place = has_room && !is_waiting && busy + self.intake.held() < places;
        if has_place && self.head.is_none() && !self.intake.queue.is_empty() {
            return Woke::Published;
        }
        let wants_rows = has_place && self.intake.queue.is_empty();
        let draining = self.is_closed;
        let wants_first = self.policy.rules().first_result;
        let at_once = if wants_first { 1 } else { usize::MAX };
        let deadline = self.policy.rules().deadline.filter(|_| !draining);
        let began = self.began;
        let is_finishing = self.finishing.as_ref().is_some_and(Finishing::is_running);
        // Rows that may not be wanted any more stay in flight until that is known.
        let gathers = !(flight.is_empty() || wants_first && is_finishing);
        let Self { feed, intake, head, stop, publisher, releasing, finishing, .. } = self;
        match head.as_ref().filter(|_| has_room) {
            Some(head) => drop(leaving.get_or_insert_with(|| Box::pin(leave(shared, Sought::of(head))))),
            // A future that is not polled must not hold a position that others wait for.
            None => *leaving = None,
        }
        let is_leaving = leaving.is_some();
        let schema = shared.worker.casting.same().and_then(|crew| crew.cast.schema());
        tokio::select! {
            biased;
            () = stop.aborted() => Woke::Abort,
            () = stop.drained(), if !draining => Woke::Drain,
            after = reached(began, deadline) => Woke::Deadline(after),
            done = gather(flight, at_once), if gathers => Woke::Rows(done),
            finished = finished(finishing), if is_finishing => Woke::Finished(finished),
            Some(()) = releasing.next(), if !releasing.is_empty() => Woke::Published,
            ended = intake.looked_up(schema, || began.elapsed()), if intake.is_looking() => Woke::LookedUp(ended),
            leave = left(leaving), if is_leaving => Woke::Leave(leave),
            batch = receive_from(feed), if wants_rows && feed.is_some() => Woke::Batch(batch),
            () = moved(publisher.as_ref()), if lags_behind => Woke::Published,
            () = shared.aside.changed(), if busy >= places => Woke::Published,
        }
    }
}

/// The call for which a ticket is requested.
struct Sought {
    crew: Arc<Crew>,
    voice: usize,
    lane: usize,
    asking: Asking,
}

impl Sought {
    fn of(head: &Head) -> Self {
        Self { crew: Arc::clone(&head.crew), voice: head.voice, lane: head.lane, asking: head.asking }
    }
}

/// Continues the wait for a ticket; for ever if none is requested.
async fn left<'a>(leaving: &mut Leaving<'a>) -> Result<Ticket<'a>, NoTicket> {
    let Some(waiting) = leaving else { return std::future::pending().await };
    let leave = waiting.await;
    *leaving = None;
    leave
}

/// Waits for the ticket of the next row.
async fn leave(shared: &Shared, sought: Sought) -> Result<Ticket<'_>, NoTicket> {
    let Sought { crew, voice, lane: index, asking } = sought;
    let Some(lane) = crew.lane(voice, index) else { return std::future::pending().await };
    let elsewhere = || crew.has_other(voice, index);
    let waiting = Waiting { observer: &*shared.observer, elsewhere: &elsewhere };
    Ticket::take(&shared.account, lane, asking, waiting).await
}

/// Waits for rows that are being mapped; for ever if there are none.
async fn finished(finishing: &mut Option<Finishing>) -> Result<Vec<Ended>, Problem> {
    match finishing {
        Some(finishing) => finishing.finished().await,
        None => std::future::pending().await,
    }
}

/// Waits until the publisher has made progress; for ever if there is none.
async fn moved(publisher: Option<&Publisher>) {
    match publisher {
        Some(publisher) => publisher.progress.moved().await,
        None => std::future::pending().await,
    }
}

/// Waits until the deadline; for ever if there is none.
async fn reached(began: Instant, deadline: Option<Duration>) -> Duration {
    match deadline {
        Some(after) => {
            match began.checked_add(after) {
                Some(end) => tokio::time::sleep_until(end).await,
                // A time too far in the future to be represented.
                None => std::future::pending().await,
            }
            after
        }
        None => std::future::pending().await,
    }
}
