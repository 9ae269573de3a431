//! The loop: takes rows while there is room, gathers rows that have ended, writes them to the ledger in one write, and
//! passes them on.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rowmill_core::history::AnsweredRowUsage;
use rowmill_core::ports::{NamedRow, Observer, ParkedRow, RunEvent};
use rowmill_core::select::RowNumberDigest;
use rowmill_core::summary::RunTally;
use rowmill_types::{Problem, RowErrorKind};
use tokio::time::Instant;

use crate::answer_mapping::MappingQueue;
use crate::batch_queue::BatchQueue;
use crate::endpoint::TicketDenied;
use crate::feed::ReadBatch;
use crate::intake::RowIntake;
use crate::loop_inputs::{MAX_LOOP_TURN, drop_all_rows};
use crate::memory::RowMemory;
use crate::prepared::{EndedRow, PreparedRow};
use crate::publish::{Publisher, QueuedContent, QueuedRecord};
use crate::queue_head::QueueHead;
use crate::row_work::{RunContext, WorkOutcome, WorkedRow};
use crate::run_account::RunHalt;
use crate::stop_policy::{StopCause, StopPolicy};
use crate::waiting_rows::WaitingRows;
use crate::wake::WakeReason;
use crate::{CallGate, StopHandle, WorkerAssignment};

/// How far rows may be ahead of the oldest unfinished one. Beyond this the loop waits for that row, so that the records
/// held for their turn stay bounded.
const MAX_AHEAD: u64 = 262_144;

pub(crate) struct RunDriver {
    /// `None` once the input has ended or no further rows are wanted.
    pub(crate) feed: Option<BatchQueue>,
    pub(crate) intake: RowIntake,
    /// The call gates of all models, each once, if all rows use the same models.
    pub(crate) gates: Option<Vec<Arc<CallGate>>>,
    /// Rows that wait out a refusal of their own and need no slot in the meantime.
    pub(crate) waiting_rows: Arc<WaitingRows>,
    /// Ended rows whose tools are releasing their resources.
    pub(crate) releasing: FuturesUnordered<BoxFuture<'static, ()>>,
    /// The next row, while it waits for a ticket.
    pub(crate) head: Option<QueueHead>,
    pub(crate) next_ordinal: u64,
    pub(crate) parallel: usize,
    pub(crate) memory: RowMemory,
    pub(crate) policy: StopPolicy,
    /// `None` if answers are results without mapping.
    pub(crate) finishing: Option<MappingQueue>,
    /// Whether anything reads the records of rows.
    pub(crate) keeps_records: bool,
    /// `None` if there are no sinks.
    pub(crate) publisher: Option<Publisher>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) stop: StopHandle,
    pub(crate) tally: RunTally,
    pub(crate) skipped: RowNumberDigest,
    pub(crate) history: AnsweredRowUsage,
    pub(crate) stopped: Option<StopCause>,
    /// Whether no further rows are taken, for whatever reason.
    pub(crate) is_closed: bool,
    /// The rows under way, by their position in the run.
    pub(crate) in_flight: HashSet<u64>,
    pub(crate) parked_rows: u64,
    pub(crate) uncommitted: UncommittedEvents,
    /// Records that are published last, because the ledger writes to its reserve and the output must not use that
    /// space.
    pub(crate) held_records: Option<Vec<QueuedRecord>>,
    pub(crate) began: Instant,
}

/// What happened since the last commit.
#[derive(Default)]
pub(crate) struct UncommittedEvents {
    pub(crate) taken: Vec<NamedRow>,
    pub(crate) released: Vec<NamedRow>,
    pub(crate) ended: Vec<EndedRow>,
    pub(crate) parked: Vec<ParkedRow>,
    pub(crate) kept: Vec<QueuedRecord>,
}

impl UncommittedEvents {
    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
            && self.released.is_empty()
            && self.ended.is_empty()
            && self.parked.is_empty()
            && self.kept.is_empty()
    }
}

