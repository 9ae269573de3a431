//! The loop: takes rows while there is room, gathers what ended, writes it to the
//! ledger in one go, and sends it on.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use rowmill_core::ports::{Event, Group, Ledger, Observer, Span};
use rowmill_core::record::{Record, total_usage};
use rowmill_core::summary::Tally;
use rowmill_types::{CallFailure, ErrorKind, Problem, ProblemCode, RowError, RowId};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::arrivals::{gather, receive_from};
use crate::feed::{Batch, Feed, Taken, Work};
use crate::publish::{Content, Parcel, Publisher};
use crate::work::{Ended, Shared, is_fatal, work};
use crate::{Plan, Stop};

/// How many rows may be ahead of the oldest unfinished one. Beyond this the loop
/// waits for it, so that what is held for its turn stays bounded.
const MAX_AHEAD: u64 = 262_144;

/// How a run ended.
#[derive(Debug)]
pub struct RunEnd {
    /// What was counted.
    pub tally: Tally,
    /// Why it ended before the input did, if it did.
    pub stopped: Option<StopCause>,
    /// Rows whose calls were aborted.
    pub unknown_rows: u64,
    /// How long it took.
    pub duration: Duration,
}

/// Why a run ended before its input did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopCause {
    /// No further row could succeed, or something could not be read or written.
    Problem(Problem),
    /// It was stopped from outside.
    Interrupted,
    /// As many rows failed as were allowed.
    MaxErrors(u64),
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
    };
    let shared = Shared {
        run: plan.run,
        worker: plan.worker,
        observer: plan.observer.clone(),
        stop: plan.stop.clone(),
        began,
    };
    let mut driver = Driver {
        feed: Some(feed.start()?),
        queue: VecDeque::new(),
        next_ordinal: 0,
        parallel: plan.parallel.max(1),
        max_errors: plan.max_errors,
        ledger: plan.ledger,
        publisher,
        observer: plan.observer,
        stop: plan.stop,
        tally: Tally::default(),
        stopped: None,
        in_flight: HashMap::new(),
        taken_now: Vec::new(),
        ended_now: Vec::new(),
        kept_now: Vec::new(),
        held_back: None,
        last_success: None,
        failed: 0,
        began,
    };
    let unknown_rows = driver.drive(&shared).await;
    let Driver { tally, mut stopped, publisher, held_back, .. } = driver;
    publisher.send(held_back.unwrap_or_default());
    let published = tokio::task::spawn_blocking(move || publisher.finish()).await;
    let published = published.unwrap_or_else(|error| {
        Err(Problem::new(ProblemCode::Internal, "the publisher could not be ended").cause(error))
    });
    if let (Err(problem), None | Some(StopCause::Interrupted | StopCause::MaxErrors(_))) =
        (published, &stopped)
    {
        stopped = Some(StopCause::Problem(problem));
    }
    Ok(RunEnd { tally, stopped, unknown_rows, duration: began.elapsed() })
}

pub(crate) fn cannot_start_thread(error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::Internal, "a thread could not be started").cause(error)
}

struct Driver {
    /// `None` once the input has ended or no further rows are wanted.
    feed: Option<mpsc::Receiver<Result<Batch, Problem>>>,
    queue: VecDeque<Taken>,
    next_ordinal: u64,
    parallel: usize,
    max_errors: Option<u64>,
    ledger: Box<dyn Ledger>,
    publisher: Publisher,
    observer: Arc<dyn Observer>,
    stop: Stop,
    tally: Tally,
    stopped: Option<StopCause>,
    /// Rows whose calls are under way, for the case that they are aborted.
    in_flight: HashMap<u64, (u64, RowId)>,
    taken_now: Vec<u64>,
    ended_now: Vec<Ended>,
    kept_now: Vec<Parcel>,
    /// Records that are published last, because the ledger is writing to its reserve and
    /// the output must not take it away.
    held_back: Option<Vec<Parcel>>,
    last_success: Option<Duration>,
    /// Rows that failed, in the ledger or on the way there.
    failed: u64,
    began: Instant,
}

/// What the loop woke up for.
enum Woke {
    Rows,
    Batch(Option<Result<Batch, Problem>>),
    Drain,
    Abort,
    Published,
}

