//! Makes rows from records.

use std::sync::Arc;

use rowmill_core::json_text::write_string;
use rowmill_core::ports::{InputReadProgress, ReadLimit, RowSource};
use rowmill_types::{Problem, Row, RowBuilder, RowErrorKind, RowLayout, RowReadResult};

use super::delimiter::DelimiterChoice;
use super::header::header_columns;
use super::overlong::OverlongEnd;
use super::records::{CsvFields, CsvRecord, CsvRecordReader, RecordBounds};
use crate::InputFormat;
use crate::block_reader::{BlockReader, MAX_RECORD, ReadWait};
use crate::record_placement::{RecordPlacement, RecordUnit, TextRowSource};

/// The maximum number of columns of a header.
const MAX_COLUMNS: usize = 1 << 20;

/// Reads one row per record. The header is row 1 and each record after it one more, however many lines it
/// spans. All values are text.
#[derive(Debug)]
pub(crate) struct CsvRowSource {
    records: CsvRecordReader,
    format: InputFormat,
    delimiter: DelimiterChoice,
    place: RecordPlacement,
    header: Option<Arc<RowLayout>>,
    /// The number of the last record of the file.
    number: u64,
    ended: bool,
    damage: Option<Problem>,
}

impl CsvRowSource {
    pub(crate) fn new(
        blocks: BlockReader,
        format: InputFormat,
        delimiter: DelimiterChoice,
        place: RecordPlacement,
    ) -> Self {
        Self {
            records: CsvRecordReader::new(blocks, RecordBounds { bytes: MAX_RECORD, fields: MAX_COLUMNS }),
            format,
            delimiter,
            place,
            header: None,
            number: 0,
            ended: false,
            damage: None,
        }
    }

    /// The name of the format in messages.
    fn format_name(&self) -> &'static str {
        if self.format == InputFormat::Tsv { "TSV" } else { "CSV" }
    }

    /// Reads the first record; `Ok(Err(…))` is what is wrong with it.
    fn read_header(&mut self) -> Result<Result<RowLayout, String>, Problem> {
        let format = self.format_name();
        let delimiter = self.delimiter.choose(self.records.blocks(), self.format)?;
        self.records.set_delimiter(delimiter.byte());
        let header = match self.records.next(ReadWait::UntilFound)? {
            CsvRecord::Fields(fields) => header_columns(fields, format),
            CsvRecord::End | CsvRecord::Pending => Err(format!("{format} input is missing a header row")),
            CsvRecord::TooManyFields => Err(format!("{format} header has more than {MAX_COLUMNS} columns")),
            CsvRecord::TooLong(_) => Err(format!("{format} header is longer than {} MiB", MAX_RECORD >> 20)),
            CsvRecord::Unclosed => Err(format!("{format} header has a quote that is never closed")),
        };
        if let Ok(header) = &header {
            self.records.set_columns(header.len());
        }
        Ok(header)
    }

    /// Reads the header if that has not been done yet. An unusable header yields a bad row and then the end.
    fn begin(&mut self) -> Result<Option<RowReadResult>, Problem> {
        if self.header.is_some() {
            return Ok(None);
        }
        self.number = 1;
        match self.read_header()? {
            Ok(header) => {
                self.header = Some(Arc::new(header));
                Ok(None)
            }
            Err(message) => {
                self.ended = true;
                self.damage =
                    Some(RecordPlacement::damage(self.records.name(), RecordUnit::Row, 1, &message));
                Ok(Some(Err(self.place.bad_header_row(message))))
            }
        }
    }

    /// The next row, or `None` if there is none at the moment or at all.
    fn next_row(&mut self, wait: ReadWait) -> Result<Option<RowReadResult>, Problem> {
        if let Some(bad) = self.begin()? {
            return Ok(Some(bad));
        }
        let Some(header) = &self.header else { return Ok(None) };
        let at = self.number + 1;
        let row = match self.records.next(wait)? {
            CsvRecord::Fields(fields) => row_of(self.place.number(at), header, fields),
            CsvRecord::TooManyFields => {
                Err(self.spanning(&format!("too many {} columns", self.format_name())))
            }
            CsvRecord::Pending => return Ok(None),
            CsvRecord::End => {
                self.ended = true;
                return Ok(None);
            }
            CsvRecord::TooLong(how) => {
                self.ended = how == OverlongEnd::Unclosed;
                Err(self.spanning(&overlong(how)))
            }
            CsvRecord::Unclosed => {
                self.ended = true;
                Err(self.spanning("a quote is never closed, so the rest of the input was read as one value"))
            }
        };
        self.number = at;
        if let (Err(what), true) = (&row, self.ended) {
            self.damage = Some(RecordPlacement::damage(self.records.name(), RecordUnit::Row, at, what));
        }
        Ok(Some(row.map_err(|what| self.place.bad_row(RecordUnit::Row, at, RowErrorKind::InvalidRow, &what))))
    }

    /// A message about a record of many lines, with the line on which it starts.
    fn spanning(&self, what: &str) -> String {
        let what = format!("{what} (the record starts on line {} of the input)", self.records.line());
        if self.place.file.is_some() { what.replace(" of the input", " of the file") } else { what }
    }
}

