//! The loop: takes rows while there is room, gathers what ended, writes it to the
//! ledger in one go, and sends it on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rowmill_core::agent::Course;
use rowmill_core::history::History;
use rowmill_core::limits::Spend;
use rowmill_core::ports::{Event, Observer};
use rowmill_core::summary::Tally;
use rowmill_types::{ErrorKind, Message, Problem, ProblemCode, RowError, RowId};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::account::{Account, Halt};
use crate::feed::{Batch, Feed, Taken, Work};
use crate::intake::Intake;
use crate::lane::{Asking, NoTicket, Ticket};
use crate::policy::{Policy, StopCause};
use crate::prepared::{Ended, Prepared};
use crate::publish::{Content, Parcel, Publisher};
use crate::replay::{asked, replay};
use crate::wake::Woke;
use crate::work::{Done, FirstCall, Shared, work};
use crate::{Gate, Plan, Stop, Worker};

/// How many rows may be ahead of the oldest unfinished one. Beyond this the loop
/// waits for it, so that what is held for its turn stays bounded.
const MAX_AHEAD: u64 = 262_144;

/// How a run ended.
#[derive(Debug)]
pub struct RunEnd {
    /// What was counted.
    pub tally: Tally,
    /// What rows used, to foresee the next run.
    pub history: History,
    /// What the run and its earlier parts spent, or may have.
    pub spent: Spend,
    /// Why it ended before the input did, if it did.
    pub stopped: Option<StopCause>,
    /// Rows whose calls were aborted.
    pub unknown_rows: u64,
    /// How long it took.
    pub duration: Duration,
}

/// Runs a plan to its end.
///
/// # Errors
///
/// The run could not start. What happens later is told by [`RunEnd::stopped`].
pub async fn run(plan: Plan) -> Result<RunEnd, Problem> {
    let began = Instant::now();
    let publisher = Publisher::start(plan.sinks, plan.ledger.reader()?)?;
    let feed = Feed {
        source: plan.source,
        selector: plan.selector,
        ids: plan.ids,
        id_check: plan.id_check,
        resume: plan.resume,
        ledger: plan.ledger.reader()?,
    };
    let intake = Intake::new(plan.worker.attachments.clone(), plan.worker.answers.clone());
    let shared = Shared {
        run: plan.run,
        worker: plan.worker,
        observer: plan.observer.clone(),
        stop: plan.stop.clone(),
        began,
        account: Account::new(plan.budget, plan.ledger),
        all_sent: AtomicBool::new(false),
    };
    let gates = gates(&shared.worker);
    let mut driver = Driver {
        gates,
        feed: Some(feed.start()?),
        intake,
        releasing: FuturesUnordered::new(),
        head: None,
        next_ordinal: 0,
        parallel: plan.parallel.max(1),
        policy: Policy::new(plan.stop_rules),
        publisher,
        observer: plan.observer,
        stop: plan.stop,
        tally: Tally::default(),
        history: History::default(),
        stopped: None,
        in_flight: HashMap::new(),
        now: Happened::default(),
        held_back: None,
        began,
    };
    let unknown_rows = driver.drive(&shared).await;
    let Driver { tally, history, mut stopped, publisher, held_back, .. } = driver;
    publisher.send(held_back.unwrap_or_default());
    let published = tokio::task::spawn_blocking(move || publisher.finish()).await;
    let published = published.unwrap_or_else(|error| {
        Err(Problem::new(ProblemCode::Internal, "the publisher could not be ended").cause(error))
    });
    if let (Err(problem), true) = (published, !matches!(stopped, Some(StopCause::Problem(_)))) {
        stopped = Some(StopCause::Problem(problem));
    }
    let spent = shared.account.budget().spent();
    Ok(RunEnd { tally, history, spent, stopped, unknown_rows, duration: began.elapsed() })
}

/// The ways to all models of a worker, each once: voices may share them.
fn gates(worker: &Worker) -> Vec<Arc<Gate>> {
    let mut gates: Vec<Arc<Gate>> = Vec::new();
    for lane in worker.voices.iter().flat_map(|voice| &voice.lanes) {
        if !gates.iter().any(|gate| Arc::ptr_eq(gate, &lane.gate)) {
            gates.push(Arc::clone(&lane.gate));
        }
    }
    gates
}

