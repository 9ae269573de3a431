//! Rows from records.

use rowmill_core::json_text::write_string;
use rowmill_core::ports::{Position, Room, RowSource};
use rowmill_types::{ErrorKind, Problem, Row, SourceRow};

use super::header::Header;
use super::records::{Bounds, Fields, Record, Records};
use crate::Format;
use crate::blocks::{Blocks, MAX_RECORD, Wait};
use crate::place::{Place, TextSource, Unit};

/// The most columns a header may have.
const MAX_COLUMNS: usize = 1 << 20;

/// Reads one row per record. The header is row 1, each record after it one more,
/// however many lines it takes. All values are text.
#[derive(Debug)]
pub(crate) struct CsvSource {
    records: Records,
    format: &'static str,
    place: Place,
    header: Option<Header>,
    /// The number of the last record of the file.
    number: u64,
    ended: bool,
}

impl CsvSource {
    pub(crate) fn new(blocks: Blocks, format: Format, place: Place) -> Self {
        Self::with_bounds(blocks, format, place, Bounds { bytes: MAX_RECORD, fields: MAX_COLUMNS })
    }

    pub(crate) fn with_bounds(blocks: Blocks, format: Format, place: Place, bounds: Bounds) -> Self {
        let (delimiter, format) = if format == Format::Tsv { (b'\t', "TSV") } else { (b',', "CSV") };
        let records = Records::new(blocks, delimiter, bounds);
        Self { records, format, place, header: None, number: 0, ended: false }
    }

    /// Reads the first record; `Ok(Err(…))` says what is wrong with it.
    fn read_header(&mut self) -> Result<Result<Header, String>, Problem> {
        let format = self.format;
        let header = match self.records.next(Wait::UntilFound)? {
            Record::Fields(fields) => Header::parse(fields, format),
            Record::End | Record::Pending => Err(format!("{format} input is missing a header row")),
            Record::TooManyFields => Err(format!("{format} header has more than {MAX_COLUMNS} columns")),
            Record::TooLong => Err(format!("{format} header is longer than {} MiB", MAX_RECORD >> 20)),
            Record::Unclosed => Err(format!("{format} header has a quote that is never closed")),
        };
        if let Ok(header) = &header {
            self.records.set_most_fields(header.columns.len());
        }
        Ok(header)
    }

    /// Reads the header if that was not done yet. One that cannot be used is a bad row, and the end.
    fn begin(&mut self) -> Result<Option<SourceRow>, Problem> {
        if self.header.is_some() {
            return Ok(None);
        }
        self.number = 1;
        match self.read_header()? {
            Ok(header) => {
                self.header = Some(header);
                Ok(None)
            }
            Err(message) => {
                self.ended = true;
                Ok(Some(Err(self.place.bad_header(message))))
            }
        }
    }

    /// The next row, `None` when there is none, be it for now or for ever.
    fn next_row(&mut self, wait: Wait) -> Result<Option<SourceRow>, Problem> {
        if let Some(bad) = self.begin()? {
            return Ok(Some(bad));
        }
        let Some(header) = &self.header else { return Ok(None) };
        let at = self.number + 1;
        let mut last = false;
        let row = match self.records.next(wait)? {
            Record::Fields(fields) => row_of(self.place.number(at), header, fields),
            Record::TooManyFields => Err(format!("too many {} columns", self.format)),
            Record::Pending => return Ok(None),
            Record::End => {
                self.ended = true;
                return Ok(None);
            }
            Record::TooLong => {
                last = true;
                Err(format!("longer than {} MiB, so the rest of the input was not read", MAX_RECORD >> 20))
            }
            Record::Unclosed => {
                last = true;
                Err("a quote is never closed, so the rest of the input was taken for one value".to_owned())
            }
        };
        self.ended = last;
        self.number = at;
        let line = self.records.line();
        Ok(Some(row.map_err(|mut what| {
            if last {
                what.push_str(&format!(" (the record begins on line {line} of the input)"));
            }
            if self.place.file.is_some() {
                what = what.replace(" of the input", " of the file");
            }
            self.place.bad(Unit::Line, at, ErrorKind::InvalidRow, &what)
        })))
    }
}

