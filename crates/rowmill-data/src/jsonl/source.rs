//! Makes rows from lines.

use rowmill_core::ports::{InputReadProgress, ReadLimit, RowSource};
use rowmill_types::{Problem, Row, RowErrorKind, RowReadResult};
use serde::de::IgnoredAny;

use super::lines::{InputLine, InputLineReader};
use crate::block_reader::{BlockReader, MAX_RECORD, ReadWait};
use crate::record_placement::{RecordPlacement, RecordUnit, TextRowSource};

/// Reads one row per line. Row numbers are line numbers; blank lines are skipped but counted.
#[derive(Debug)]
pub(crate) struct JsonlRowSource {
    lines: InputLineReader,
    place: RecordPlacement,
    damage: Option<Problem>,
}

impl JsonlRowSource {
    pub(crate) fn new(blocks: BlockReader, place: RecordPlacement) -> Self {
        Self::after(blocks, 0, place)
    }

    /// Continues after some lines of the file, which were skipped.
    pub(crate) fn after(blocks: BlockReader, lines: u64, place: RecordPlacement) -> Self {
        Self { lines: InputLineReader::after(blocks, MAX_RECORD, lines), place, damage: None }
    }
}

impl RowSource for JsonlRowSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let mut rows = 0;
        let mut bytes = 0;
        loop {
            // Rows that have arrived are returned before waiting for more, so that a slow pipe does not delay
            // them.
            let wait = if rows == 0 { ReadWait::UntilFound } else { ReadWait::No };
            let at = self.lines.number() + 1;
            let row = match self.lines.next(wait)? {
                InputLine::Text(line) => match row_of(&self.place, at, line) {
                    Some(row) => {
                        bytes += line.len();
                        if row.is_err() && is_unfinished(line) && self.lines.is_open() {
                            let what = "the input ends in the middle of it";
                            self.damage =
                                Some(RecordPlacement::damage(self.lines.name(), RecordUnit::Line, at, what));
                        }
                        row
                    }
                    None => continue,
                },
                InputLine::TooLong => {
                    let what = format!("longer than {} MiB", MAX_RECORD >> 20);
                    Err(self.place.bad_row(RecordUnit::Line, at, RowErrorKind::InvalidRow, &what))
                }
                InputLine::End => return Ok(false),
                InputLine::Pending => return Ok(true),
            };
            batch.push(row);
            rows += 1;
            if rows >= room.rows || bytes >= room.bytes {
                return Ok(true);
            }
        }
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        let mut passed = 0;
        while passed < rows {
            match self.lines.next(ReadWait::UntilFound)? {
                InputLine::Text(line) if is_blank(line) => {}
                InputLine::Text(_) | InputLine::TooLong => passed += 1,
                InputLine::End => break,
                InputLine::Pending => {}
            }
        }
        Ok(passed)
    }

    fn damage(&self) -> Option<Problem> {
        self.damage.clone()
    }

    fn position(&self) -> InputReadProgress {
        self.lines.position()
    }
}

impl TextRowSource for JsonlRowSource {
    fn used_numbers(&self) -> u64 {
        self.lines.number()
    }
}

/// Whether a line is skipped.
fn is_blank(line: &[u8]) -> bool {
    match line.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => true,
        Some(b'{') => false,
        Some(_) => std::str::from_utf8(line).is_ok_and(|text| text.trim().is_empty()),
    }
}

/// Whether a line is the valid beginning of JSON that is not complete.
fn is_unfinished(line: &[u8]) -> bool {
    // A character may be cut as well.
    let text = match std::str::from_utf8(line) {
        Err(error) if error.error_len().is_none() => line.get(..error.valid_up_to()).unwrap_or_default(),
        _ => line,
    };
    serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

/// The row of the `at`th line; `None` for a blank one.
fn row_of(place: &RecordPlacement, at: u64, line: &[u8]) -> Option<RowReadResult> {
    if is_blank(line) {
        return None;
    }
    let line = line.trim_ascii();
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let what = format!("not valid UTF-8 at byte {}", error.valid_up_to() + 1);
            return Some(Err(place.bad_row(RecordUnit::Line, at, RowErrorKind::InvalidJson, &what)));
        }
    };
    let row = Row::parse(place.number(at), text.to_owned());
    Some(row.map_err(|bad| place.bad_row_from_parser(RecordUnit::Line, at, bad)))
}
