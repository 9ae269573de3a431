//! Rows as consecutive text, before it is known whether all of it is UTF-8.

use std::ops::Range;
use std::sync::Arc;

use rowmill_types::{BadRow, RowErrorKind, RowLayout, RowReadResult};

use super::cells::ColumnCells;

/// Rows that were written but not checked.
#[derive(Debug, Default)]
pub(super) struct RowBlock {
    bytes: Vec<u8>,
    /// The end of each value, relative to the start of its row.
    value_ends: Vec<u32>,
    /// The end of each row.
    row_ends: Vec<usize>,
}

impl RowBlock {
    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.row_ends.len()
    }

    /// Their total length.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all rows, and keeps at most `kept` bytes of memory for the next ones.
    pub(super) fn clear(&mut self, kept: usize) {
        self.bytes.clear();
        self.value_ends.clear();
        self.row_ends.clear();
        if self.bytes.capacity() > kept {
            self.bytes = Vec::new();
        }
    }

    /// Appends the row at a position of these columns; a column without cells is null.
    pub(super) fn write_row(&mut self, columns: &RowLayout, cells: &[Option<ColumnCells>], at: usize) {
        let start = self.bytes.len();
        for (column, cells) in cells.iter().enumerate() {
            self.bytes.extend_from_slice(columns.value_prefix(column).as_bytes());
            match cells {
                None => self.bytes.extend_from_slice(b"null"),
                Some(cells) => cells.write(at, &mut self.bytes),
            }
            // A row that is too long for this is rejected when it is made.
            self.value_ends.push(u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX));
        }
        self.bytes.extend_from_slice(if columns.is_empty() { b"{}" } else { b"}" });
        self.row_ends.push(self.bytes.len());
    }

    /// How many rows from `from` on fit into `bytes`, except that the last one may exceed them.
    pub(super) fn rows_within(&self, from: usize, bytes: usize) -> usize {
        let start = self.start_of(from);
        let ends = self.row_ends.get(from..).unwrap_or_default();
        let before = ends.iter().take_while(|end| *end - start < bytes).count();
        (before + 1).min(ends.len())
    }

    /// Makes rows, numbered from `first`, and returns their length. If not all of them are UTF-8, each is
    /// checked separately.
    pub(super) fn make_rows(
        &self,
        columns: &Arc<RowLayout>,
        rows: Range<usize>,
        first: u64,
        out: &mut Vec<RowReadResult>,
    ) -> usize {
        let all = self.start_of(rows.start)..self.start_of(rows.end);
        let bytes = self.bytes.get(all.clone()).unwrap_or_default();
        let whole = simdutf8::basic::from_utf8(bytes).ok();
        for (number, row) in (first..).zip(rows) {
            let place = self.start_of(row) - all.start..self.start_of(row + 1) - all.start;
            let text = match whole {
                Some(whole) => whole.get(place.clone()),
                None => bytes.get(place.clone()).and_then(|row| simdutf8::basic::from_utf8(row).ok()),
            };
            let ends = row * columns.len()..(row + 1) * columns.len();
            let ends = self.value_ends.get(ends).unwrap_or_default();
            let made = match text {
                Some(text) if u32::try_from(text.len()).is_ok() => {
                    Ok(columns.build_row(number, text.to_owned(), ends.into()))
                }
                Some(_) => Err("longer than 4 GiB".to_owned()),
                None => Err(broken_column(columns, bytes.get(place).unwrap_or_default(), ends)),
            };
            out.push(made.map_err(|what| BadRow {
                number,
                kind: RowErrorKind::InvalidRow,
                message: format!("Row {number}: {what}"),
            }));
        }
        bytes.len()
    }

    /// The start of a row: the end of the one before.
    fn start_of(&self, row: usize) -> usize {
        row.checked_sub(1).and_then(|before| self.row_ends.get(before)).copied().unwrap_or(0)
    }
}

/// The message that names the column that is not valid text.
fn broken_column(columns: &RowLayout, row: &[u8], ends: &[u32]) -> String {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let is_broken = |(start, end): (u32, &u32)| {
        let value = row.get(start as usize..*end as usize).unwrap_or_default();
        simdutf8::basic::from_utf8(value).is_err()
    };
    let column = starts.zip(ends).position(is_broken).unwrap_or(0);
    let name = columns.names().nth(column).unwrap_or_default();
    format!("column `{name}` is not valid UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(texts: &[&str]) -> (Arc<RowLayout>, RowBlock) {
        let columns = Arc::new(RowLayout::new(["a"].into_iter()));
        let mut block = RowBlock::default();
        for text in texts {
            block.write_row(&columns, &[Some(ColumnCells::same(&Arc::from(*text)))], 0);
        }
        (columns, block)
    }

    #[test]
    fn rows_are_made_from_any_place_on_and_no_further_than_there_is_room() {
        let (columns, block) = block(&["1", "22", "333", "null"]);
        // Each row is six bytes longer than its value.
        for (from, bytes, rows) in [(0, 0, 1), (0, 7, 1), (0, 8, 2), (1, 16, 2), (1, 18, 3), (3, 99, 1)] {
            assert_eq!(block.rows_within(from, bytes), rows, "{from} {bytes}");
        }
        let mut made = Vec::new();
        assert_eq!(block.make_rows(&columns, 1..3, 8, &mut made), 17);
        let shown: Vec<_> =
            made.iter().flatten().map(|row| (row.number(), row.json_text(), row.field("a"))).collect();
        assert_eq!(shown, [(8, "{\"a\":22}", Some("22")), (9, "{\"a\":333}", Some("333"))]);
    }

    #[test]
    fn a_block_that_is_cleared_gives_back_what_is_too_much() {
        let (columns, mut block) = block(&["1", "null"]);
        block.clear(1 << 20);
        assert_eq!((block.rows(), block.bytes(), block.bytes.capacity() > 0), (0, 0, true));
        block.write_row(&columns, &[None], 0);
        block.clear(0);
        assert_eq!((block.rows(), block.bytes.capacity()), (0, 0));
    }
}
