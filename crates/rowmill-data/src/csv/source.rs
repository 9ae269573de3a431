//! Makes rows from records.

use std::sync::Arc;

use rowmill_core::json_text::write_string;
use rowmill_core::ports::{Position, Room, RowSource};
use rowmill_types::{ErrorKind, Problem, Row, RowColumns, RowTextWriter, SourceRow};

use super::delimiter::DelimiterChoice;
use super::header::header_columns;
use super::overlong::Overlong;
use super::records::{Bounds, Fields, Record, Records};
use crate::Format;
use crate::blocks::{Blocks, MAX_RECORD, Wait};
use crate::place::{Place, TextSource, Unit};

/// The maximum number of columns of a header.
const MAX_COLUMNS: usize = 1 << 20;

/// Reads one row per record. The header is row 1 and each record after it one more, however many lines it
/// spans. All values are text.
#[derive(Debug)]
pub(crate) struct CsvSource {
    records: Records,
    format: Format,
    delimiter: DelimiterChoice,
    place: Place,
    header: Option<Arc<RowColumns>>,
    /// The number of the last record of the file.
    number: u64,
    ended: bool,
    damage: Option<Problem>,
}

impl CsvSource {
    pub(crate) fn new(blocks: Blocks, format: Format, delimiter: DelimiterChoice, place: Place) -> Self {
        Self {
            records: Records::new(blocks, Bounds { bytes: MAX_RECORD, fields: MAX_COLUMNS }),
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
        if self.format == Format::Tsv { "TSV" } else { "CSV" }
    }

    /// Reads the first record; `Ok(Err(…))` is what is wrong with it.
    fn read_header(&mut self) -> Result<Result<RowColumns, String>, Problem> {
        let format = self.format_name();
        let delimiter = self.delimiter.choose(self.records.blocks(), self.format)?;
        self.records.set_delimiter(delimiter.byte());
        let header = match self.records.next(Wait::UntilFound)? {
            Record::Fields(fields) => header_columns(fields, format),
            Record::End | Record::Pending => Err(format!("{format} input is missing a header row")),
            Record::TooManyFields => Err(format!("{format} header has more than {MAX_COLUMNS} columns")),
            Record::TooLong(_) => Err(format!("{format} header is longer than {} MiB", MAX_RECORD >> 20)),
            Record::Unclosed => Err(format!("{format} header has a quote that is never closed")),
        };
        if let Ok(header) = &header {
            self.records.set_columns(header.len());
        }
        Ok(header)
    }

    /// Reads the header if that has not been done yet. An unusable header yields a bad row and then the end.
    fn begin(&mut self) -> Result<Option<SourceRow>, Problem> {
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
                self.damage = Some(Place::damage(self.records.name(), Unit::Line, 1, &message));
                Ok(Some(Err(self.place.bad_header(message))))
            }
        }
    }

    /// The next row, or `None` if there is none at the moment or at all.
    fn next_row(&mut self, wait: Wait) -> Result<Option<SourceRow>, Problem> {
        if let Some(bad) = self.begin()? {
            return Ok(Some(bad));
        }
        let Some(header) = &self.header else { return Ok(None) };
        let at = self.number + 1;
        let row = match self.records.next(wait)? {
            Record::Fields(fields) => row_of(self.place.number(at), header, fields),
            Record::TooManyFields => Err(format!("too many {} columns", self.format_name())),
            Record::Pending => return Ok(None),
            Record::End => {
                self.ended = true;
                return Ok(None);
            }
            Record::TooLong(how) => {
                self.ended = how == Overlong::Unclosed;
                Err(self.spanning(&overlong(how)))
            }
            Record::Unclosed => {
                self.ended = true;
                Err(self.spanning("a quote is never closed, so the rest of the input was read as one value"))
            }
        };
        self.number = at;
        if let (Err(what), true) = (&row, self.ended) {
            self.damage = Some(Place::damage(self.records.name(), Unit::Line, at, what));
        }
        Ok(Some(row.map_err(|what| self.place.bad(Unit::Line, at, ErrorKind::InvalidRow, &what))))
    }

    /// A message about a record of many lines, with the line on which it starts.
    fn spanning(&self, what: &str) -> String {
        let what = format!("{what} (the record starts on line {} of the input)", self.records.line());
        if self.place.file.is_some() { what.replace(" of the input", " of the file") } else { what }
    }
}

/// The message for a record that is too long.
fn overlong(how: Overlong) -> String {
    let length = format!("longer than {} MiB", MAX_RECORD >> 20);
    match how {
        Overlong::Ended => length,
        Overlong::StrayQuote { next_line } => format!(
            "{length}, because a quote is not closed; reading continues at line {next_line} of the input, \
             which again has as many columns as the header"
        ),
        Overlong::Unclosed => {
            format!("{length}, and a quote is never closed, so the rest of the input was read as one value")
        }
    }
}

impl RowSource for CsvSource {
    fn read(&mut self, batch: &mut Vec<SourceRow>, room: Room) -> Result<bool, Problem> {
        let mut rows = 0;
        let mut bytes = 0;
        while !self.ended {
            // As with lines, rows that have arrived are returned before waiting for more.
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
                Record::Fields(_) | Record::TooManyFields | Record::TooLong(_) => {}
                Record::Unclosed => self.ended = true,
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

    fn damage(&self) -> Option<Problem> {
        self.damage.clone()
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

/// Writes the row's JSON text and records where its values end, in one pass.
fn row_of(number: u64, header: &Arc<RowColumns>, record: Fields<'_>) -> Result<Row, String> {
    // One check covers all fields; an end inside a character makes its field invalid.
    let whole = std::str::from_utf8(record.bytes).ok();
    let quotes = 4 * header.len();
    let mut row = RowTextWriter::new(Arc::clone(header), header.name_bytes() + record.bytes.len() + quotes);
    let mut ranges = record.ranges();
    for name in header.names() {
        let Some(range) = ranges.next() else {
            row.value(|text| text.push_str("null"));
            continue;
        };
        let value = match whole {
            Some(whole) => whole.get(range),
            None => record.bytes.get(range).and_then(|bytes| std::str::from_utf8(bytes).ok()),
        };
        let value = value.ok_or_else(|| format!("column `{name}` is not valid UTF-8"))?;
        row.value(|text| write_string(value, text));
    }
    row.finish(number).ok_or_else(|| "longer than 4 GiB".to_owned())
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