pub(crate) fn cannot_start_thread(error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::Internal, "a thread could not be started").cause(error)
}

pub(crate) struct Driver {
    /// `None` once the input has ended or no further rows are wanted.
    pub(crate) feed: Option<mpsc::Receiver<Result<Batch, Problem>>>,
    pub(crate) intake: Intake,
    /// The ways to all models, each once.
    gates: Vec<Arc<Gate>>,
    /// Rows that have ended, whose tools give back what they kept for them.
    pub(crate) releasing: FuturesUnordered<BoxFuture<'static, ()>>,
    /// The next row, while it waits for leave to be sent.
    pub(crate) head: Option<Head>,
    next_ordinal: u64,
    parallel: usize,
    pub(crate) policy: Policy,
    pub(crate) publisher: Publisher,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) stop: Stop,
    pub(crate) tally: Tally,
    pub(crate) history: History,
    stopped: Option<StopCause>,
    /// Rows whose calls are under way, for the case that they are aborted.
    pub(crate) in_flight: HashMap<u64, (u64, RowId)>,
    pub(crate) now: Happened,
    /// Records that are published last, because the ledger is writing to its reserve and
    /// the output must not take it away.
    pub(crate) held_back: Option<Vec<Parcel>>,
    pub(crate) began: Instant,
}

/// What happened since the last write to the ledger.
#[derive(Default)]
pub(crate) struct Happened {
    pub(crate) taken: Vec<u64>,
    pub(crate) released: Vec<u64>,
    pub(crate) ended: Vec<Ended>,
    pub(crate) kept: Vec<Parcel>,
}

/// A row that waits for leave.
pub(crate) struct Head {
    prepared: Prepared,
    /// The voice and the model that it begins with.
    pub(crate) voice: usize,
    pub(crate) lane: usize,
    pub(crate) asking: Asking,
}

impl Head {
    fn new(shared: &Shared, mut prepared: Prepared) -> Option<Self> {
        prepared.asked = shared.worker.checkpoint.then(|| asked(&prepared.messages));
        let messages = &mut prepared.messages;
        let course = prepared
            .course
            .get_or_insert_with(|| Box::new(Course::start(&shared.worker.cast, std::mem::take(messages))));
        // A row that goes on with a tool asks its model soon after.
        let (voice, messages) = course.first_call().unwrap_or_default();
        let lane = shared.route(voice);
        let asking = shared.lane(voice, lane)?.asking(messages);
        Some(Self { prepared, voice, lane, asking })
    }

    fn begin<'a>(self, shared: &'a Shared, ticket: Ticket<'a>) -> impl Future<Output = Done> + use<'a> {
        let Self { prepared, voice, lane, .. } = self;
        work(shared, prepared, FirstCall { voice, lane, ticket })
    }
}

