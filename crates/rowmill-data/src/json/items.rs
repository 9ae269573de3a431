//! Splits a JSON array into its items, without holding more than one.

use rowmill_core::ports::Position;
use rowmill_types::Problem;

use super::borders::{Borders, Look};
use crate::blocks::{Blocks, Wait};

/// The result of reading an item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'b> {
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
pub(crate) struct Items {
    blocks: Blocks,
    max: usize,
    number: u64,
    borders: Borders,
    /// Whether the current item is too long and its rest is being skipped.
    skipping: bool,
    exhausted: bool,
}

impl Items {
    pub(crate) fn new(blocks: Blocks, max: usize) -> Self {
        Self { blocks, max, number: 0, borders: Borders::default(), skipping: false, exhausted: false }
    }

    /// The number of the item that [`Items::next`] returned last.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn position(&self) -> Position {
        self.blocks.position()
    }

    /// The name of the input.
    pub(crate) fn name(&self) -> &str {
        self.blocks.name()
    }

    /// The next item, in the buffer it was read into.
    pub(crate) fn next(&mut self, wait: Wait) -> Result<Item<'_>, Problem> {
        loop {
            match self.borders.look(self.blocks.unused()) {
                Look::PassOver(count) => {
                    self.blocks.use_up(count);
                    continue;
                }
                Look::Item { length, used } => return Ok(self.take(length, used)),
                Look::Broken(what) => return Ok(self.end_with(what)),
                Look::More => {}
            }
            if self.borders.searched() > self.max {
                self.skipping = true;
            }
            if self.skipping {
                self.blocks.use_up(self.borders.forget());
            }
            if self.exhausted {
                return Ok(self.close());
            }
            if wait == Wait::No {
                return Ok(Item::Pending);
            }
            self.exhausted = !self.blocks.fill()?;
        }
    }

    /// The result at the end of the input for the current item.
    fn close(&mut self) -> Item<'_> {
        match self.borders.close() {
            Look::Item { length, used } => self.take(length, used),
            Look::Broken(what) => self.end_with(what),
            Look::PassOver(_) | Look::More => Item::End,
        }
    }

    /// Returns the first `length` unused bytes as an item, and marks `used` bytes as used.
    fn take(&mut self, length: usize, used: usize) -> Item<'_> {
        self.number += 1;
        let too_long = std::mem::take(&mut self.skipping) || length > self.max;
        let text = self.blocks.take(length, used - length);
        if too_long { Item::TooLong } else { Item::Text(text.trim_ascii_end()) }
    }

    fn end_with(&mut self, what: String) -> Item<'_> {
        self.number += 1;
        self.blocks.close();
        self.exhausted = true;
        Item::Broken(what)
    }
}

#[cfg(test)]
#[path = "items_tests.rs"]
mod tests;
