//! Splits blocks into records without holding one that is too long.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use rowmill_core::ports::InputReadProgress;
use rowmill_types::Problem;

use super::overlong::{MoreInput, OverlongEnd, RecordForm, RecordStart, SkippedPart};
use crate::block_reader::{BlockReader, ReadWait};

/// The initial size of the buffers, to which they shrink after a long record.
const SMALL_OUTPUT: usize = 16 * 1024;
const LARGE_OUTPUT: usize = 1024 * 1024;
const FEW_FIELDS: usize = 32;

/// The result of reading a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CsvRecord<'b> {
    /// A record with its quotes resolved.
    Fields(CsvFields<'b>),
    /// A record with more fields than allowed, which was skipped.
    TooManyFields,
    /// A record longer than the limit, which was skipped.
    TooLong(OverlongEnd),
    /// The input ended inside quotes.
    Unclosed,
    /// The input has ended.
    End,
    /// The record is not complete yet; asking again reads more, which may wait.
    Pending,
}

/// The fields of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CsvFields<'b> {
    /// All fields, one after the other.
    pub(crate) bytes: &'b [u8],
    /// The end of each field in `bytes`.
    pub(crate) ends: &'b [usize],
}

impl<'b> CsvFields<'b> {
    /// The range of each field in `bytes`.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + use<'b> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied()).map(|(start, end)| start..end)
    }
}

/// The maximum size of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordBounds {
    /// The maximum bytes of input.
    pub(crate) bytes: usize,
    /// The maximum number of fields.
    pub(crate) fields: usize,
}

/// The result of skipping a part of a record.
enum SkipProgress {
    GoesOn,
    NeedsMore,
    Ended(OverlongEnd),
}

/// The records of an input. Blank lines between them are skipped.
#[derive(Debug)]
pub(crate) struct CsvRecordReader {
    blocks: BlockReader,
    reader: Reader,
    bounds: RecordBounds,
    output: Vec<u8>,
    ends: Vec<usize>,
    /// How much of `output` and `ends` the current record has filled.
    filled: (usize, usize),
    /// The bytes of input that the current record has used.
    taken: usize,
    /// The input line on which the current record started.
    line: u64,
    too_many: bool,
    /// The part of an overlong record that is skipped next.
    passing: Option<SkippedPart>,
    delimiter: u8,
    /// What records look like, once the header has been read.
    form: Option<RecordForm>,
    /// No more bytes will come.
    exhausted: bool,
}

impl CsvRecordReader {
    pub(crate) fn new(blocks: BlockReader, bounds: RecordBounds) -> Self {
        Self {
            blocks,
            reader: Reader::new(),
            bounds,
            output: vec![0; SMALL_OUTPUT],
            ends: vec![0; FEW_FIELDS.min(bounds.fields + 1)],
            filled: (0, 0),
            taken: 0,
            line: 1,
            too_many: false,
            passing: None,
            delimiter: b',',
            form: None,
            exhausted: false,
        }
    }

    #[cfg(test)]
    pub(super) fn set_bounds(&mut self, bounds: RecordBounds) {
        self.bounds = bounds;
        self.ends = vec![0; FEW_FIELDS.min(bounds.fields + 1)];
    }

    /// The name of the input.
    pub(crate) fn name(&self) -> &str {
        self.blocks.name()
    }

    /// The bytes that have not been read yet, to examine before the first record.
    pub(crate) fn blocks(&mut self) -> &mut BlockReader {
        &mut self.blocks
    }

    /// Sets the delimiter before the first record; the default is a comma.
    pub(crate) fn set_delimiter(&mut self, delimiter: u8) {
        self.delimiter = delimiter;
        self.reader = ReaderBuilder::new().delimiter(delimiter).build();
    }

    /// From the next record on, limits records to as many fields as the header has columns.
    pub(crate) fn set_columns(&mut self, columns: usize) {
        self.form = Some(RecordForm { delimiter: self.delimiter, columns });
        self.bounds.fields = columns;
        self.ends.resize(columns + 1, 0);
    }

