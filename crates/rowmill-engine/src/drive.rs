//! The loop: takes rows while there is room, gathers rows that have ended, writes them to the ledger in one write, and
//! passes them on.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rowmill_core::history::History;
use rowmill_core::ports::{Event, NamedRow, Observer, ParkedRow};
use rowmill_core::select::RowPlaces;
use rowmill_core::summary::Tally;
use rowmill_types::{ErrorKind, Problem};
use tokio::time::Instant;

use crate::account::Halt;
use crate::arrivals::{TURN, cut_all};
use crate::aside::RowsAside;
use crate::batch_queue::BatchQueue;
use crate::feed::Batch;
use crate::finishing::Finishing;
use crate::heads::Head;
use crate::intake::Intake;
use crate::lane::NoTicket;
use crate::memory::RowMemory;
use crate::policy::{Policy, StopCause};
use crate::prepared::{Ended, Prepared};
use crate::publish::{Content, Parcel, Publisher};
use crate::wake::Woke;
use crate::work::{Done, Fate, Shared};
use crate::{Casting, Gate, Stop};

/// How far rows may be ahead of the oldest unfinished one. Beyond this the loop waits for that row, so that the records
/// held for their turn stay bounded.
const MAX_AHEAD: u64 = 262_144;

pub(crate) struct Driver {
    /// `None` once the input has ended or no further rows are wanted.
    pub(crate) feed: Option<BatchQueue>,
    pub(crate) intake: Intake,
    /// The call gates of all models, each once, if all rows use the same models.
    pub(crate) gates: Option<Vec<Arc<Gate>>>,
    /// Rows that wait out a refusal of their own and need no slot in the meantime.
    pub(crate) aside: Arc<RowsAside>,
    /// Ended rows whose tools are releasing their resources.
    pub(crate) releasing: FuturesUnordered<BoxFuture<'static, ()>>,
    /// The next row, while it waits for a ticket.
    pub(crate) head: Option<Head>,
    pub(crate) next_ordinal: u64,
    pub(crate) parallel: usize,
    pub(crate) memory: RowMemory,
    pub(crate) policy: Policy,
    /// `None` if answers are results without mapping.
    pub(crate) finishing: Option<Finishing>,
    /// Whether anything reads the records of rows.
    pub(crate) keeps_records: bool,
    /// `None` if there are no sinks.
    pub(crate) publisher: Option<Publisher>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) stop: Stop,
    pub(crate) tally: Tally,
    pub(crate) skipped: RowPlaces,
    pub(crate) history: History,
    pub(crate) stopped: Option<StopCause>,
    /// Whether no further rows are taken, for whatever reason.
    pub(crate) is_closed: bool,
    /// The rows under way, by their position in the run.
    pub(crate) in_flight: HashSet<u64>,
    pub(crate) parked_rows: u64,
    pub(crate) now: Happened,
    /// Records that are published last, because the ledger writes to its reserve and the output must not use that
    /// space.
    pub(crate) held_back: Option<Vec<Parcel>>,
    pub(crate) began: Instant,
}

/// What happened since the last commit.
#[derive(Default)]
pub(crate) struct Happened {
    pub(crate) taken: Vec<NamedRow>,
    pub(crate) released: Vec<NamedRow>,
    pub(crate) ended: Vec<Ended>,
    pub(crate) parked: Vec<ParkedRow>,
    pub(crate) kept: Vec<Parcel>,
}

impl Happened {
    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
            && self.released.is_empty()
            && self.ended.is_empty()
            && self.parked.is_empty()
            && self.kept.is_empty()
    }
}

