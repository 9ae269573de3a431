//! Splits blocks into lines without holding one that is too long.

use memchr::memchr;
use rowmill_core::ports::InputReadProgress;
use rowmill_types::Problem;

use crate::block_reader::{BlockReader, ReadWait};

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine<'b> {
    /// A line without its terminator.
    Text(&'b [u8]),
    /// A line longer than the limit, which was skipped.
    TooLong,
    /// The input has ended.
    End,
    /// The line is not complete yet; asking again reads more, which may wait.
    Pending,
}

/// The lines of an input, counted from 1.
#[derive(Debug)]
pub(crate) struct InputLineReader {
    blocks: BlockReader,
    max: usize,
    number: u64,
    /// The unused bytes that were already searched for a line end.
    searched: usize,
    /// Whether the current line is too long and its rest is being skipped.
    skipping: bool,
    ended: bool,
    /// Whether the input ended before the last returned line did.
    is_open: bool,
}

impl InputLineReader {
    /// The lines after the first `passed` lines of an input.
    pub(crate) fn after(blocks: BlockReader, max: usize, passed: u64) -> Self {
        Self { blocks, max, number: passed, searched: 0, skipping: false, ended: false, is_open: false }
    }

    /// The number of the line that [`InputLineReader::next`] returned last.
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

    /// Whether the input ended before the line that [`InputLineReader::next`] returned last did.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The next line, in the buffer it was read into.
    pub(crate) fn next(&mut self, wait: ReadWait) -> Result<InputLine<'_>, Problem> {
        loop {
            let unused = self.blocks.unread_bytes();
            if let Some(found) = memchr(b'\n', unused.get(self.searched..).unwrap_or_default()) {
                return Ok(self.take(self.searched + found, 1));
            }
            self.searched = unused.len();
            if self.searched > self.max {
                self.skipping = true;
            }
            if self.skipping {
                self.blocks.consume(self.searched);
                self.searched = 0;
            }
            if self.ended {
                let rest = self.searched;
                return Ok(if rest > 0 || self.skipping { self.take(rest, 0) } else { InputLine::End });
            }
            if wait == ReadWait::No {
                return Ok(InputLine::Pending);
            }
            self.ended = !self.blocks.fill()?;
        }
    }

    /// Returns the first `length` unused bytes as a line; its terminator is `end` bytes long.
    fn take(&mut self, length: usize, end: usize) -> InputLine<'_> {
        self.number += 1;
        self.searched = 0;
        self.is_open = end == 0;
        let too_long = std::mem::take(&mut self.skipping) || length > self.max;
        let line = self.blocks.take(length, end);
        if too_long { InputLine::TooLong } else { InputLine::Text(line.strip_suffix(b"\r").unwrap_or(line)) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunked_reader::ChunkedReader;

    fn lines(bytes: &[u8], sizes: Vec<usize>, block: usize, max: usize) -> InputLineReader {
        let input = ChunkedReader::new(bytes, sizes);
        InputLineReader::after(BlockReader::with_block(Box::new(input), "rows".into(), None, block), max, 0)
    }

    fn all(mut lines: InputLineReader) -> Vec<Option<Vec<u8>>> {
        let mut found = Vec::new();
        loop {
            let line = match lines.next(ReadWait::UntilFound).unwrap() {
                InputLine::Text(text) => Some(text.to_vec()),
                InputLine::TooLong => None,
                InputLine::End => return found,
                InputLine::Pending => panic!("waiting was allowed"),
            };
            found.push(line);
            assert_eq!(lines.number(), found.len() as u64);
        }
    }

    /// The straightforward way: everything in memory, then split.
    fn reference(bytes: &[u8], max: usize) -> Vec<Option<Vec<u8>>> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        let line =
            |line: &[u8]| (line.len() <= max).then(|| line.strip_suffix(b"\r").unwrap_or(line).to_vec());
        lines.into_iter().map(line).collect()
    }

    #[test]
    fn a_line_that_is_not_complete_is_pending_until_it_may_be_waited_for() {
        let mut lines = lines(b"one\ntwo\nthr", vec![10, 1], 16, 100);
        assert_eq!(lines.next(ReadWait::No).unwrap(), InputLine::Pending);
        assert_eq!(lines.next(ReadWait::UntilFound).unwrap(), InputLine::Text(b"one"));
        assert_eq!(lines.next(ReadWait::No).unwrap(), InputLine::Text(b"two"));
        assert_eq!(lines.next(ReadWait::No).unwrap(), InputLine::Pending);
        assert_eq!(lines.next(ReadWait::UntilFound).unwrap(), InputLine::Text(b"thr"));
        assert_eq!(lines.next(ReadWait::No).unwrap(), InputLine::End);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_without_being_held() {
        let mut bytes = vec![b'x'; 10_000];
        bytes.extend_from_slice(b"\nnext\n");
        let mut lines = lines(&bytes, vec![7], 16, 50);
        assert_eq!(lines.next(ReadWait::UntilFound).unwrap(), InputLine::TooLong);
        assert_eq!(lines.next(ReadWait::UntilFound).unwrap(), InputLine::Text(b"next"));
        assert_eq!((lines.number(), lines.position().read), (2, 10_006));
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_arrive(
            bytes in prop::collection::vec(prop::sample::select(b"\n\n\n\r\xef\xbb\xbf{}a\"\x80".to_vec()), 0..200),
            sizes in prop::collection::vec(1usize..20, 1..5),
            block in 8usize..40,
            max in 1usize..60,
        ) {
            prop_assert_eq!(all(lines(&bytes, sizes, block, max)), reference(&bytes, max));
        }
    }
}
