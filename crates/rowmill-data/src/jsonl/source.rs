//! Rows from lines.

use rowmill_core::ports::{Position, Room, RowSource};
use rowmill_types::{BadRow, ErrorKind, Problem, Row, SourceRow};

use super::lines::{Line, Lines};
use crate::blocks::{Blocks, MAX_RECORD, Wait};

/// Reads one row per line. Row numbers are line numbers; blank lines are passed
/// over but counted.
#[derive(Debug)]
pub(crate) struct JsonlSource {
    lines: Lines,
}

impl JsonlSource {
    pub(crate) fn new(blocks: Blocks) -> Self {
        Self { lines: Lines::new(blocks, MAX_RECORD) }
    }
}

impl RowSource for JsonlSource {
    fn read(&mut self, batch: &mut Vec<SourceRow>, room: Room) -> Result<bool, Problem> {
        let mut rows = 0;
        let mut bytes = 0;
        loop {
            // Rows that have come are handed on before more are waited for, so that a
            // slow pipe does not hold them back.
            let wait = if rows == 0 { Wait::UntilFound } else { Wait::No };
            let number = self.lines.number() + 1;
            let row = match self.lines.next(wait)? {
                Line::Text(line) => match row_of(number, line) {
                    Some(row) => {
                        bytes += line.len();
                        row
                    }
                    None => continue,
                },
                Line::TooLong => {
                    let mib = MAX_RECORD >> 20;
                    Err(bad(number, ErrorKind::InvalidRow, &format!("longer than {mib} MiB")))
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

    fn position(&self) -> Position {
        self.lines.position()
    }
}

/// The row of a line, `None` for a blank one.
fn row_of(number: u64, line: &[u8]) -> Option<SourceRow> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let what = format!("not valid UTF-8 at byte {}", error.valid_up_to() + 1);
            return Some(Err(bad(number, ErrorKind::InvalidJson, &what)));
        }
    };
    if !text.starts_with('{') && text.trim().is_empty() {
        return None;
    }
    Some(Row::parse(number, text.to_owned()))
}

fn bad(number: u64, kind: ErrorKind, what: &str) -> BadRow {
    BadRow { number, kind, message: format!("Line {number}: {what}") }
}
