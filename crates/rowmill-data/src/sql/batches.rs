//! Reads the next rows of a scan while a query processes the last ones.

use rowmill_core::ports::{InputReadProgress, ReadLimit, RowSource};
use rowmill_types::Problem;

use super::column_values::{ColumnFinder, ColumnValues};
use crate::read_ahead::{AheadPiece, AheadSettings, ReadAhead};

/// How many rows are read at once: few at first, for queries that need only a few.
const FIRST_ROWS: usize = 16;
const MOST_ROWS: usize = 256;
const MOST_BYTES: usize = 256 * 1024;

/// How the rows of a table are read ahead. A query that has received a few batches is likely to want all
/// rows.
const AHEAD: AheadSettings = AheadSettings { thread: "rowmill-scan", first: 4, waiting: 4 };

/// Rows that are passed on unchanged are read on the query's own thread: they are large, and if one thread
/// allocates them and another frees them, waiting for the allocator costs more than the parallelism gains.
const HERE: AheadSettings = AheadSettings { first: usize::MAX, ..AHEAD };

/// Rows that were read at once.
#[derive(Debug, Default)]
pub(super) struct RowBatch {
    pub(super) found: ColumnValues,
    /// The position of the read at that point.
    pub(super) position: InputReadProgress,
    /// The reason why the rest of a file is missing after them.
    pub(super) damage: Option<Problem>,
}

impl AheadPiece for RowBatch {}

/// The rows of a source, batch by batch.
pub(super) type RowBatches = ReadAhead<RowBatch, Problem>;

/// The batches of a source, as far as a query requests them.
pub(super) fn read_ahead_batches(mut source: Box<dyn RowSource>, mut finder: ColumnFinder) -> RowBatches {
    let mut rows_at_once = FIRST_ROWS;
    let mut rows = Vec::new();
    let mut ended = false;
    ReadAhead::new(if finder.makes_large_rows() { HERE } else { AHEAD }, move || {
        if ended {
            return Ok(None);
        }
        let room = ReadLimit { rows: rows_at_once, bytes: MOST_BYTES };
        rows_at_once = (rows_at_once * 2).min(MOST_ROWS);
        ended = !source.read(&mut rows, room)?;
        let damage = if rows.iter().any(Result::is_err) { source.damage() } else { None };
        Ok(Some(RowBatch { found: finder.find_all(&mut rows), position: source.position(), damage }))
    })
}
