//! Splitting blocks into records, without holding one that is too long.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use rowmill_core::ports::Position;
use rowmill_types::Problem;

use crate::blocks::{Blocks, Wait};

/// What the buffers begin with, and shrink to after a long record.
const SMALL_OUTPUT: usize = 16 * 1024;
const LARGE_OUTPUT: usize = 1024 * 1024;
const FEW_FIELDS: usize = 32;

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record<'b> {
    /// A record, its quotes resolved.
    Fields(Fields<'b>),
    /// A record with more fields than were asked for, which was passed over.
    TooManyFields,
    /// A record longer than the bound; nothing after it can be read.
    TooLong,
    /// The input ended inside quotes.
    Unclosed,
    /// The input has ended.
    End,
    /// The record is not there yet; asking again reads more, which may wait.
    Pending,
}

/// The fields of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fields<'b> {
    /// All fields, one after the other.
    pub(crate) bytes: &'b [u8],
    /// Where each of them ends in `bytes`.
    pub(crate) ends: &'b [usize],
}

impl<'b> Fields<'b> {
    /// Where each field stands in `bytes`.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> + use<'b> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied()).map(|(start, end)| start..end)
    }
}

/// How much a record may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The most bytes of input.
    pub(crate) bytes: usize,
    /// The most fields.
    pub(crate) fields: usize,
}

/// The records of an input. Blank lines between them are passed over.
#[derive(Debug)]
pub(crate) struct Records {
    blocks: Blocks,
    reader: Reader,
    bounds: Bounds,
    output: Vec<u8>,
    ends: Vec<usize>,
    /// How much of `output` and `ends` the record at hand has filled.
    filled: (usize, usize),
    /// The bytes of input that the record at hand has taken.
    taken: usize,
    /// The line of the input on which the record at hand began.
    line: u64,
    too_many: bool,
    /// No more bytes will come.
    exhausted: bool,
}

impl Records {
    pub(crate) fn new(blocks: Blocks, delimiter: u8, bounds: Bounds) -> Self {
        Self {
            blocks,
            reader: ReaderBuilder::new().delimiter(delimiter).build(),
            bounds,
            output: vec![0; SMALL_OUTPUT],
            ends: vec![0; FEW_FIELDS.min(bounds.fields + 1)],
            filled: (0, 0),
            taken: 0,
            line: 1,
            too_many: false,
            exhausted: false,
        }
    }

    /// From the next record on, `fields` is the most that a record may have.
    pub(crate) fn set_most_fields(&mut self, fields: usize) {
        self.bounds.fields = fields;
        self.ends.resize(fields + 1, 0);
    }

