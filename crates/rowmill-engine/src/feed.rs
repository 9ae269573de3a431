//! Reads the input away from the loop and finds out what is to be done.
//!
//! Reading, selection and the look-up of what is done already happen here, so a
//! resume skips a million finished rows without troubling the loop.

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

/// Rows read at once: enough to make a hand-over cheap, few enough to stay small.
const ROOM: Room = Room { rows: 256, bytes: 256 * 1024 };
/// From so many rows on it pays to skip them without reading them.
const FAR: u64 = 64;
/// Rows passed at once, so that progress is told in between.
const STRIDE: u64 = 1 << 20;

/// A row that is to have an envelope.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) number: u64,
    pub(crate) id: RowId,
    pub(crate) work: Work,
}

/// What is to be done for it.
#[derive(Debug)]
pub(crate) enum Work {
    /// Ask the worker, from where a crash left it.
    Call(Row, Recalled),
    /// It failed before anything could be asked.
    Fail(RowError, Option<Row>),
    /// The ledger has its record already; publish it.
    Kept(RecordId),
    /// The same, and something is made out of what it came to.
    Again(RecordId, Result<String, RowError>),
}

/// What was read since the batch before.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) taken: Vec<Taken>,
    pub(crate) input_rows: u64,
    pub(crate) selected: u64,
    pub(crate) skipped: u64,
    /// The rows that were skipped, with their numbers.
    pub(crate) places: RowPlaces,
    pub(crate) position: Position,
}

/// What reading needs.
pub(crate) struct Feed {
    pub(crate) source: Box<dyn RowSource>,
    pub(crate) selector: Selector,
    pub(crate) ids: IdRule,
    pub(crate) id_check: IdCheck,
    pub(crate) resume: Resume,
    /// Reads back what happened to rows before a crash.
    pub(crate) ledger: Box<dyn RecordReader>,
    /// Whether something is made out of answers, those of an earlier run included.
    pub(crate) finishes: bool,
}

/// How far the reading has come.
#[derive(Default)]
struct Progress {
    rows: Vec<SourceRow>,
    /// The ids of the rows so far, where they are checked while reading.
    seen: IdSet,
    /// The rows that are still to come, as far as they were compared with the output.
    stretches: VecDeque<RowStretch>,
}

impl Progress {
    /// How many of the next rows are known to be done.
    fn finished_rows(&self) -> u64 {
        self.stretches.front().filter(|next| next.finished.is_some()).map_or(0, |next| next.rows)
    }

    /// How many rows are read at once: none that need not be read.
    fn rows_to_read(&self) -> usize {
        let next = self.stretches.front().map_or(u64::MAX, |next| next.rows);
        usize::try_from(next).unwrap_or(usize::MAX).min(ROOM.rows)
    }

    /// Continues after so many rows; tells the places of the finished ones once the last of their
    /// stretch is behind.
    fn advance(&mut self, rows: u64) -> RowPlaces {
        let Some(next) = self.stretches.front_mut() else { return RowPlaces::default() };
        next.rows = next.rows.saturating_sub(rows);
        if next.rows > 0 {
            return RowPlaces::default();
        }
        self.stretches.pop_front().and_then(|passed| passed.finished).unwrap_or_default()
    }
}

/// A read that is under way.
pub(crate) struct Reader {
    feed: Feed,
    progress: Progress,
}

impl Reader {
    /// Whether no further rows are wanted.
    pub(crate) fn is_finished(&self) -> bool {
        self.feed.selector.is_finished()
    }

    /// Whether the next batch can be read without waiting for somebody else.
    pub(crate) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.feed.source.poll_ready(context)
    }

    /// What comes next, and whether it is the last.
    pub(crate) fn next(&mut self) -> Result<(Batch, bool), Problem> {
        let Self { feed, progress } = self;
        caught("reading the input failed", || feed.next(progress))
    }
}

impl Feed {
    /// Begins to read.
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
        // A stream may stay open after the last row that is wanted.
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

    /// Reads back what a row came to in an earlier run.
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