impl RowSource for CsvSource {
    fn read(&mut self, batch: &mut Vec<SourceRow>, room: Room) -> Result<bool, Problem> {
        let mut rows = 0;
        let mut bytes = 0;
        while !self.ended {
            // As with lines, what has come is handed on before more is waited for.
            let wait = if rows == 0 { Wait::UntilFound } else { Wait::No };
            let Some(row) = self.next_row(wait)? else { break };
            bytes += row.as_ref().map_or(0, |row| row.text().len());
            batch.push(row);
            rows += 1;
            if rows >= room.rows || bytes >= room.bytes {
                break;
            }
        }
        Ok(!self.ended)
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        let mut passed = 0;
        while passed < rows && !self.ended {
            if self.begin()?.is_some() {
                passed += 1;
                continue;
            }
            match self.records.next(Wait::UntilFound)? {
                Record::Fields(_) | Record::TooManyFields => {}
                Record::TooLong | Record::Unclosed => self.ended = true,
                Record::Pending => continue,
                Record::End => {
                    self.ended = true;
                    break;
                }
            }
            self.number += 1;
            passed += 1;
        }
        Ok(passed)
    }

    fn position(&self) -> Position {
        self.records.position()
    }
}

impl TextSource for CsvSource {
    fn used_numbers(&self) -> u64 {
        self.number
    }
}

/// Writes the row's JSON text and notes where its fields stand, in one go.
fn row_of(number: u64, header: &Header, record: Fields<'_>) -> Result<Row, String> {
    // One check covers all fields; an end inside a character makes its field invalid.
    let whole = std::str::from_utf8(record.bytes).ok();
    let count = header.columns.len();
    let mut text = String::with_capacity(header.name_bytes + record.bytes.len() + 8 * count + 2);
    let mut fields = Vec::with_capacity(count);
    let mut ranges = record.ranges();
    text.push('{');
    for column in &header.columns {
        if !fields.is_empty() {
            text.push(',');
        }
        let name_start = text.len();
        text.push_str(&column.json);
        text.push(':');
        let value_start = text.len();
        match ranges.next() {
            None => text.push_str("null"),
            Some(range) => {
                let value = match whole {
                    Some(whole) => whole.get(range),
                    None => record.bytes.get(range).and_then(|bytes| std::str::from_utf8(bytes).ok()),
                };
                let invalid = || format!("column `{}` is not valid UTF-8", column.name);
                write_string(value.ok_or_else(invalid)?, &mut text);
            }
        }
        fields.push(column.field(name_start, value_start..text.len()));
    }
    text.push('}');
    Ok(Row::from_parts(number, text, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { rows: usize::MAX, bytes: usize::MAX };

    fn read(bytes: &'static [u8], max: usize) -> Vec<SourceRow> {
        let blocks = Blocks::with_block(Box::new(bytes), "rows".into(), None, 8);
        let mut source =
            CsvSource::with_bounds(blocks, Format::Csv, Place::default(), Bounds { bytes: max, fields: 8 });
        let mut rows = Vec::new();
        while source.read(&mut rows, ROOM).unwrap() {}
        assert!(!source.read(&mut rows, ROOM).unwrap(), "the end stays the end");
        rows
    }

    fn messages(rows: &[SourceRow]) -> Vec<&str> {
        rows.iter().map(|row| row.as_ref().map_or_else(|bad| bad.message.as_str(), Row::text)).collect()
    }

    #[test]
    fn a_record_over_the_bound_is_one_bad_row_and_the_end() {
        let rows = read(b"a\n1\n\n\"stray\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", 20);
        assert_eq!(
            messages(&rows),
            [
                r#"{"a":"1"}"#,
                "Line 3: longer than 64 MiB, so the rest of the input was not read \
                 (the record begins on line 4 of the input)",
            ]
        );
    }

    #[test]
    fn a_header_over_its_bounds_is_one_bad_row() {
        assert_eq!(
            messages(&read(b"a,b,c,d,e,f,g,h,i\n1\n", 90)),
            ["CSV header has more than 1048576 columns"]
        );
        assert_eq!(messages(&read(&[b'x'; 100], 20)), ["CSV header is longer than 64 MiB"]);
    }

    #[test]
    fn a_record_of_very_many_fields_is_passed_over() {
        let rows = read(b"a,b\n1,2\n1,2,3,4,5,6,7,8,9\n3,4\n", 90);
        let expected = [r#"{"a":"1","b":"2"}"#, "Line 3: too many CSV columns", r#"{"a":"3","b":"4"}"#];
        assert_eq!(messages(&rows), expected);
    }

    #[test]
    fn rows_that_have_come_are_handed_on_before_more_is_read() {
        let blocks = Blocks::with_block(Box::new(&b"a\n1\n2\n3\n4\n5\n"[..]), "rows".into(), None, 8);
        let mut source = CsvSource::new(blocks, Format::Csv, Place::default());
        let mut rows = Vec::new();
        assert!(source.read(&mut rows, ROOM).unwrap());
        assert_eq!(messages(&rows), [r#"{"a":"1"}"#, r#"{"a":"2"}"#, r#"{"a":"3"}"#]);
    }
}
