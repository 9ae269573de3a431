//! Rows made of decoded columns, many at a time: they are written one behind the other and checked together.

use std::sync::Arc;

use rowmill_core::ports::Room;
use rowmill_types::{BadRow, ErrorKind, RowColumns, SourceRow};

use super::group::{Batch, RowRun};

/// How many bytes of rows are checked together: many, and few enough for the nearest cache.
const BLOCK_BYTES: usize = 32 * 1024;
/// How much memory is kept for the next rows; a row that takes more gives it back.
const KEPT_BYTES: usize = 1 << 20;

/// Writes the rows of a read.
pub(super) struct RowWriter {
    columns: Arc<RowColumns>,
    /// The text of rows, one behind the other. It may be no UTF-8 where a file has other bytes for text.
    bytes: Vec<u8>,
    /// Where the values of each row end, counted from the beginning of the row.
    value_ends: Vec<u32>,
    /// Where each row ends.
    row_ends: Vec<usize>,
}

/// How much was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WrittenRows {
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

impl RowWriter {
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let columns = Arc::new(RowColumns::new(names));
        Self { columns, bytes: Vec::new(), value_ends: Vec::new(), row_ends: Vec::new() }
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> Vec<&str> {
        self.columns.names().collect()
    }

    /// Appends rows of a run, at least one and no more than there is room for. Their numbers follow on
    /// those of the `before` rows of earlier files.
    pub(super) fn write_rows(
        &mut self,
        run: &RowRun<'_>,
        before: u64,
        room: Room,
        out: &mut Vec<SourceRow>,
    ) -> WrittenRows {
        self.bytes.clear();
        self.value_ends.clear();
        self.row_ends.clear();
        let most = room.bytes.min(BLOCK_BYTES);
        for at in run.at..run.at + run.rows {
            self.write_row(run.batch, at);
            if self.bytes.len() >= most {
                break;
            }
        }
        self.make_rows(before + run.place + 1, out);
        let written = WrittenRows { rows: self.row_ends.len(), bytes: self.bytes.len() };
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
        written
    }

    fn write_row(&mut self, batch: &Batch, at: usize) {
        let start = self.bytes.len();
        for (column, cells) in batch.cells.iter().enumerate() {
            self.bytes.extend_from_slice(self.columns.start(column).as_bytes());
            match cells {
                None => self.bytes.extend_from_slice(b"null"),
                Some(cells) => cells.write(at, &mut self.bytes),
            }
            // A row that is too long for this is refused when it is made.
            self.value_ends.push(u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX));
        }
        self.bytes.extend_from_slice(if self.columns.is_empty() { b"{}" } else { b"}" });
        self.row_ends.push(self.bytes.len());
    }

    /// Makes rows of what was written. Where it is not all UTF-8, each row is looked at by itself.
    fn make_rows(&self, first: u64, out: &mut Vec<SourceRow>) {
        let text = simdutf8::basic::from_utf8(&self.bytes).ok();
        let columns = self.columns.len();
        let mut start = 0;
        for (number, (row, end)) in (first..).zip(self.row_ends.iter().enumerate()) {
            let ends = self.value_ends.get(row * columns..(row + 1) * columns).unwrap_or_default();
            let bytes = self.bytes.get(start..*end).unwrap_or_default();
            let text = match text {
                Some(text) => text.get(start..*end),
                None => simdutf8::basic::from_utf8(bytes).ok(),
            };
            let made = match text {
                Some(_) if u32::try_from(bytes.len()).is_err() => Err("longer than 4 GiB".to_owned()),
                Some(text) => Ok(self.columns.row(number, text.to_owned(), ends.into())),
                None => Err(self.broken_column(bytes, ends)),
            };
            out.push(made.map_err(|what| BadRow {
                number,
                kind: ErrorKind::InvalidRow,
                message: format!("Row {number}: {what}"),
            }));
            start = *end;
        }
    }

    /// Says which column keeps a row from being text.
    fn broken_column(&self, row: &[u8], ends: &[u32]) -> String {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let is_broken = |(start, end): (u32, &u32)| {
            let value = row.get(start as usize..*end as usize).unwrap_or_default();
            simdutf8::basic::from_utf8(value).is_err()
        };
        let column = starts.zip(ends).position(is_broken).unwrap_or(0);
        let name = self.columns.names().nth(column).unwrap_or_default();
        format!("column `{name}` is not valid UTF-8")
    }
}
