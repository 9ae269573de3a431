//! Reads the input outside of the loop and determines the work for each row.
//!
//! Reading, selection and the look-up of finished rows happen here, so a resume skips a million finished rows without
//! involving the loop.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use rowmill_core::ports::{
    InputReadProgress, LedgerRecordId, ReadLimit, RecordReader, RowSource, RowStepEvent, RunEpoch,
};
use rowmill_core::record::RowRecord;
use rowmill_core::resume::{ResumeIndex, ResumeRowStatus};
use rowmill_core::select::{
    ComparedRowRange, IdRule, IdSet, RowChoice, RowNumberDigest, RowSelector, duplicate_id_error,
};
use rowmill_types::{BadRow, Problem, ProblemCode, Row, RowError, RowId, RowReadResult};

use crate::IdCheckPhase;
use crate::panics::catch_panic;
use crate::prepared::EarlierEvents;

/// The size of one read: large enough to make a hand-over cheap, small enough to save memory.
const ROOM: ReadLimit = ReadLimit { rows: 256, bytes: 256 * 1024 };
/// From this many rows on, skipping them without reading them pays off.
const FAR: u64 = 64;
/// The maximum number of rows skipped at once, so that progress is reported in between.
const STRIDE: u64 = 1 << 20;

/// A row that is to have an envelope.
#[derive(Debug)]
pub(crate) struct TakenRow {
    pub(crate) number: u64,
    pub(crate) id: RowId,
    pub(crate) work: RowWork,
}

/// The work for a row.
#[derive(Debug)]
pub(crate) enum RowWork {
    /// Send it to the worker, continuing from the point of a crash.
    Call(Row, EarlierEvents),
    /// It failed before anything could be sent.
    Fail(RowError, Option<Row>),
    /// Its record is in the ledger already; publish it.
    Kept(LedgerRecordId),
    /// Its record is in the ledger already; map its answer again.
    MapAgain(LedgerRecordId, Result<String, RowError>),
}

/// What was read since the previous batch.
#[derive(Debug, Default)]
pub(crate) struct ReadBatch {
    pub(crate) taken: Vec<TakenRow>,
    pub(crate) input_rows: u64,
    pub(crate) selected: u64,
    pub(crate) skipped: u64,
    /// Rows that wait for something that is not there yet.
    pub(crate) waiting: u64,
    /// The numbers of the rows that were skipped.
    pub(crate) places: RowNumberDigest,
    pub(crate) position: InputReadProgress,
}

/// The input of a read.
pub(crate) struct RowFeed {
    pub(crate) source: Box<dyn RowSource>,
    pub(crate) selector: RowSelector,
    pub(crate) ids: IdRule,
    pub(crate) id_check: IdCheckPhase,
    pub(crate) resume: ResumeIndex,
    /// Reads back the step events of rows from before a crash.
    pub(crate) ledger: Box<dyn RecordReader>,
    /// Whether answers are mapped, including those of an earlier run.
    pub(crate) maps_answers: bool,
    /// The part of the run.
    pub(crate) epoch: RunEpoch,
}

/// The progress of the read.
#[derive(Default)]
struct ReadProgress {
    rows: Vec<RowReadResult>,
    /// The ids of the rows so far, if they are checked while reading.
    seen: IdSet,
    /// The remaining rows, as far as they were compared with the output.
    stretches: VecDeque<ComparedRowRange>,
}

impl ReadProgress {
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
    fn advance(&mut self, rows: u64) -> RowNumberDigest {
        let Some(next) = self.stretches.front_mut() else { return RowNumberDigest::default() };
        next.rows = next.rows.saturating_sub(rows);
        if next.rows > 0 {
            return RowNumberDigest::default();
        }
        self.stretches.pop_front().and_then(|passed| passed.finished).unwrap_or_default()
    }
}

/// A read in progress.
pub(crate) struct RowReader {
    feed: RowFeed,
    progress: ReadProgress,
}

impl RowReader {
    /// Whether no further rows are wanted.
    pub(crate) fn is_finished(&self) -> bool {
        self.feed.selector.is_finished()
    }

    /// Whether the next batch can be read without waiting for another party.
    pub(crate) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.feed.source.poll_ready(context)
    }

    /// The next batch, and whether it is the last.
    pub(crate) fn next(&mut self) -> Result<(ReadBatch, bool), Problem> {
        let Self { feed, progress } = self;
        catch_panic("reading the input failed", || feed.next(progress))
    }
}

impl RowFeed {
    /// Starts reading.
    pub(crate) fn reader(mut self) -> RowReader {
        let progress =
            ReadProgress { stretches: self.resume.take_compared_ranges(), ..ReadProgress::default() };
        RowReader { feed: self, progress }
    }