    /// The input line, counted from 1, on which the last record started.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    pub(crate) fn position(&self) -> InputReadProgress {
        self.blocks.position()
    }

    /// The next record.
    pub(crate) fn next(&mut self, wait: ReadWait) -> Result<CsvRecord<'_>, Problem> {
        loop {
            self.skip_line_ends();
            if self.blocks.unread_bytes().is_empty() && !self.exhausted {
                if wait == ReadWait::No {
                    return Ok(CsvRecord::Pending);
                }
                self.exhausted = !self.blocks.fill()?;
                continue;
            }
            if self.blocks.unread_bytes().is_empty() {
                return Ok(self.close());
            }
            if let Some(part) = self.passing {
                match self.pass_over(part) {
                    SkipProgress::GoesOn => {}
                    SkipProgress::NeedsMore if wait == ReadWait::No => return Ok(CsvRecord::Pending),
                    SkipProgress::NeedsMore => self.exhausted = !self.blocks.fill()?,
                    SkipProgress::Ended(how) => return Ok(self.end_overlong(how)),
                }
                continue;
            }
            if self.taken > self.bounds.bytes {
                if self.form.is_none() {
                    // Without a header, nothing after it can be read.
                    return Ok(self.end_with(CsvRecord::TooLong(OverlongEnd::Unclosed)));
                }
                self.output = vec![0; SMALL_OUTPUT];
                self.passing = Some(SkippedPart::Line);
                continue;
            }
            match self.step() {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.output.resize(self.output.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.make_room_for_ends(),
                ReadRecordResult::Record => return Ok(self.finish_record()),
                // Returned only for the empty input that `close` passes in.
                ReadRecordResult::End => return Ok(CsvRecord::End),
            }
        }
    }

    /// Skips a part of a record that is too long.
    fn pass_over(&mut self, part: SkippedPart) -> SkipProgress {
        match part {
            SkippedPart::Line => {
                let unused = self.blocks.unread_bytes();
                let end = memchr::memchr(b'\n', unused);
                let mut left = end.map_or(unused.len(), |end| end + 1);
                while left > 0 {
                    let input = self.blocks.unread_bytes().get(..left).unwrap_or_default();
                    let (result, read, ..) = self.reader.read_record(input, &mut self.output, &mut self.ends);
                    self.blocks.consume(read);
                    left -= read;
                    if result == ReadRecordResult::Record {
                        return SkipProgress::Ended(OverlongEnd::Ended);
                    }
                }
                if end.is_some() {
                    self.passing = Some(SkippedPart::LineStart);
                }
                SkipProgress::GoesOn
            }
            SkippedPart::LineStart => {
                let rest = if self.exhausted { MoreInput::None } else { MoreInput::MayCome };
                let form = self.form.map(|form| form.resumption(self.blocks.unread_bytes(), rest));
                match form {
                    Some(RecordStart::Here) => {
                        SkipProgress::Ended(OverlongEnd::StrayQuote { next_line: self.reader.line() })
                    }
                    Some(RecordStart::Unknown) => SkipProgress::NeedsMore,
                    Some(RecordStart::NotHere) | None => {
                        self.passing = Some(SkippedPart::Line);
                        SkipProgress::GoesOn
                    }
                }
            }
        }
    }

    fn step(&mut self) -> ReadRecordResult {
        let output = self.output.get_mut(self.filled.0..).unwrap_or_default();
        let ends = self.ends.get_mut(self.filled.1..).unwrap_or_default();
        // Whether a record is too long must not depend on how its bytes arrived.
        let unused = self.blocks.unread_bytes();
        let input = unused.get(..self.bounds.bytes + 1 - self.taken).unwrap_or(unused);
        let (result, read, written, ended) = self.reader.read_record(input, output, ends);
        self.blocks.consume(read);
        self.taken += read;
        self.filled.0 += written;
        self.filled.1 += ended;
        result
    }

    /// Skips line ends before a record, so that its first line number is known.
    fn skip_line_ends(&mut self) {
        if self.taken > 0 {
            return;
        }
        let unused = self.blocks.unread_bytes();
        let count = unused.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let lines = unused.iter().take(count).filter(|byte| **byte == b'\n').count();
        self.blocks.consume(count);
        self.reader.set_line(self.reader.line() + lines as u64);
        self.line = self.reader.line();
    }

    /// Returns the record that ends with the input. A line end is fed to the parser instead: it ends a record
    /// just as well, but inside quotes it becomes part of a value, which shows that the quotes were never
    /// closed.
    fn close(&mut self) -> CsvRecord<'_> {
        if self.taken == 0 {
            return CsvRecord::End;
        }
        if self.passing.is_some() {
            self.filled = (0, 0);
        }
        if self.filled.0 == self.output.len() {
            self.output.push(0);
        }
        if self.filled.1 == self.ends.len() {
            self.make_room_for_ends();
        }
        let output = self.output.get_mut(self.filled.0..).unwrap_or_default();
        let ends = self.ends.get_mut(self.filled.1..).unwrap_or_default();
        let (_, _, written, ended) = self.reader.read_record(b"\n", output, ends);
        self.filled.1 += ended;
        match (written > 0, self.passing) {
            (true, None) => self.end_with(CsvRecord::Unclosed),
            (true, Some(_)) => self.end_with(CsvRecord::TooLong(OverlongEnd::Unclosed)),
            (false, None) => self.finish_record(),
            (false, Some(_)) => self.end_overlong(OverlongEnd::Ended),
        }
    }

    fn make_room_for_ends(&mut self) {
        let most = self.bounds.fields + 1;
        if self.ends.len() < most {
            self.ends.resize((self.ends.len() * 2).min(most), 0);
        } else {
            // The record is rejected anyway, so the part that was read is discarded.
            self.too_many = true;
            self.filled = (0, 0);
        }
    }

    fn finish_record(&mut self) -> CsvRecord<'_> {
        let (bytes, ends) = std::mem::take(&mut self.filled);
        self.taken = 0;
        if std::mem::take(&mut self.too_many) || ends > self.bounds.fields {
            return CsvRecord::TooManyFields;
        }
        if self.output.len() > LARGE_OUTPUT && bytes < SMALL_OUTPUT {
            self.output.truncate(SMALL_OUTPUT);
            self.output.shrink_to_fit();
        }
        CsvRecord::Fields(CsvFields {
            bytes: self.output.get(..bytes).unwrap_or_default(),
            ends: self.ends.get(..ends).unwrap_or_default(),
        })
    }

    /// Returns the record that was skipped; the next one starts where it ended.
    fn end_overlong(&mut self, how: OverlongEnd) -> CsvRecord<'static> {
        if matches!(how, OverlongEnd::StrayQuote { .. }) {
            let line = self.reader.line();
            self.reader.reset();
            self.reader.set_line(line);
        }
        self.filled = (0, 0);
        self.taken = 0;
        self.too_many = false;
        self.passing = None;
        CsvRecord::TooLong(how)
    }

    /// Returns `last`, and the end from then on.
    fn end_with(&mut self, last: CsvRecord<'static>) -> CsvRecord<'static> {
        self.output = vec![0; SMALL_OUTPUT];
        self.filled = (0, 0);
        self.taken = 0;
        self.passing = None;
        self.reader.reset();
        self.blocks.close();
        self.exhausted = true;
        last
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
