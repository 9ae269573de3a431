//! Reading the next rows of a scan while a query works on the last ones.

use rowmill_core::ports::{Position, Room, RowSource};
use rowmill_types::{Problem, SourceRow};

use crate::read_ahead::{AheadSettings, ReadAhead};

/// How many rows are read at once: few at first, for queries that want only a few.
const FIRST_ROWS: usize = 16;
const MOST_ROWS: usize = 256;
const MOST_BYTES: usize = 256 * 1024;

/// A query that has had so many batches is likely to want all rows.
const SETTINGS: AheadSettings = AheadSettings { thread: "rowmill-scan", first: 4, waiting: 4 };

/// Rows that were read at once.
pub(super) struct RowBatch {
    pub(super) rows: Vec<SourceRow>,
    /// How far the read had come then.
    pub(super) position: Position,
}

/// The rows of a source, batch by batch.
pub(super) type RowBatches = ReadAhead<RowBatch, Problem>;

pub(super) fn batches(mut source: Box<dyn RowSource>) -> RowBatches {
    let mut rows_at_once = FIRST_ROWS;
    let mut ended = false;
    ReadAhead::new(SETTINGS, move || {
        if ended {
            return Ok(None);
        }
        let room = Room { rows: rows_at_once, bytes: MOST_BYTES };
        rows_at_once = (rows_at_once * 2).min(MOST_ROWS);
        let mut rows = Vec::with_capacity(room.rows);
        ended = !source.read(&mut rows, room)?;
        Ok(Some(RowBatch { rows, position: source.position() }))
    })
}
