//! Splits a JSON array into its items, without holding more than one.

use rowmill_core::ports::InputReadProgress;
use rowmill_types::Problem;

use super::array_scanner::{ArrayScan, ArrayScanner};
use crate::block_reader::{BlockReader, ReadWait};

/// The result of reading an item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArrayItem<'b> {
    /// The text of an item.
    Text(&'b [u8]),
    /// An item longer than the limit, which was skipped.
    TooLong,
    /// Not an item, for this reason; nothing after it can be read.
    Broken(String),
    /// The array and the input have ended.
    End,
    /// The item is not complete yet; asking again reads more, which may wait.
    Pending,
}

/// The items of an array, counted from 1.
#[derive(Debug)]
pub(crate) struct ArrayItemReader {
    blocks: BlockReader,
    max: usize,
    number: u64,
    borders: ArrayScanner,
    /// Whether the current item is too long and its rest is being skipped.
    skipping: bool,
    exhausted: bool,
}

impl ArrayItemReader {
    pub(crate) fn new(blocks: BlockReader, max: usize) -> Self {
        Self { blocks, max, number: 0, borders: ArrayScanner::default(), skipping: false, exhausted: false }
    }

    /// The number of the item that [`ArrayItemReader::next`] returned last.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn position(&self) -> InputReadProgress {
        self.blocks.position()
    }

    /// The name of the input.
    pub(crate) fn name(&self) -> &str {
        self.blocks.name()
    }

    /// The next item, in the buffer it was read into.
    pub(crate) fn next(&mut self, wait: ReadWait) -> Result<ArrayItem<'_>, Problem> {
        loop {
            match self.borders.scan(self.blocks.unread_bytes()) {
                ArrayScan::PassOver(count) => {
                    self.blocks.consume(count);
                    continue;
                }
                ArrayScan::Item { length, used } => return Ok(self.take(length, used)),
                ArrayScan::Broken(what) => return Ok(self.end_with(what)),
                ArrayScan::More => {}
            }
            if self.borders.scanned_bytes() > self.max {
                self.skipping = true;
            }
            if self.skipping {
                self.blocks.consume(self.borders.reset_scanned());
            }
            if self.exhausted {
                return Ok(self.close());
            }
            if wait == ReadWait::No {
                return Ok(ArrayItem::Pending);
            }
            self.exhausted = !self.blocks.fill()?;
        }
    }

    /// The result at the end of the input for the current item.
    fn close(&mut self) -> ArrayItem<'_> {
        match self.borders.finish() {
            ArrayScan::Item { length, used } => self.take(length, used),
            ArrayScan::Broken(what) => self.end_with(what),
            ArrayScan::PassOver(_) | ArrayScan::More => ArrayItem::End,
        }
    }

    /// Returns the first `length` unused bytes as an item, and marks `used` bytes as used.
    fn take(&mut self, length: usize, used: usize) -> ArrayItem<'_> {
        self.number += 1;
        let too_long = std::mem::take(&mut self.skipping) || length > self.max;
        let text = self.blocks.take(length, used - length);
        if too_long { ArrayItem::TooLong } else { ArrayItem::Text(text.trim_ascii_end()) }
    }

    fn end_with(&mut self, what: String) -> ArrayItem<'_> {
        self.number += 1;
        self.blocks.close();
        self.exhausted = true;
        ArrayItem::Broken(what)
    }
}

#[cfg(test)]
#[path = "items_tests.rs"]
mod tests;
