//! Reads the input outside of the loop and determines the work for each row.
//!
//! Reading, selection and the look-up of finished rows happen here, so a resume skips a million finished rows without
//! involving the loop.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use rowmill_core::ports::{Position, RecordId, RecordReader, Room, RowSource, TurnLine};
use rowmill_core::record::Record;
use rowmill_core::resume::{Resume, Standing};
use rowmill_core::select::{Choice, IdRule, IdSet, RowPlaces, RowStretch, Selector, duplicate_error};
use rowmill_types::{BadRow, Problem, ProblemCode, Row, RowError, RowId, SourceRow};

use crate::IdCheck;
use crate::panics::caught;
use crate::prepared::Recalled;

/// The size of one read: large enough to make a hand-over cheap, small enough to save memory.
const ROOM: Room = Room { rows: 256, bytes: 256 * 1024 };
/// From this many rows on, skipping them without reading them pays off.
const FAR: u64 = 64;
/// The maximum number of rows skipped at once, so that progress is reported in between.
const STRIDE: u64 = 1 << 20;

/// A row that is to have an envelope.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) number: u64,
    pub(crate) id: RowId,
    pub(crate) work: Work,
}

/// The work for a row.
#[derive(Debug)]
pub(crate) enum Work {
    /// Send it to the worker, continuing from the point of a crash.
    Call(Row, Recalled),
    /// It failed before anything could be sent.
    Fail(RowError, Option<Row>),
    /// Its record is in the ledger already; publish it.
    Kept(RecordId),
    /// Its record is in the ledger already; map its answer again.
    Again(RecordId, Result<String, RowError>),
}

/// What was read since the previous batch.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) taken: Vec<Taken>,
    pub(crate) input_rows: u64,
    pub(crate) selected: u64,
    pub(crate) skipped: u64,
    /// The numbers of the rows that were skipped.
    pub(crate) places: RowPlaces,
    pub(crate) position: Position,
}

/// The input of a read.
pub(crate) struct Feed {
    pub(crate) source: Box<dyn RowSource>,
    pub(crate) selector: Selector,
    pub(crate) ids: IdRule,
    pub(crate) id_check: IdCheck,
    pub(crate) resume: Resume,
    /// Reads back the step events of rows from before a crash.
    pub(crate) ledger: Box<dyn RecordReader>,
    /// Whether answers are mapped, including those of an earlier run.
    pub(crate) finishes: bool,
}

/// The progress of the read.
#[derive(Default)]
struct Progress {
    rows: Vec<SourceRow>,
    /// The ids of the rows so far, if they are checked while reading.
    seen: IdSet,
    /// The remaining rows, as far as they were compared with the output.
    stretches: VecDeque<RowStretch>,
}

impl Progress {
    /// How many of the next rows are known to be done.
    fn finished_rows(&self) -> u64 {
        self.stretches.front().filter(|next| next.finished.is_some()).map_or(0, |next| next.rows)
    }

    /// How many rows to read at once; rows that need not be read are excluded.
    fn rows_to_read(&self) -> usize {
        let next = self.stretches.front().map_or(u64::MAX, |next| next.rows);
        usize::try_from(next).unwrap_or(usize::MAX).min(ROOM.rows)
    }

    /// Advances by `rows`; returns the row numbers of the finished ones once the end of their row range is reached.
    fn advance(&mut self, rows: u64) -> RowPlaces {
        let Some(next) = self.stretches.front_mut() else { return RowPlaces::default() };
        next.rows = next.rows.saturating_sub(rows);
        if next.rows > 0 {
            return RowPlaces::default();
        }
        self.stretches.pop_front().and_then(|passed| passed.finished).unwrap_or_default()
    }
}

/// A read in progress.
pub(crate) struct Reader {
    feed: Feed,
    progress: Progress,
}

impl Reader {
    /// Whether no further rows are wanted.
    pub(crate) fn is_finished(&self) -> bool {
        self.feed.selector.is_finished()
    }

    /// Whether the next batch can be read without waiting for another party.
    pub(crate) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.feed.source.poll_ready(context)
    }

    /// The next batch, and whether it is the last.
    pub(crate) fn next(&mut self) -> Result<(Batch, bool), Problem> {
        let Self { feed, progress } = self;
        caught("reading the input failed", || feed.next(progress))
    }
}

impl Feed {
    /// Starts reading.
    pub(crate) fn reader(mut self) -> Reader {
        let progress = Progress { stretches: self.resume.take_stretches(), ..Progress::default() };
        Reader { feed: self, progress }
    }