impl Driver {
    /// Returns the number of rows whose calls were aborted.
    pub(crate) async fn drive(&mut self, shared: &Shared) -> u64 {
        let mut flight = FuturesUnordered::new();
        let mut leaving = None;
        if let Some(cause) = self.policy.at_start() {
            self.end_early(cause);
        }
        let mut turn_began = Instant::now();
        loop {
            if turn_began.elapsed() >= TURN {
                tokio::task::yield_now().await;
                turn_began = Instant::now();
            }
            // The stop may have been requested while the loop was busy, by a hook or from another thread.
            if !self.is_closed && self.stop.is_draining() {
                self.end_early(StopCause::Interrupted);
            }
            if leaving.is_some() {
                self.end_if_hopeless();
            }
            while leaving.is_none()
                && let Some((head, ticket)) = self.next_call(shared, flight.len())
            {
                flight.push(head.begin(shared, ticket));
            }
            self.start_finishing(shared).await;
            self.commit(shared).await;
            let all_sent = self.feed.is_none() && self.head.is_none() && self.intake.is_empty();
            shared.all_sent.store(all_sent, Ordering::Relaxed);
            if flight.is_empty() && all_sent && self.releasing.is_empty() && self.finishing_rows() == 0 {
                return 0;
            }
            match self.wait(shared, &mut flight, &mut leaving).await {
                Woke::Rows(done) => self.heed_done(done, shared),
                Woke::LookedUp(ended) => ended.into_iter().for_each(|row| self.heed(row, shared)),
                Woke::Finished(finished) => self.heed_finished(finished),
                Woke::Leave(Ok(ticket)) => {
                    if let Some(head) = self.head.take() {
                        self.sends(&head);
                        flight.push(head.begin(shared, ticket));
                    }
                }
                Woke::Leave(Err(NoTicket::Halt(halt))) => self.halt(halt, shared),
                Woke::Leave(Err(NoTicket::Down)) => self.route_head(shared),
                Woke::Published => {}
                Woke::Batch(batch) => self.receive(batch),
                Woke::Drain => self.end_early(StopCause::Interrupted),
                Woke::Deadline(after) => self.end_early(StopCause::Deadline(after)),
                Woke::Abort => {
                    if self.stopped != Some(StopCause::FirstResult) {
                        let done = shared.checks.finish(&mut flight).await;
                        self.heed_done(done, shared);
                    }
                    shared.aborted.store(true, Ordering::Relaxed);
                    return self.abandon(cut_all(flight), shared).await;
                }
            }
            if self.publisher.as_ref().is_some_and(|publisher| publisher.progress.has_failed()) {
                // The publisher reports its error when it is joined.
                self.close_feed();
            }
        }
    }

    pub(crate) fn has_room(&self, in_flight: usize) -> bool {
        self.busy(in_flight) < self.places() && !self.lags_behind()
    }

    /// Rows that hold a slot: those in flight, and those that have ended but are not completed yet.
    pub(crate) fn busy(&self, in_flight: usize) -> usize {
        in_flight + self.releasing.len() + self.finishing_rows()
    }

    fn finishing_rows(&self) -> usize {
        self.finishing.as_ref().map_or(0, Finishing::rows)
    }

    /// The maximum number of rows under way. Rows that wait between two attempts hold no slot of a call gate, but a
    /// failing provider must not swallow the whole input meanwhile.
    pub(crate) fn places(&self) -> usize {
        let aside = self.aside.places();
        let Some(gates) = &self.gates else { return self.parallel.saturating_add(aside) };
        let slots: usize = gates.iter().map(|gate| gate.allowed()).sum();
        self.parallel.min(slots.saturating_mul(2)).saturating_add(aside)
    }

    pub(crate) fn lags_behind(&self) -> bool {
        let Some(publisher) = &self.publisher else { return false };
        let progress = &publisher.progress;
        progress.is_full() || self.next_ordinal - progress.published() >= MAX_AHEAD
    }

    fn receive(&mut self, batch: Option<Result<Batch, Problem>>) {
        match batch {
            Some(Ok(batch)) => {
                self.tally.input_rows += batch.input_rows;
                self.tally.selected_rows += batch.selected;
                self.tally.skipped_rows += batch.skipped;
                self.skipped.join(batch.places);
                let Batch { position, selected, skipped, .. } = batch;
                self.observer.observe(&Event::Read { position, selected, skipped });
                self.intake.queue.extend(batch.taken);
            }
            Some(Err(problem)) => self.end_early(StopCause::Problem(problem)),
            None => {
                self.feed = None;
                self.tally.all_rows = Some(self.tally.selected_rows);
                self.observer.observe(&Event::AllRead);
            }
        }
    }

    /// Decides whether the run continues after the rows that have just ended. This comes before any further row is
    /// taken, because a row that is taken is sent.
    fn heed_done(&mut self, done: Vec<Done>, shared: &Shared) {
        let ended = done
            .iter()
            .filter_map(|done| if let Fate::Ended(ended) = &done.fate { Some(&**ended) } else { None });
        self.policy.saw_answers(ended);
        for done in done {
            self.release(&done, shared);
            match done.fate {
                Fate::Ended(ended) => {
                    let others = self.intake.asked(&ended, done.crew.cast.schema());
                    self.heed(*ended, shared);
                    others.into_iter().for_each(|row| self.heed(row, shared));
                }
                Fate::Released(prepared) => self.give_back(&prepared),
                Fate::Parked(prepared, waits_for) => self.park(*prepared, waits_for),
            }
            if let Some(halt) = done.halt {
                self.halt(halt, shared);
            }
        }
    }