    fn next(&mut self, progress: &mut ReadProgress) -> Result<(ReadBatch, bool), Problem> {
        let far = self.selector.certain_skips().min(STRIDE);
        if far >= FAR {
            let passed = self.source.skip(far)?;
            self.selector.skip_candidates(passed);
            let position = self.source.position();
            return Ok((ReadBatch { input_rows: passed, position, ..ReadBatch::default() }, passed < far));
        }
        let finished = progress.finished_rows().min(self.selector.certain_takes()).min(STRIDE);
        if finished > 0 {
            return self.pass_finished(finished, progress);
        }
        let room = ReadLimit { rows: progress.rows_to_read(), ..ROOM };
        let ReadProgress { rows, seen, .. } = progress;
        let more = self.source.read(rows, room)?;
        let (batch, ended) = self.choose(rows, seen)?;
        progress.advance(batch.selected);
        Ok((batch, ended || !more))
    }

    /// Skips rows that are known to be done without reading them.
    fn pass_finished(
        &mut self,
        rows: u64,
        progress: &mut ReadProgress,
    ) -> Result<(ReadBatch, bool), Problem> {
        let passed = self.source.skip(rows)?;
        self.selector.record_taken_candidates(passed);
        let places = progress.advance(passed);
        let (input_rows, selected, skipped) = (passed, passed, passed);
        let position = self.source.position();
        let batch = ReadBatch { input_rows, selected, skipped, places, position, ..ReadBatch::default() };
        Ok((batch, passed < rows || self.selector.is_finished()))
    }

    fn choose(
        &mut self,
        rows: &mut Vec<RowReadResult>,
        seen: &mut IdSet,
    ) -> Result<(ReadBatch, bool), Problem> {
        let mut batch = ReadBatch { position: self.source.position(), ..ReadBatch::default() };
        for row in rows.drain(..) {
            match self.selector.decide() {
                RowChoice::End => return Ok((batch, true)),
                RowChoice::Skip => {
                    batch.input_rows += 1;
                    continue;
                }
                RowChoice::Take => {}
            }
            batch.input_rows += 1;
            batch.selected += 1;
            let mut taken = self.identify(row, seen);
            match self.resume.row_status(&taken.id, taken.number) {
                ResumeRowStatus::Done => {
                    batch.skipped += 1;
                    batch.places.add(&taken.id, taken.number);
                    continue;
                }
                ResumeRowStatus::Kept(id) => {
                    batch.skipped += 1;
                    batch.places.add(&taken.id, taken.number);
                    taken.work = if self.maps_answers { self.again(id)? } else { RowWork::Kept(id) };
                }
                ResumeRowStatus::Waiting => {
                    batch.waiting += 1;
                    continue;
                }
                ResumeRowStatus::Unknown => self.recall(&mut taken)?,
                ResumeRowStatus::Parked => {
                    self.recall(&mut taken)?;
                    if let RowWork::Call(_, recalled) = &mut taken.work {
                        recalled.was_parked = true;
                    }
                }
                ResumeRowStatus::Failed => {
                    if let RowWork::Call(_, recalled) = &mut taken.work {
                        recalled.failed_before = Some(self.epoch);
                    }
                }
                ResumeRowStatus::New => {}
            }
            batch.taken.push(taken);
        }
        // A stream may stay open after the last wanted row.
        let ended = self.selector.is_finished();
        Ok((batch, ended))
    }

    /// Reads back the turns of a row that were finished before a crash.
    fn recall(&mut self, taken: &mut TakenRow) -> Result<(), Problem> {
        let RowWork::Call(_, recalled) = &mut taken.work else { return Ok(()) };
        recalled.failed_before = self.resume.parked_row_retry_epoch(&taken.id);
        let (ids, reported) = self.resume.step_event_records(&taken.id);
        recalled.reported = reported;
        for id in ids {
            let line = self.ledger.read(*id)?;
            let (asked, step_event) = RowStepEvent::parse(&line).map_err(|what| {
                Problem::new(ProblemCode::LedgerUnusable, "a turn of the ledger cannot be read").cause(what)
            })?;
            recalled.question_key = Some(asked);
            recalled.step_events.push(step_event);
        }
        Ok(())
    }

    /// Reads back the result of a row from an earlier run.
    fn again(&mut self, id: LedgerRecordId) -> Result<RowWork, Problem> {
        let record = RowRecord::parse(self.ledger.read(id)?).and_then(|record| record.outcome());
        let outcome = record.map_err(|error| {
            Problem::new(ProblemCode::LedgerUnusable, "a record of the ledger cannot be read").cause(error)
        })?;
        Ok(RowWork::MapAgain(id, outcome))
    }

    fn identify(&self, row: RowReadResult, seen: &mut IdSet) -> TakenRow {
        let row = match row {
            Ok(row) => row,
            Err(BadRow { number, kind, message }) => {
                return TakenRow {
                    number,
                    id: RowId::Number(number),
                    work: RowWork::Fail(RowError::new(kind, message), None),
                };
            }
        };
        let number = row.number();
        let error = match self.ids.row_id(&row) {
            Ok(id) if self.id_check == IdCheckPhase::Done || seen.insert(&id) => {
                return TakenRow { number, id, work: RowWork::Call(row, EarlierEvents::default()) };
            }
            Ok(id) => duplicate_id_error(self.ids.field.as_deref().unwrap_or_default(), &id),
            Err(fault) => fault.row_error(),
        };
        TakenRow { number, id: RowId::Number(number), work: RowWork::Fail(error, Some(row)) }
    }
}
