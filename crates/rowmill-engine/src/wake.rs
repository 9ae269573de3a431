//! Where the loop waits between two iterations.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rowmill_types::Problem;
use tokio::time::Instant;

use crate::RowWorker;
use crate::answer_mapping::MappingQueue;
use crate::call_demand::CallDemand;
use crate::endpoint::{CallTicket, TicketDenied, TicketWait};
use crate::feed::ReadBatch;
use crate::loop_inputs::{collect_finished_rows, next_batch};
use crate::prepared::EndedRow;
use crate::publish::Publisher;
use crate::queue_head::QueueHead;
use crate::row_work::{RunContext, WorkedRow};
use crate::run_driver::RunDriver;

/// Why the loop woke up.
pub(crate) enum WakeReason<'a> {
    Rows(Vec<WorkedRow>),
    LookedUp(Vec<EndedRow>),
    Finished(Result<Vec<EndedRow>, Problem>),
    Ticket(Result<CallTicket<'a>, TicketDenied>),
    Batch(Option<Result<ReadBatch, Problem>>),
    Drain,
    Deadline(Duration),
    Abort,
    Published,
}

/// The next row's wait for a ticket. It continues after every wake-up, so that the row keeps its position in the queue.
pub(crate) type TicketFuture<'a> = Option<BoxFuture<'a, Result<CallTicket<'a>, TicketDenied>>>;

impl RunDriver {
    /// Waits until there is something to do.
    pub(crate) async fn wait_for_event<'a, F: Future<Output = WorkedRow>>(
        &mut self,
        shared: &'a RunContext,
        rows_in_flight: &mut FuturesUnordered<F>,
        awaited_ticket: &mut TicketFuture<'a>,
    ) -> WakeReason<'a> {
        // Read only once: if the publisher caught up between two reads, there would be nothing left to wake the loop.
        let lags_behind = self.publisher_lags();
        let places = self.row_slots();
        let busy = self.busy_slots(rows_in_flight.len());
        let has_room = busy < places && !lags_behind;
        // A row that waits for memory is woken by the end of another row.
        let is_waiting = !self.intake.prompted.is_empty() || !self.intake.wants_prompts();
        let has_place = has_room && !is_waiting && busy + self.intake.held_rows() < places;
        if has_place && self.head.is_none() && !self.intake.queue.is_empty() {
            return WakeReason::Published;
        }
        let wants_rows = has_place && self.intake.queue.is_empty();
        let draining = self.is_closed;
        let wants_first = self.policy.rules().first_result;
        let at_once = if wants_first { 1 } else { usize::MAX };
        let deadline = self.policy.rules().deadline.filter(|_| !draining);
        let began = self.began;
        let is_finishing = self.finishing.as_ref().is_some_and(MappingQueue::is_running);
        // Rows that may not be wanted any more stay in flight until that is known.
        let gathers = !(rows_in_flight.is_empty() || wants_first && is_finishing);
        let Self { feed, intake, head, stop, publisher, releasing, finishing, .. } = self;
        match head.as_ref().filter(|_| has_room) {
            Some(head) => {
                awaited_ticket
                    .get_or_insert_with(|| Box::pin(acquire_ticket(shared, TicketRequest::of(head))));
            }
            // A future that is not polled must not hold a position that others wait for.
            None => *awaited_ticket = None,
        }
        let awaits_ticket = awaited_ticket.is_some();
        let schema =
            shared.worker.assignment.shared_worker().and_then(|row_worker| row_worker.graph.schema());
        tokio::select! {
            biased;
            () = stop.wait_for_abort() => WakeReason::Abort,
            () = stop.wait_for_drain(), if !draining => WakeReason::Drain,
            after = reached(began, deadline) => WakeReason::Deadline(after),
            done = collect_finished_rows(rows_in_flight, at_once), if gathers => WakeReason::Rows(done),
            finished = finished(finishing), if is_finishing => WakeReason::Finished(finished),
            Some(()) = releasing.next(), if !releasing.is_empty() => WakeReason::Published,
            ended = intake.next_lookup(schema, || began.elapsed()), if intake.has_lookups() => WakeReason::LookedUp(ended),
            ticket = granted(awaited_ticket), if awaits_ticket => WakeReason::Ticket(ticket),
            batch = next_batch(feed), if wants_rows && feed.is_some() => WakeReason::Batch(batch),
            () = moved(publisher.as_ref()), if lags_behind => WakeReason::Published,
            () = shared.waiting_rows.changed(), if busy >= places => WakeReason::Published,
        }
    }
}

/// The call for which a ticket is requested.
struct TicketRequest {
    row_worker: Arc<RowWorker>,
    model_role: usize,
    endpoint: usize,
    demand: CallDemand,
}

impl TicketRequest {
    fn of(head: &QueueHead) -> Self {
        Self {
            row_worker: Arc::clone(&head.row_worker),
            model_role: head.model_role,
            endpoint: head.endpoint,
            demand: head.demand,
        }
    }
}

/// Continues the wait for a ticket; for ever if none is requested.
async fn granted<'a>(awaited_ticket: &mut TicketFuture<'a>) -> Result<CallTicket<'a>, TicketDenied> {
    let Some(waiting) = awaited_ticket else { return std::future::pending().await };
    let ticket = waiting.await;
    *awaited_ticket = None;
    ticket
}

/// Waits for the ticket of the next row.
async fn acquire_ticket(shared: &RunContext, sought: TicketRequest) -> Result<CallTicket<'_>, TicketDenied> {
    let TicketRequest { row_worker, model_role, endpoint: index, demand } = sought;
    let Some(endpoint) = row_worker.endpoint(model_role, index) else { return std::future::pending().await };
    let elsewhere = || row_worker.has_alternative(model_role, index);
    let waiting = TicketWait { observer: &*shared.observer, elsewhere: &elsewhere };
    CallTicket::acquire(&shared.account, endpoint, demand, waiting).await
}

/// Waits for rows that are being mapped; for ever if there are none.
async fn finished(finishing: &mut Option<MappingQueue>) -> Result<Vec<EndedRow>, Problem> {
    match finishing {
        Some(finishing) => finishing.next_mapped().await,
        None => std::future::pending().await,
    }
}

/// Waits until the publisher has made progress; for ever if there is none.
async fn moved(publisher: Option<&Publisher>) {
    match publisher {
        Some(publisher) => publisher.progress.changed().await,
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