    /// Lets tools release what they kept for a row. The row's answer is recorded first, because the release may take a
    /// while.
    fn release(&mut self, done: &Done, shared: &Shared) {
        let host = done.crew.tools.as_ref().map(|tools| Arc::clone(&tools.host));
        let crews = match &shared.worker.casting {
            Casting::Same(_) => None,
            Casting::Each(crews) => Some((Arc::clone(crews), Arc::clone(&done.crew))),
        };
        if host.is_none() && crews.is_none() {
            return;
        }
        let row = done.row();
        self.releasing.push(Box::pin(async move {
            if let Some(host) = host {
                host.release(row).await;
            }
            if let Some((crews, crew)) = crews {
                crews.ended(crew).await;
            }
        }));
    }

    pub(crate) fn heed(&mut self, mut ended: Ended, shared: &Shared) {
        if self.stopped == Some(StopCause::FirstResult) {
            // Rows with the same request are no longer wanted, though their answer is there.
            return;
        }
        ended.make_presentable(&shared.worker);
        // A failure is not mapped, but rows are counted in the order in which they ended.
        let is_next = ended.outcome.is_err() && self.finishing_rows() == 0;
        let counted = if is_next { Some(ended) } else { self.finish_later(ended) };
        if let Some(ended) = counted {
            self.count_row(ended);
        }
    }

    /// Handles rows whose results have been mapped.
    pub(crate) fn heed_finished(&mut self, finished: Result<Vec<Ended>, Problem>) {
        match finished {
            Ok(rows) => rows.into_iter().for_each(|ended| self.count_row(ended)),
            Err(problem) => self.end_early(StopCause::Problem(problem)),
        }
    }

    /// Decides whether the run continues after a row.
    fn count_row(&mut self, ended: Ended) {
        if self.stopped == Some(StopCause::FirstResult) {
            return;
        }
        if let Some(cause) = self.policy.heed(&ended) {
            let cancels = cause == StopCause::FirstResult;
            self.end_early(cause);
            if cancels {
                self.stop.abort();
            }
        }
        self.now.ended.push(ended);
    }

    pub(crate) fn halt(&mut self, halt: Halt, shared: &Shared) {
        self.end_early(match halt {
            Halt::Problem(problem) => StopCause::Problem(problem),
            Halt::Budget(worst) => StopCause::Budget { spent: shared.account.budget().spent(), worst },
        });
    }

    /// Takes no further rows. The first cause is reported, unless it yields to a later one.
    pub(crate) fn end_early(&mut self, cause: StopCause) {
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
            self.observer.observe(&Event::Draining);
        }
        self.intake.clear();
        if let Some(unread) = feed.and_then(BatchQueue::rows_up_to_the_end) {
            self.tally.all_rows = Some(self.tally.selected_rows + unread);
        }
        // Rows that wait between two attempts have nothing in flight and end now.
        self.stop.drain();
    }

    /// Records rows that were aborted, with all calls made for them so far. Rows for which nothing was sent have no
    /// unknown outcome: they are released.
    async fn abandon(&mut self, cut: Vec<Done>, shared: &Shared) -> u64 {
        self.end_early(StopCause::Interrupted);
        let mut unknown = 0;
        for done in cut {
            match done.fate {
                Fate::Ended(mut ended) => {
                    ended.make_presentable(&shared.worker);
                    // A row whose calls were all answered has no unknown outcome either.
                    let is_known =
                        matches!(&ended.outcome, Err(error) if error.kind == ErrorKind::RunStopped);
                    unknown += u64::from(!is_known);
                    self.now.ended.push(*ended);
                }
                Fate::Released(prepared) => self.give_back(&prepared),
                Fate::Parked(prepared, waits_for) => self.park(*prepared, waits_for),
            }
        }
        self.end_finishing(shared).await;
        self.commit(shared).await;
        unknown
    }

    /// Parks a row that waits for something outside of the process. Rows with the same request do not wait for it.
    fn park(&mut self, prepared: Prepared, waits_for: Vec<String>) {
        let Prepared { ordinal, id, row, key, .. } = prepared;
        self.in_flight.remove(&ordinal);
        self.parked_rows += 1;
        self.now.kept.push(Parcel { ordinal, content: Content::Nothing });
        self.now.parked.push(ParkedRow { row: row.number(), id, waits_for });
        if let Some(key) = key {
            self.intake.promote(key);
        }
    }

    fn give_back(&mut self, prepared: &Prepared) {
        self.in_flight.remove(&prepared.ordinal);
        self.now.released.push(prepared.named());
    }
}
