//! Decoded rows of a row group, some of which are already text.

use std::sync::Arc;

use rowmill_types::RowLayout;

use super::cells::ColumnCells;
use super::row_block::RowBlock;
use crate::read_ahead::AheadPiece;

/// How many rows are written between two checks whether they are requested.
const STEP: usize = 64;
/// The maximum text length of rows that have not been requested.
const MOST_BYTES: usize = 4 << 20;

/// Decoded rows.
pub(super) struct DecodedBatch {
    columns: Arc<RowLayout>,
    /// The values of each wanted column; `None` if the file lacks it.
    cells: Vec<Option<ColumnCells>>,
    pub(super) rows: usize,
    /// The first rows, if there was time to write them before they were requested.
    pub(super) written: RowBlock,
    /// Their maximum total length.
    most_written: usize,
}

impl DecodedBatch {
    pub(super) fn new(columns: Arc<RowLayout>, cells: Vec<Option<ColumnCells>>, rows: usize) -> Self {
        Self { columns, cells, rows, written: RowBlock::default(), most_written: MOST_BYTES }
    }

    /// A batch of which few rows may be needed, so that none is written before it is requested.
    pub(super) fn without_write_ahead(self) -> Self {
        Self { most_written: 0, ..self }
    }

    /// How many rows from a position on can be made at once, of at most `most`.
    pub(super) fn rows_at_once(&self, at: usize, most: usize) -> usize {
        let written = self.written.rows();
        let end = if at < written { written } else { self.rows };
        most.min(end.saturating_sub(at))
    }

    /// Appends the row at a position to a block.
    pub(super) fn write_row(&self, at: usize, block: &mut RowBlock) {
        block.write_row(&self.columns, &self.cells, at);
    }
}

impl AheadPiece for DecodedBatch {
    fn prepare(&mut self) -> bool {
        let start = self.written.rows();
        for at in start..self.rows.min(start + STEP) {
            if self.written.bytes() >= self.most_written {
                return false;
            }
            self.written.write_row(&self.columns, &self.cells, at);
        }
        self.written.rows() > start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(rows: usize) -> DecodedBatch {
        let columns = Arc::new(RowLayout::new(["a", "b"].into_iter()));
        DecodedBatch::new(columns, vec![Some(ColumnCells::same(&Arc::from("1"))), None], rows)
    }

    #[test]
    fn rows_are_written_step_by_step_until_all_are() {
        let mut batch = batch(STEP + 1);
        assert_eq!(batch.rows_at_once(0, 1_000), STEP + 1, "none is written");
        assert!(batch.prepare());
        assert_eq!((batch.rows_at_once(0, 1_000), batch.rows_at_once(STEP, 1_000)), (STEP, 1));
        assert!(batch.prepare());
        assert!(!batch.prepare());
        assert_eq!((batch.written.rows(), batch.rows_at_once(0, 7)), (STEP + 1, 7));
    }

    #[test]
    fn no_row_is_written_where_few_may_be_of_use() {
        let mut batch = batch(10).without_write_ahead();
        assert!(!batch.prepare());
        assert_eq!(batch.written.rows(), 0);
    }

    #[test]
    fn what_was_written_ahead_does_not_grow_without_bound() {
        let mut batch = DecodedBatch { most_written: 100, ..batch(1_000) };
        while batch.prepare() {}
        let row = r#"{"a":1,"b":null}"#.len();
        assert!(batch.written.bytes() < 100 + row, "{}", batch.written.bytes());
        assert!(batch.rows_at_once(batch.written.rows(), 1_000) > 900, "the others are left");
    }
}