impl Driver {
    /// Returns the number of rows whose calls were aborted.
    async fn drive(&mut self, shared: &Shared) -> u64 {
        let mut flight = FuturesUnordered::new();
        if self.max_errors == Some(0) {
            self.end_early(StopCause::MaxErrors(0));
        }
        if self.stop.is_draining() {
            self.end_early(StopCause::Interrupted);
        }
        loop {
            while self.has_room(flight.len()) {
                let Some(taken) = self.queue.pop_front() else { break };
                if let Some((ordinal, id, row)) = self.take(taken) {
                    flight.push(work(shared, ordinal, id, row));
                }
            }
            self.commit(shared.worker.include_input);
            if flight.is_empty() && self.feed.is_none() && self.queue.is_empty() {
                return 0;
            }
            match self.wait(&mut flight).await {
                Woke::Rows => self.heed_ended(),
                Woke::Published => {}
                Woke::Batch(batch) => self.receive(batch),
                Woke::Drain => self.end_early(StopCause::Interrupted),
                Woke::Abort => {
                    drop(flight);
                    return self.abandon(shared.worker.include_input);
                }
            }
            if self.publisher.progress.has_failed() {
                // The publisher tells what went wrong when it is joined.
                self.close_feed();
            }
        }
    }

    fn has_room(&self, in_flight: usize) -> bool {
        in_flight < self.parallel && !self.lags_behind()
    }

    fn lags_behind(&self) -> bool {
        let progress = &self.publisher.progress;
        progress.is_full() || self.next_ordinal - progress.published() >= MAX_AHEAD
    }

    /// Gives a row its place; rows that need no call end here.
    fn take(&mut self, taken: Taken) -> Option<(u64, RowId, rowmill_types::Row)> {
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        let Taken { number, id, work } = taken;
        match work {
            Work::Call(row) => {
                self.taken_now.push(number);
                self.in_flight.insert(ordinal, (number, id.clone()));
                Some((ordinal, id, row))
            }
            Work::Fail(error, row) => {
                let ended = Ended::unasked(ordinal, id, number, error, row, self.began.elapsed());
                self.heed(&ended);
                self.ended_now.push(ended);
                None
            }
            Work::Kept(span) => {
                self.kept_now.push(Parcel { ordinal, content: Content::Kept(span) });
                None
            }
        }
    }

    async fn wait<F: Future<Output = Ended>>(&mut self, flight: &mut FuturesUnordered<F>) -> Woke {
        // Looked at once: were the publisher to catch up between two looks, nothing would
        // be waited for that could still wake the loop.
        let lags_behind = self.lags_behind();
        let has_room = flight.len() < self.parallel && !lags_behind;
        if has_room && !self.queue.is_empty() {
            return Woke::Published;
        }
        let wants_rows = has_room && self.queue.is_empty();
        let draining = self.stop.is_draining();
        let Self { feed, ended_now, stop, publisher, .. } = self;
        tokio::select! {
            biased;
            () = stop.aborted() => Woke::Abort,
            () = stop.drained(), if !draining => Woke::Drain,
            () = gather(flight, ended_now), if !flight.is_empty() => Woke::Rows,
            batch = receive_from(feed), if wants_rows && feed.is_some() => Woke::Batch(batch),
            () = publisher.progress.moved(), if lags_behind => Woke::Published,
        }
    }

    fn receive(&mut self, batch: Option<Result<Batch, Problem>>) {
        match batch {
            Some(Ok(batch)) => {
                self.tally.input_rows += batch.input_rows;
                self.tally.selected_rows += batch.selected;
                self.tally.skipped_rows += batch.skipped;
                let Batch { position, selected, skipped, .. } = batch;
                self.observer.observe(&Event::Read { position, selected, skipped });
                self.queue.extend(batch.taken);
            }
            Some(Err(problem)) => self.end_early(StopCause::Problem(problem)),
            None => {
                self.feed = None;
                self.observer.observe(&Event::AllRead);
            }
        }
    }

    /// Writes what happened since the last time, in one write, and only then tells anyone.
    fn commit(&mut self, include_input: bool) {
        if self.taken_now.is_empty() && self.ended_now.is_empty() && self.kept_now.is_empty() {
            return;
        }
        let ended = std::mem::take(&mut self.ended_now);
        let records: Vec<Record> = ended.iter().map(|ended| ended.record(include_input)).collect();
        match self.ledger.append(Group { taken: &self.taken_now, records: &records }) {
            Err(problem) => {
                self.end_early(StopCause::Problem(problem));
                // No answer could be kept any more, so none is waited for and none is asked for.
                self.stop.abort();
            }
            Ok(appended) => {
                if appended.trouble.is_some() {
                    self.held_back.get_or_insert_default();
                }
                self.publish(&ended, records, appended.records);
                ended.iter().for_each(|ended| self.settle(ended, include_input));
                // After those that ended, so that nobody sees more in flight than allowed.
                if !self.taken_now.is_empty() {
                    self.observer.observe(&Event::Taken { rows: self.taken_now.len() });
                }
                if let Some(problem) = appended.trouble {
                    self.end_early(StopCause::Problem(problem));
                }
            }
        }
        self.taken_now.clear();
    }