impl RunDriver {
    /// Returns the number of rows whose calls were aborted.
    pub(crate) async fn drive(&mut self, shared: &RunContext) -> u64 {
        let mut rows_in_flight = FuturesUnordered::new();
        let mut awaited_ticket = None;
        if let Some(cause) = self.policy.stop_before_start() {
            self.stop_early(cause);
        }
        let mut turn_began = Instant::now();
        loop {
            if turn_began.elapsed() >= MAX_LOOP_TURN {
                tokio::task::yield_now().await;
                turn_began = Instant::now();
            }
            self.stop_if_asked();
            if awaited_ticket.is_some() {
                self.stop_if_hopeless();
            }
            while awaited_ticket.is_none()
                && let Some((head, ticket)) = self.next_call(shared, rows_in_flight.len())
            {
                rows_in_flight.push(head.start_row(shared, ticket));
            }
            self.park_duplicates();
            self.start_mapping(shared).await;
            self.commit(shared).await;
            let all_sent = self.feed.is_none() && self.head.is_none() && self.intake.is_empty();
            shared.all_sent.store(all_sent, Ordering::Relaxed);
            let is_published = self.releasing.is_empty() && self.finishing_rows() == 0;
            if all_sent && rows_in_flight.is_empty() && is_published {
                return 0;
            }
            match self.wait_for_event(shared, &mut rows_in_flight, &mut awaited_ticket).await {
                WakeReason::Rows(done) => self.handle_worked_row(done, shared),
                WakeReason::LookedUp(rows) => {
                    rows.into_iter().for_each(|row| self.handle_row_end(row, shared))
                }
                WakeReason::Finished(finished) => self.handle_mapped_rows(finished),
                WakeReason::Ticket(Ok(ticket)) => {
                    if let Some(head) = self.head.take() {
                        self.note_sent(&head);
                        rows_in_flight.push(head.start_row(shared, ticket));
                    }
                }
                WakeReason::Ticket(Err(TicketDenied::Halt(halt))) => self.stop_for_halt(halt, shared),
                WakeReason::Ticket(Err(TicketDenied::Down)) => self.reroute_head(shared),
                WakeReason::Published => {}
                WakeReason::Batch(batch) => self.receive(batch),
                WakeReason::Drain => self.stop_early(StopCause::Interrupted),
                WakeReason::Deadline(after) => self.stop_early(StopCause::Deadline(after)),
                WakeReason::Abort => {
                    if self.stopped != Some(StopCause::FirstResult) {
                        let done = shared.checks.finish_open_checks(&mut rows_in_flight).await;
                        self.handle_worked_row(done, shared);
                    }
                    shared.aborted.store(true, Ordering::Relaxed);
                    return self.abandon(drop_all_rows(rows_in_flight), shared).await;
                }
            }
            self.close_feed_if_unpublished();
        }
    }

    /// Duplicates of rows that were parked wait for the same answer.
    fn park_duplicates(&mut self) {
        for (duplicate, waits_for) in self.intake.take_parked_duplicates() {
            self.park_row(duplicate, waits_for);
        }
    }

    /// The stop may have been requested while the loop was busy, by a hook or from another thread.
    fn stop_if_asked(&mut self) {
        if !self.is_closed && self.stop.is_draining() {
            self.stop_early(StopCause::Interrupted);
        }
    }

    /// The publisher reports its error when it is joined.
    fn close_feed_if_unpublished(&mut self) {
        if self.publisher.as_ref().is_some_and(|publisher| publisher.progress.has_failed()) {
            self.close_feed();
        }
    }

    pub(crate) fn has_room(&self, in_flight: usize) -> bool {
        self.busy_slots(in_flight) < self.row_slots() && !self.publisher_lags()
    }

    /// Rows that hold a slot: those in flight, and those that have ended but are not completed yet.
    pub(crate) fn busy_slots(&self, in_flight: usize) -> usize {
        in_flight + self.releasing.len() + self.finishing_rows()
    }

    fn finishing_rows(&self) -> usize {
        self.finishing.as_ref().map_or(0, MappingQueue::rows)
    }