    fn next(&mut self, progress: &mut Progress) -> Result<(Batch, bool), Problem> {
        let far = self.selector.to_pass().min(STRIDE);
        if far >= FAR {
            let passed = self.source.skip(far)?;
            self.selector.pass(passed);
            let position = self.source.position();
            return Ok((Batch { input_rows: passed, position, ..Batch::default() }, passed < far));
        }
        let finished = progress.finished_rows().min(self.selector.to_take()).min(STRIDE);
        if finished > 0 {
            return self.pass_finished(finished, progress);
        }
        let room = Room { rows: progress.rows_to_read(), ..ROOM };
        let Progress { rows, seen, .. } = progress;
        let more = self.source.read(rows, room)?;
        let (batch, ended) = self.choose(rows, seen)?;
        progress.advance(batch.selected);
        Ok((batch, ended || !more))
    }

    /// Skips rows that are known to be done without reading them.
    fn pass_finished(&mut self, rows: u64, progress: &mut Progress) -> Result<(Batch, bool), Problem> {
        let passed = self.source.skip(rows)?;
        self.selector.take(passed);
        let places = progress.advance(passed);
        let (input_rows, selected, skipped) = (passed, passed, passed);
        let position = self.source.position();
        let batch = Batch { input_rows, selected, skipped, places, position, ..Batch::default() };
        Ok((batch, passed < rows || self.selector.is_finished()))
    }

    fn choose(&mut self, rows: &mut Vec<SourceRow>, seen: &mut IdSet) -> Result<(Batch, bool), Problem> {
        let mut batch = Batch { position: self.source.position(), ..Batch::default() };
        for row in rows.drain(..) {
            match self.selector.decide() {
                Choice::End => return Ok((batch, true)),
                Choice::Pass => {
                    batch.input_rows += 1;
                    continue;
                }
                Choice::Take => {}
            }
            batch.input_rows += 1;
            batch.selected += 1;
            let mut taken = self.identify(row, seen);
            match self.resume.standing(&taken.id, taken.number) {
                Standing::Done => {
                    batch.skipped += 1;
                    batch.places.add(&taken.id, taken.number);
                    continue;
                }
                Standing::Kept(id) => {
                    batch.skipped += 1;
                    batch.places.add(&taken.id, taken.number);
                    taken.work = if self.finishes { self.again(id)? } else { Work::Kept(id) };
                }
                Standing::Unknown | Standing::Parked => self.recall(&mut taken)?,
                Standing::Failed => {
                    if let Work::Call(_, recalled) = &mut taken.work {
                        recalled.failed_before = true;
                    }
                }
                Standing::New => {}
            }
            batch.taken.push(taken);
        }
        // A stream may stay open after the last wanted row.
        let ended = self.selector.is_finished();
        Ok((batch, ended))
    }

    /// Reads back the turns of a row that were finished before a crash.
    fn recall(&mut self, taken: &mut Taken) -> Result<(), Problem> {
        let Work::Call(_, recalled) = &mut taken.work else { return Ok(()) };
        let (ids, told) = self.resume.turns_of(&taken.id);
        recalled.told = told;
        for id in ids {
            let line = self.ledger.read(*id)?;
            let (asked, happening) = TurnLine::parse(&line).map_err(|what| {
                Problem::new(ProblemCode::LedgerUnusable, "a turn of the ledger cannot be read").cause(what)
            })?;
            recalled.asked = Some(asked);
            recalled.happenings.push(happening);
        }
        Ok(())
    }

    /// Reads back the result of a row from an earlier run.
    fn again(&mut self, id: RecordId) -> Result<Work, Problem> {
        let record = Record::parse(self.ledger.read(id)?).and_then(|record| record.outcome());
        let outcome = record.map_err(|error| {
            Problem::new(ProblemCode::LedgerUnusable, "a record of the ledger cannot be read").cause(error)
        })?;
        Ok(Work::Again(id, outcome))
    }

    fn identify(&self, row: SourceRow, seen: &mut IdSet) -> Taken {
        let row = match row {
            Ok(row) => row,
            Err(BadRow { number, kind, message }) => {
                return Taken {
                    number,
                    id: RowId::Number(number),
                    work: Work::Fail(RowError::new(kind, message), None),
                };
            }
        };
        let number = row.number();
        let error = match self.ids.id_of(&row) {
            Ok(id) if self.id_check == IdCheck::Done || seen.insert(&id) => {
                return Taken { number, id, work: Work::Call(row, Recalled::default()) };
            }
            Ok(id) => duplicate_error(self.ids.field.as_deref().unwrap_or_default(), &id),
            Err(fault) => fault.row_error(),
        };
        Taken { number, id: RowId::Number(number), work: Work::Fail(error, Some(row)) }
    }
}
