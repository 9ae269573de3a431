//! Reading the next rows of a scan while a query works on the last ones.

use rowmill_core::ports::{Position, Room, RowSource};
use rowmill_types::{Problem, SourceRow};

use super::shape::Shape;
use crate::read_ahead::{AheadSettings, Piece, ReadAhead};

/// How many rows are read at once: few at first, for queries that want only a few.
const FIRST_ROWS: usize = 16;
const MOST_ROWS: usize = 256;
const MOST_BYTES: usize = 256 * 1024;

/// How the rows of a table are read. A query that has had a few batches is likely to want all rows.
const AHEAD: AheadSettings = AheadSettings { thread: "rowmill-scan", first: 4, waiting: 4 };

/// Rows that have more fields than a query asks for are read by the query itself: they are large, and where one
/// thread makes them and another gives their memory back, both wait for the allocator longer than they gain.
const HERE: AheadSettings = AheadSettings { first: usize::MAX, ..AHEAD };

/// Rows that were read at once.
pub(super) struct RowBatch {
    pub(super) rows: Vec<SourceRow>,
    /// How far the read had come then.
    pub(super) position: Position,
}

impl Piece for RowBatch {}

/// The rows of a source, batch by batch.
pub(super) type RowBatches = ReadAhead<RowBatch, Problem>;

/// The batches of a source of a table with this shape: where columns are declared, only those are read that are
/// asked for.
pub(super) fn batches(mut source: Box<dyn RowSource>, shape: &Shape) -> RowBatches {
    let mut rows_at_once = FIRST_ROWS;
    let mut ended = false;
    ReadAhead::new(if shape.declared { AHEAD } else { HERE }, move || {
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