    /// The maximum number of rows under way. Rows that wait between two attempts hold no slot of a call gate, but a
    /// failing provider must not swallow the whole input meanwhile.
    pub(crate) fn row_slots(&self) -> usize {
        let waiting_rows = self.waiting_rows.freed_slots();
        let Some(gates) = &self.gates else { return self.parallel.saturating_add(waiting_rows) };
        let slots: usize = gates.iter().map(|gate| gate.max_calls_in_flight()).sum();
        self.parallel.min(slots.saturating_mul(2)).saturating_add(waiting_rows)
    }

    pub(crate) fn publisher_lags(&self) -> bool {
        let Some(publisher) = &self.publisher else { return false };
        let progress = &publisher.progress;
        progress.is_full() || self.next_ordinal - progress.published() >= MAX_AHEAD
    }

    fn receive(&mut self, batch: Option<Result<ReadBatch, Problem>>) {
        match batch {
            Some(Ok(batch)) => {
                self.tally.input_rows += batch.input_rows;
                self.tally.selected_rows += batch.selected;
                self.tally.skipped_rows += batch.skipped;
                self.parked_rows += batch.waiting;
                self.skipped.merge(batch.places);
                let ReadBatch { position, selected, skipped, .. } = batch;
                self.observer.observe(&RunEvent::Read { position, selected, skipped });
                self.intake.queue.extend(batch.taken);
            }
            Some(Err(problem)) => self.stop_early(StopCause::Problem(problem)),
            None => {
                self.feed = None;
                self.tally.all_rows = Some(self.tally.selected_rows);
                self.observer.observe(&RunEvent::AllRead);
            }
        }
    }

    /// Decides whether the run continues after the rows that have just ended. This comes before any further row is
    /// taken, because a row that is taken is sent.
    fn handle_worked_row(&mut self, done: Vec<WorkedRow>, shared: &RunContext) {
        let ended = done.iter().filter_map(|done| {
            if let WorkOutcome::Ended(ended) = &done.outcome { Some(&**ended) } else { None }
        });
        self.policy.note_answers(ended);
        for done in done {
            self.release(&done, shared);
            match done.outcome {
                WorkOutcome::Ended(ended) => {
                    let others = self.intake.resolve_duplicates(&ended, done.row_worker.graph.schema());
                    self.handle_row_end(*ended, shared);
                    others.into_iter().for_each(|row| self.handle_row_end(row, shared));
                }
                WorkOutcome::Released(prepared) => self.give_back(&prepared),
                WorkOutcome::Parked(prepared, waits_for) => self.park(*prepared, waits_for),
            }
            if let Some(halt) = done.halt {
                self.stop_for_halt(halt, shared);
            }
        }
    }

    /// Lets tools release what they kept for a row. The row's answer is recorded first, because the release may take a
    /// while.
    fn release(&mut self, done: &WorkedRow, shared: &RunContext) {
        let host = done.row_worker.tools.as_ref().map(|tools| Arc::clone(&tools.host));
        let row_workers = match &shared.worker.assignment {
            WorkerAssignment::Shared(_) => None,
            WorkerAssignment::PerRow(row_workers) => {
                Some((Arc::clone(row_workers), Arc::clone(&done.row_worker)))
            }
        };
        if host.is_none() && row_workers.is_none() {
            return;
        }
        let row = done.row();
        self.releasing.push(Box::pin(async move {
            if let Some(host) = host {
                host.release_row(row).await;
            }
            if let Some((row_workers, row_worker)) = row_workers {
                row_workers.row_ended(row_worker).await;
            }
        }));
    }

    pub(crate) fn handle_row_end(&mut self, mut ended: EndedRow, shared: &RunContext) {
        if self.stopped == Some(StopCause::FirstResult) {
            // Rows with the same request are no longer wanted, though their answer is there.
            return;
        }
        ended.redact_outcome(&shared.worker);
        // A failure is not mapped, but rows are counted in the order in which they ended.
        let is_next = ended.outcome.is_err() && self.finishing_rows() == 0;
        let counted = if is_next { Some(ended) } else { self.queue_mapping(ended) };
        if let Some(ended) = counted {
            self.count_row(ended);
        }
    }