impl Driver {
    /// Returns the number of rows whose calls were aborted.
    async fn drive(&mut self, shared: &Shared) -> u64 {
        let mut flight = FuturesUnordered::new();
        if let Some(cause) = self.policy.at_start() {
            self.end_early(cause);
        }
        if self.stop.is_draining() {
            self.end_early(StopCause::Interrupted);
        }
        loop {
            while let Some((head, ticket)) = self.next_call(shared, flight.len()) {
                flight.push(head.begin(shared, ticket));
            }
            self.commit(shared);
            let all_sent = self.feed.is_none() && self.head.is_none() && self.intake.is_empty();
            shared.all_sent.store(all_sent, Ordering::Relaxed);
            if flight.is_empty() && all_sent && self.releasing.is_empty() {
                return 0;
            }
            match self.wait(shared, &mut flight).await {
                Woke::Rows(done) => self.heed_done(done, shared),
                Woke::LookedUp(ended) => ended.into_iter().for_each(|row| self.heed(row)),
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
                    drop(flight);
                    return self.abandon(shared);
                }
            }
            if self.publisher.progress.has_failed() {
                // The publisher tells what went wrong when it is joined.
                self.close_feed();
            }
        }
    }

    /// The next row that can be sent at once, with leave for it.
    fn next_call<'a>(&mut self, shared: &'a Shared, in_flight: usize) -> Option<(Head, Ticket<'a>)> {
        if !self.has_room(in_flight) {
            return None;
        }
        if self.head.is_none() {
            self.head = self.next_head(shared, in_flight);
        }
        let head = self.head.as_ref()?;
        match Ticket::try_take(&shared.account, shared.lane(head.voice, head.lane)?, head.asking)? {
            Ok(ticket) => {
                let head = self.head.take()?;
                self.sends(&head);
                Some((head, ticket))
            }
            Err(halt) => {
                self.halt(halt, shared);
                None
            }
        }
    }

    /// Notes that a row is about to be sent.
    fn sends(&mut self, head: &Head) {
        let Prepared { ordinal, id, row, .. } = &head.prepared;
        self.now.taken.push(row.number());
        self.in_flight.insert(*ordinal, (row.number(), id.clone()));
    }

    fn next_head(&mut self, shared: &Shared, in_flight: usize) -> Option<Head> {
        loop {
            if let Some(prepared) = self.intake.next_ready() {
                match self.go_on(shared, prepared) {
                    Some(prepared) => return Head::new(shared, prepared),
                    None => continue,
                }
            }
            if !self.has_room(in_flight + self.intake.held()) {
                return None;
            }
            let taken = self.intake.queue.pop_front()?;
            let Some(prepared) = self.take(taken, shared) else { continue };
            let considered = self.intake.consider(prepared);
            if let Some(prepared) = considered.and_then(|prepared| self.go_on(shared, prepared)) {
                return Head::new(shared, prepared);
            }
        }
    }

    /// Brings a row to where it was at a crash; it ends here if it cannot go on from there.
    fn go_on(&mut self, shared: &Shared, mut prepared: Prepared) -> Option<Prepared> {
        if prepared.recalled.happenings.is_empty() {
            return Some(prepared);
        }
        let before = replay(&shared.worker.cast, &mut prepared);
        let error = match before {
            Ok(()) => return Some(prepared),
            Err(error) => error,
        };
        let Prepared { ordinal, id, row, before, .. } = prepared;
        let unasked = Ended::unasked(ordinal, id, row.number(), Some(row), Err(error), self.began.elapsed());
        self.heed(Ended { calls: before.calls, tools: before.tools, ..unasked });
        None
    }

    /// Sends the next row to another model, because the one that it waits for is down.
    fn route_head(&mut self, shared: &Shared) {
        let Some(head) = &mut self.head else { return };
        let lane = shared.route(head.voice);
        if let Some(found) = shared.lane(head.voice, lane) {
            let call = head.prepared.course.as_ref().and_then(|course| course.first_call());
            (head.lane, head.asking) = (lane, found.asking(call.unwrap_or_default().1));
        }
    }

    fn has_room(&self, in_flight: usize) -> bool {
        in_flight + self.releasing.len() < self.places() && !self.lags_behind()
    }

    /// Rows that may be under way at once. Those that wait between two tries hold no slot of
    /// a gate, but a provider that fails must not swallow the whole input meanwhile.
    pub(crate) fn places(&self) -> usize {
        let slots: usize = self.gates.iter().map(|gate| gate.allowed()).sum();
        self.parallel.min(slots.saturating_mul(2))
    }

    pub(crate) fn lags_behind(&self) -> bool {
        let progress = &self.publisher.progress;
        progress.is_full() || self.next_ordinal - progress.published() >= MAX_AHEAD
    }

    /// Gives a row its place and its prompt; rows that need no call end here.
    fn take(&mut self, taken: Taken, shared: &Shared) -> Option<Prepared> {
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        let Taken { number, id, work } = taken;
        let (error, row) = match work {
            Work::Kept(span) => {
                self.now.kept.push(Parcel { ordinal, content: Content::Kept(span) });
                return None;
            }
            Work::Fail(error, row) => (error, row),
            Work::Call(row, recalled) => match shared.worker.template.render(&row) {
                Ok(prompt) => {
                    let messages = vec![Message::user(prompt)];
                    return Some(Prepared::new(ordinal, id, row, messages, recalled));
                }
                Err(error) => (error, Some(row)),
            },
        };
        self.heed(Ended::unasked(ordinal, id, number, row, Err(error), self.began.elapsed()));
        None
    }

    fn receive(&mut self, batch: Option<Result<Batch, Problem>>) {
        match batch {
            Some(Ok(batch)) => {
                self.tally.input_rows += batch.input_rows;
                self.tally.selected_rows += batch.selected;
                self.tally.skipped_rows += batch.skipped;
                let Batch { position, selected, skipped, .. } = batch;
                self.observer.observe(&Event::Read { position, selected, skipped });
                self.intake.queue.extend(batch.taken);
            }
            Some(Err(problem)) => self.end_early(StopCause::Problem(problem)),
            None => {
                self.feed = None;
                self.observer.observe(&Event::AllRead);
            }
        }
    }

    /// Decides whether the run goes on after the rows that have just ended. This comes
    /// before any further row is taken, because a row that is taken is sent.
    fn heed_done(&mut self, done: Vec<Done>, shared: &Shared) {
        let ended = done
            .iter()
            .filter_map(|done| if let Done::Ended { ended, .. } = done { Some(&**ended) } else { None });
        self.policy.saw_answers(ended);
        for done in done {
            self.release(&done, shared);
            let halt = match done {
                Done::Ended { ended, halt } => {
                    let others = self.intake.asked(&ended, shared.worker.cast.schema());
                    self.heed(*ended);
                    others.into_iter().for_each(|row| self.heed(row));
                    halt
                }
                Done::Released { prepared, halt } => {
                    self.in_flight.remove(&prepared.ordinal);
                    self.now.released.push(prepared.row.number());
                    halt
                }
            };
            if let Some(halt) = halt {
                self.halt(halt, shared);
            }
        }
    }

    /// Lets tools give back what they kept for a row. What the row was answered is written down
    /// first, because that may take a while.
    fn release(&mut self, done: &Done, shared: &Shared) {
        let Some(tools) = &shared.worker.tools else { return };
        let host = Arc::clone(&tools.host);
        let row = match done {
            Done::Ended { ended, .. } => ended.number,
            Done::Released { prepared, .. } => prepared.row.number(),
        };
        self.releasing.push(Box::pin(async move { host.release(row).await }));
    }

    fn heed(&mut self, ended: Ended) {
        if self.stopped == Some(StopCause::FirstResult) {
            // Rows that ask the same are not wanted any more, though their answer is there.
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

    fn halt(&mut self, halt: Halt, shared: &Shared) {
        self.end_early(match halt {
            Halt::Problem(problem) => StopCause::Problem(problem),
            Halt::Budget(worst) => StopCause::Budget { spent: shared.account.budget().spent(), worst },
        });
    }

    /// Takes no further rows. The first cause is the one that is told, unless it yields.
    pub(crate) fn end_early(&mut self, cause: StopCause) {
        if self.stopped.as_ref().is_none_or(|first| first.yields_to(&cause)) {
            self.stopped = Some(cause);
        }
        self.close_feed();
    }

    fn close_feed(&mut self) {
        let had_rows = self.head.take().is_some() | !self.intake.is_empty();
        if self.feed.take().is_some() || had_rows {
            self.observer.observe(&Event::Draining);
        }
        self.intake.clear();
        // Rows that wait between two tries have nothing in flight and end now.
        self.stop.drain();
    }

    /// Records rows whose calls were dropped as outcome unknown.
    fn abandon(&mut self, shared: &Shared) -> u64 {
        self.end_early(StopCause::Interrupted);
        let now = self.began.elapsed();
        let rows = std::mem::take(&mut self.in_flight);
        let unknown = rows.len() as u64;
        for (ordinal, (number, id)) in rows {
            let error = RowError::new(
                ErrorKind::Interrupted,
                "the run was aborted during the call; whether it was billed is unknown",
            );
            self.now.ended.push(Ended::unasked(ordinal, id, number, None, Err(error), now));
        }
        self.commit(shared);
        unknown
    }
}