    /// The line of the input, counted from 1, on which the last record began.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    pub(crate) fn position(&self) -> Position {
        self.blocks.position()
    }

    /// The next record.
    pub(crate) fn next(&mut self, wait: Wait) -> Result<Record<'_>, Problem> {
        loop {
            self.skip_line_ends();
            if self.blocks.unused().is_empty() && !self.exhausted {
                if wait == Wait::No {
                    return Ok(Record::Pending);
                }
                self.exhausted = !self.blocks.fill()?;
                continue;
            }
            if self.blocks.unused().is_empty() {
                return Ok(self.close());
            }
            match self.step() {
                ReadRecordResult::InputEmpty | ReadRecordResult::OutputFull
                    if self.taken > self.bounds.bytes =>
                {
                    return Ok(self.end_with(Record::TooLong));
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.output.resize(self.output.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.make_room_for_ends(),
                ReadRecordResult::Record => return Ok(self.finish_record()),
                // Only told for the empty input that `close` stands in for.
                ReadRecordResult::End => return Ok(Record::End),
            }
        }
    }

    fn step(&mut self) -> ReadRecordResult {
        let output = self.output.get_mut(self.filled.0..).unwrap_or_default();
        let ends = self.ends.get_mut(self.filled.1..).unwrap_or_default();
        let (result, read, written, ended) = self.reader.read_record(self.blocks.unused(), output, ends);
        self.blocks.use_up(read);
        self.taken += read;
        self.filled.0 += written;
        self.filled.1 += ended;
        result
    }

    /// Passes over line ends before a record, so that its first line is known.
    fn skip_line_ends(&mut self) {
        if self.taken > 0 {
            return;
        }
        let unused = self.blocks.unused();
        let count = unused.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let lines = unused.iter().take(count).filter(|byte| **byte == b'\n').count();
        self.blocks.use_up(count);
        self.reader.set_line(self.reader.line() + lines as u64);
        self.line = self.reader.line();
    }

    /// Gives the record that the end of the input ends. A line end is put there
    /// instead: it ends a record just as well, but is part of a value inside quotes,
    /// which tells that they were never closed.
    fn close(&mut self) -> Record<'_> {
        if self.taken == 0 {
            return Record::End;
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
        if written > 0 { self.end_with(Record::Unclosed) } else { self.finish_record() }
    }

    fn make_room_for_ends(&mut self) {
        let most = self.bounds.fields + 1;
        if self.ends.len() < most {
            self.ends.resize((self.ends.len() * 2).min(most), 0);
        } else {
            // The record is refused anyway, so what was read of it is given up.
            self.too_many = true;
            self.filled = (0, 0);
        }
    }

    fn finish_record(&mut self) -> Record<'_> {
        let (bytes, ends) = std::mem::take(&mut self.filled);
        self.taken = 0;
        if std::mem::take(&mut self.too_many) || ends > self.bounds.fields {
            return Record::TooManyFields;
        }
        if self.output.len() > LARGE_OUTPUT && bytes < SMALL_OUTPUT {
            self.output.truncate(SMALL_OUTPUT);
            self.output.shrink_to_fit();
        }
        Record::Fields(Fields {
            bytes: self.output.get(..bytes).unwrap_or_default(),
            ends: self.ends.get(..ends).unwrap_or_default(),
        })
    }

    /// Gives `last`, and the end from then on.
    fn end_with(&mut self, last: Record<'static>) -> Record<'static> {
        self.output = vec![0; SMALL_OUTPUT];
        self.filled = (0, 0);
        self.taken = 0;
        self.reader.reset();
        self.blocks.close();
        self.exhausted = true;
        last
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Found = Result<Vec<Vec<u8>>, &'static str>;

    fn records(bytes: &[u8], block: usize, most: usize) -> Records {
        let blocks =
            Blocks::with_block(Box::new(std::io::Cursor::new(bytes.to_vec())), "rows".into(), None, block);
        Records::new(blocks, b',', Bounds { bytes: 10_000, fields: most })
    }

    fn all(mut records: Records) -> Vec<Found> {
        let mut found = Vec::new();
        let mut line = 0;
        loop {
            let record = match records.next(Wait::UntilFound).unwrap() {
                Record::Fields(fields) => {
                    Ok(fields.ranges().map(|range| fields.bytes[range].to_vec()).collect())
                }
                Record::TooManyFields => Err("too many"),
                Record::Unclosed => Err("unclosed"),
                Record::End => return found,
                other => panic!("unexpected: {other:?}"),
            };
            found.push(record);
            assert!(records.line() > line, "lines only go forward");
            line = records.line();
        }
    }

    fn reference(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
        let fields = |record: csv::ByteRecord| record.iter().map(<[u8]>::to_vec).collect();
        reader.byte_records().map(|record| fields(record.unwrap())).collect()
    }

    #[test]
    fn an_input_that_ends_inside_quotes_is_told() {
        for bytes in [&b"a,\"b\nc\n"[..], b"\"", b"a\n\"\"\"", b"\"a\"\"\n"] {
            assert_eq!(all(records(bytes, 8, 9)).last(), Some(&Err("unclosed")), "{bytes:?}");
        }
        for bytes in [&b"a,\"b\""[..], b"\"\"", b"a\"", b"\"a\"b\n", b"\"a\"\"\""] {
            assert!(all(records(bytes, 8, 9)).iter().all(Result::is_ok), "{bytes:?}");
        }
    }

    #[test]
    fn the_line_on_which_a_record_begins_is_known() {
        let mut records = records(b"a\r\n\r\n\"b\nb\"\nc\n\n\nd", 8, 9);
        for line in [1, 3, 5, 8] {
            assert!(matches!(records.next(Wait::UntilFound).unwrap(), Record::Fields(_)));
            assert_eq!(records.line(), line);
        }
    }

    proptest! {
        #[test]
        fn records_are_those_of_the_csv_crate(
            bytes in prop::collection::vec(prop::sample::select(b"\n\r\"\",,,ab \xc3\xa9".to_vec()), 0..120),
            block in 8usize..40,
            most in 1usize..6,
        ) {
            // The line of a record is only told apart by line feeds.
            let bytes: Vec<u8> = bytes.into_iter().map(|byte| if byte == b'\r' { b'\n' } else { byte }).collect();
            let mut found = all(records(&bytes, block, most));
            let mut expected = reference(&bytes);
            if found.last() == Some(&Err("unclosed")) {
                found.pop();
                expected.pop();
            }
            let bounded = |fields: Vec<Vec<u8>>| if fields.len() > most { Err("too many") } else { Ok(fields) };
            prop_assert_eq!(found, expected.into_iter().map(bounded).collect::<Vec<_>>());
        }

        #[test]
        fn records_written_by_the_csv_crate_are_read_back(
            rows in prop::collection::vec(prop::collection::vec("[ab,\"\r\n é]{0,9}", 2..5), 1..9),
            block in 8usize..40,
        ) {
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            for row in &rows {
                writer.write_record(row).unwrap();
            }
            let bytes = writer.into_inner().unwrap();
            let expected: Vec<Found> =
                rows.iter().map(|row| Ok(row.iter().map(|field| field.clone().into_bytes()).collect())).collect();
            prop_assert_eq!(all(records(&bytes, block, 9)), expected);
        }
    }
}
