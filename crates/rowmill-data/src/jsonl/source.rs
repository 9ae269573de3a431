//! Makes rows from lines.

use rowmill_core::ports::{Position, Room, RowSource};
use rowmill_types::{ErrorKind, Problem, Row, SourceRow};
use serde::de::IgnoredAny;

use super::lines::{Line, Lines};
use crate::blocks::{Blocks, MAX_RECORD, Wait};
use crate::place::{Place, TextSource, Unit};

/// Reads one row per line. Row numbers are line numbers; blank lines are skipped but counted.
#[derive(Debug)]
pub(crate) struct JsonlSource {
    lines: Lines,
    place: Place,
    damage: Option<Problem>,
}

impl JsonlSource {
    pub(crate) fn new(blocks: Blocks, place: Place) -> Self {
        Self::after(blocks, 0, place)
    }

    /// Continues after some lines of the file, which were skipped.
    pub(crate) fn after(blocks: Blocks, lines: u64, place: Place) -> Self {
        Self { lines: Lines::after(blocks, MAX_RECORD, lines), place, damage: None }
    }
}

impl RowSource for JsonlSource {
    fn read(&mut self, batch: &mut Vec<SourceRow>, room: Room) -> Result<bool, Problem> {
        let mut rows = 0;
        let mut bytes = 0;
        loop {
            // Rows that have arrived are returned before waiting for more, so that a slow pipe does not delay
            // them.
            let wait = if rows == 0 { Wait::UntilFound } else { Wait::No };
            let at = self.lines.number() + 1;
            let row = match self.lines.next(wait)? {
                Line::Text(line) => match row_of(&self.place, at, line) {
                    Some(row) => {
                        bytes += line.len();
                        if row.is_err() && is_unfinished(line) && self.lines.is_open() {
                            let what = "the input ends in the middle of it";
                            self.damage = Some(Place::damage(self.lines.name(), Unit::Line, at, what));
                        }
                        row
                    }
                    None => continue,
                },
                Line::TooLong => {
                    let what = format!("longer than {} MiB", MAX_RECORD >> 20);
                    Err(self.place.bad(Unit::Line, at, ErrorKind::InvalidRow, &what))
                }
                Line::End => return Ok(false),
                Line::Pending => return Ok(true),
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
            match self.lines.next(Wait::UntilFound)? {
                Line::Text(line) if is_blank(line) => {}
                Line::Text(_) | Line::TooLong => passed += 1,
                Line::End => break,
                Line::Pending => {}
            }
        }
        Ok(passed)
    }

    fn damage(&self) -> Option<Problem> {
        self.damage.clone()
    }

    fn position(&self) -> Position {
        self.lines.position()
    }
}

impl TextSource for JsonlSource {
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
fn row_of(place: &Place, at: u64, line: &[u8]) -> Option<SourceRow> {
    if is_blank(line) {
        return None;
    }
    let line = line.trim_ascii();
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let what = format!("not valid UTF-8 at byte {}", error.valid_up_to() + 1);
            return Some(Err(place.bad(Unit::Line, at, ErrorKind::InvalidJson, &what)));
        }
    };
    let row = Row::parse(place.number(at), text.to_owned());
    Some(row.map_err(|bad| place.parsed(Unit::Line, at, bad)))
}
