//! Makes rows of decoded columns, many at a time.

use std::sync::Arc;

use rowmill_core::ports::ReadLimit;
use rowmill_types::{RowLayout, RowReadResult};

use super::group::RowRun;
use super::row_block::RowBlock;

/// How many bytes of rows are checked together: many, but few enough for the L1 cache.
const BLOCK_BYTES: usize = 32 * 1024;
/// How much memory is kept for the next rows; anything beyond that is released.
const KEPT_BYTES: usize = 1 << 20;

/// Writes the rows of a read.
pub(super) struct ParquetRowWriter {
    pub(super) columns: Arc<RowLayout>,
    block: RowBlock,
}

/// The number and size of the written rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WrittenRows {
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

impl ParquetRowWriter {
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self { columns: Arc::new(RowLayout::new(names)), block: RowBlock::default() }
    }

    /// Appends rows of a run, at least one and no more than there is room for. Their numbers continue those
    /// of the `before` rows of earlier files.
    pub(super) fn write_rows(
        &mut self,
        run: &RowRun<'_>,
        before: u64,
        room: ReadLimit,
        out: &mut Vec<RowReadResult>,
    ) -> WrittenRows {
        let first = before + run.place + 1;
        let most = room.bytes.min(BLOCK_BYTES);
        let written = &run.batch.written;
        if run.at < written.rows() {
            let rows = run.rows.min(written.rows_within(run.at, most));
            let bytes = written.make_rows(&self.columns, run.at..run.at + rows, first, out);
            return WrittenRows { rows, bytes };
        }
        self.block.clear(KEPT_BYTES);
        for at in run.at..run.at + run.rows {
            run.batch.write_row(at, &mut self.block);
            if self.block.bytes() >= most {
                break;
            }
        }
        let rows = self.block.rows();
        WrittenRows { rows, bytes: self.block.make_rows(&self.columns, 0..rows, first, out) }
    }
}