    fn publish(&mut self, ended: &[Ended], records: Vec<Record>, mut offset: u64) {
        let mut parcels = std::mem::take(&mut self.kept_now);
        for (ended, record) in ended.iter().zip(records) {
            let length = record.line.len();
            let span = Span { offset, length: u32::try_from(length).unwrap_or(u32::MAX) };
            offset += length as u64;
            parcels.push(Parcel { ordinal: ended.ordinal, content: Content::Ended(record, span) });
        }
        match &mut self.held_back {
            Some(held) => held.append(&mut parcels),
            None => self.publisher.send(parcels),
        }
    }

    /// Decides whether the run goes on after the rows that have just ended. This comes
    /// before any further row is taken, because a row that is taken is sent.
    fn heed_ended(&mut self) {
        let ended = std::mem::take(&mut self.ended_now);
        let answered = ended.iter().filter(|row| row.calls.iter().any(|call| call.error.is_none()));
        self.last_success = answered.map(|row| row.end).max().or(self.last_success);
        ended.iter().for_each(|row| self.heed(row));
        self.ended_now = ended;
    }

    fn heed(&mut self, ended: &Ended) {
        self.failed += u64::from(ended.outcome.is_err());
        if let Some(problem) = self.run_stopper(ended) {
            self.end_early(StopCause::Problem(problem));
        }
        if let Some(limit) = self.max_errors.filter(|&limit| self.failed >= limit) {
            self.end_early(StopCause::MaxErrors(limit));
        }
    }

    /// Counts a row that the ledger has.
    fn settle(&mut self, ended: &Ended, include_input: bool) {
        let called = self.in_flight.remove(&ended.ordinal).is_some();
        self.tally.add(&ended.report(include_input));
        self.tally.unknown_calls += ended.unknown_calls;
        let ok = ended.outcome.is_ok();
        self.observer.observe(&Event::Ended { ok, called, usage: total_usage(&ended.calls) });
    }

    /// The problem that makes every further row pointless, if this row met one.
    fn run_stopper(&self, ended: &Ended) -> Option<Problem> {
        let error = ended.failure.as_ref()?;
        let (code, hint) = match error.failure {
            CallFailure::UnknownModel => {
                (ProblemCode::UnknownModel, "correct `--model` and run again with `--resume`")
            }
            _ if is_fatal(error) => (
                ProblemCode::Unauthorized,
                "set the right key (`rowmill models` shows where) and run again with `--resume`",
            ),
            // Nobody answered this row from its first try to its last, nor any other meanwhile.
            CallFailure::Connect if self.last_success.is_none_or(|success| success < ended.start) => (
                ProblemCode::Unreachable,
                "start the server or correct the base URL (`rowmill models` shows it), then run again with `--resume`",
            ),
            _ => return None,
        };
        Some(Problem::new(code, error.message.clone()).hint(hint))
    }

    /// Takes no further rows. The first cause is the one that is told, but a problem outranks a wish.
    fn end_early(&mut self, cause: StopCause) {
        let outranks =
            matches!((&self.stopped, &cause), (Some(StopCause::Interrupted), StopCause::Problem(_)));
        if self.stopped.is_none() || outranks {
            self.stopped = Some(cause);
        }
        self.close_feed();
    }

    fn close_feed(&mut self) {
        if self.feed.take().is_some() || !self.queue.is_empty() {
            self.observer.observe(&Event::Draining);
        }
        self.queue.clear();
        // Rows that wait between two tries have nothing in flight and end now.
        self.stop.drain();
    }

    /// Records rows whose calls were dropped as outcome unknown.
    fn abandon(&mut self, include_input: bool) -> u64 {
        self.end_early(StopCause::Interrupted);
        let now = self.began.elapsed();
        let rows = std::mem::take(&mut self.in_flight);
        let unknown = rows.len() as u64;
        for (ordinal, (number, id)) in rows {
            let error = RowError::new(
                ErrorKind::Interrupted,
                "the run was aborted during the call; whether it was billed is unknown",
            );
            self.ended_now.push(Ended::unasked(ordinal, id, number, error, None, now));
        }
        self.commit(include_input);
        unknown
    }
}