    /// Handles rows whose results have been mapped.
    pub(crate) fn handle_mapped_rows(&mut self, finished: Result<Vec<EndedRow>, Problem>) {
        match finished {
            Ok(rows) => rows.into_iter().for_each(|ended| self.count_row(ended)),
            Err(problem) => self.stop_early(StopCause::Problem(problem)),
        }
    }

    /// Decides whether the run continues after a row.
    fn count_row(&mut self, ended: EndedRow) {
        if self.stopped == Some(StopCause::FirstResult) {
            return;
        }
        if let Some(cause) = self.policy.check_row_end(&ended) {
            let cancels = cause == StopCause::FirstResult;
            self.stop_early(cause);
            if cancels {
                self.stop.abort();
            }
        }
        self.uncommitted.ended.push(ended);
    }

    pub(crate) fn stop_for_halt(&mut self, halt: RunHalt, shared: &RunContext) {
        self.stop_early(match halt {
            RunHalt::Problem(problem) => StopCause::Problem(problem),
            RunHalt::Budget(worst) => StopCause::Budget { spent: shared.account.budget().spent(), worst },
        });
    }

    /// Takes no further rows. The first cause is reported, unless it yields to a later one.
    pub(crate) fn stop_early(&mut self, cause: StopCause) {
        if self.stopped.as_ref().is_none_or(|first| first.yields_to(&cause)) {
            self.stopped = Some(cause);
        }
        self.close_feed();
    }

    fn close_feed(&mut self) {
        self.is_closed = true;
        let had_rows = self.head.take().is_some() | !self.intake.is_empty();
        let feed = self.feed.take();
        if feed.is_some() || had_rows {
            self.observer.observe(&RunEvent::Draining);
        }
        self.intake.clear();
        if let Some(unread) = feed.and_then(BatchQueue::rows_if_last) {
            self.tally.all_rows = Some(self.tally.selected_rows + unread);
        }
        // Rows that wait between two attempts have nothing in flight and end now.
        self.stop.drain();
    }

    /// Records rows that were aborted, with all calls made for them so far. Rows for which nothing was sent have no
    /// unknown outcome: they are released.
    async fn abandon(&mut self, cut: Vec<WorkedRow>, shared: &RunContext) -> u64 {
        self.stop_early(StopCause::Interrupted);
        let mut unknown = 0;
        for done in cut {
            match done.outcome {
                WorkOutcome::Ended(mut ended) => {
                    ended.redact_outcome(&shared.worker);
                    // A row whose calls were all answered has no unknown outcome either.
                    let is_known =
                        matches!(&ended.outcome, Err(error) if error.kind == RowErrorKind::RunStopped);
                    unknown += u64::from(!is_known);
                    self.uncommitted.ended.push(*ended);
                }
                WorkOutcome::Released(prepared) => self.give_back(&prepared),
                WorkOutcome::Parked(prepared, waits_for) => self.park(*prepared, waits_for),
            }
        }
        self.finish_mapping(shared).await;
        self.commit(shared).await;
        unknown
    }

    /// Parks a row that waits for something outside of the process, and the rows with the same request.
    fn park(&mut self, prepared: PreparedRow, waits_for: Vec<String>) {
        let duplicates = prepared.key.map(|key| self.intake.park_duplicates(key, &waits_for));
        self.park_row(prepared, waits_for.clone());
        for duplicate in duplicates.into_iter().flatten() {
            self.park_row(duplicate, waits_for.clone());
        }
    }

    /// Parks a row.
    pub(crate) fn park_row(&mut self, prepared: PreparedRow, waits_for: Vec<String>) {
        let PreparedRow { ordinal, id, row, failed_before, .. } = prepared;
        self.in_flight.remove(&ordinal);
        self.parked_rows += 1;
        self.uncommitted.kept.push(QueuedRecord { ordinal, content: QueuedContent::Nothing });
        self.uncommitted.parked.push(ParkedRow { row: row.number(), id, waits_for, failed_before });
    }

    fn give_back(&mut self, prepared: &PreparedRow) {
        self.in_flight.remove(&prepared.ordinal);
        self.uncommitted.released.push(prepared.named());
    }
}