/// The message for a record that is too long.
fn overlong(how: OverlongEnd) -> String {
    let length = format!("longer than {} MiB", MAX_RECORD >> 20);
    match how {
        OverlongEnd::Ended => length,
        OverlongEnd::StrayQuote { next_line } => format!(
            "{length}, because a quote is not closed; reading continues at line {next_line} of the input, \
             which again has as many columns as the header"
        ),
        OverlongEnd::Unclosed => {
            format!("{length}, and a quote is never closed, so the rest of the input was read as one value")
        }
    }
}

impl RowSource for CsvRowSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let mut rows = 0;
        let mut bytes = 0;
        while !self.ended {
            // As with lines, rows that have arrived are returned before waiting for more.
            let wait = if rows == 0 { ReadWait::UntilFound } else { ReadWait::No };
            let Some(row) = self.next_row(wait)? else { break };
            bytes += row.as_ref().map_or(0, |row| row.json_text().len());
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
            match self.records.next(ReadWait::UntilFound)? {
                CsvRecord::Fields(_) | CsvRecord::TooManyFields | CsvRecord::TooLong(_) => {}
                CsvRecord::Unclosed => self.ended = true,
                CsvRecord::Pending => continue,
                CsvRecord::End => {
                    self.ended = true;
                    break;
                }
            }
            self.number += 1;
            passed += 1;
        }
        Ok(passed)
    }

    fn damage(&self) -> Option<Problem> {
        self.damage.clone()
    }

    fn position(&self) -> InputReadProgress {
        self.records.position()
    }
}

impl TextRowSource for CsvRowSource {
    fn used_numbers(&self) -> u64 {
        self.number
    }
}

/// Writes the row's JSON text and records where its values end, in one pass.
fn row_of(number: u64, header: &Arc<RowLayout>, record: CsvFields<'_>) -> Result<Row, String> {
    // One check covers all fields; an end inside a character makes its field invalid.
    let whole = std::str::from_utf8(record.bytes).ok();
    let quotes = 4 * header.len();
    let mut row = RowBuilder::new(Arc::clone(header), header.name_byte_count() + record.bytes.len() + quotes);
    let mut ranges = record.ranges();
    for name in header.names() {
        let Some(range) = ranges.next() else {
            row.push_value(|text| text.push_str("null"));
            continue;
        };
        let value = match whole {
            Some(whole) => whole.get(range),
            None => record.bytes.get(range).and_then(|bytes| std::str::from_utf8(bytes).ok()),
        };
        let value = value.ok_or_else(|| format!("column `{name}` is not valid UTF-8"))?;
        row.push_value(|text| write_string(value, text));
    }
    row.into_row(number).ok_or_else(|| "longer than 4 GiB".to_owned())
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
