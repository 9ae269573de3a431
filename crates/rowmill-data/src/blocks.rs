//! Reading bytes in large blocks, with what is not yet used kept in one piece.

use std::fmt;
use std::io::{self, Read};

use rowmill_core::ports::Position;
use rowmill_types::{Problem, ProblemCode};

/// How much is asked of the system at once.
const BLOCK: usize = 256 * 1024;

/// The longest line or record that is held in memory.
pub(crate) const MAX_RECORD: usize = 64 * 1024 * 1024;

/// The mark that some programs put before UTF-8 text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether a line or record may be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Read on until there is one, or the end.
    UntilFound,
    /// Only give one that was read already.
    No,
}

/// Bytes of an input, and how far they were used.
pub(crate) struct Blocks {
    input: Box<dyn Read + Send>,
    /// What the input is called in messages.
    name: String,
    total: Option<u64>,
    block: usize,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    read: u64,
    begun: bool,
    ended: bool,
}

impl Blocks {
    pub(crate) fn new(input: Box<dyn Read + Send>, name: String, total: Option<u64>) -> Self {
        Self::with_block(input, name, total, BLOCK)
    }

    pub(crate) fn with_block(
        input: Box<dyn Read + Send>,
        name: String,
        total: Option<u64>,
        block: usize,
    ) -> Self {
        Self {
            input,
            name,
            total,
            block,
            buffer: vec![0; block],
            start: 0,
            end: 0,
            read: 0,
            begun: false,
            ended: false,
        }
    }

    /// The bytes that were read and not used yet.
    pub(crate) fn unused(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Counts `count` of the unused bytes as used.
    pub(crate) fn use_up(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Gives the first `length` unused bytes, and counts them and `extra` more as used.
    pub(crate) fn take(&mut self, length: usize, extra: usize) -> &[u8] {
        let from = self.start;
        self.use_up(length + extra);
        self.buffer.get(from..from + length).unwrap_or_default()
    }

    /// Reads more behind the unused bytes; `false` at the end of the input.
    ///
    /// The first time, a byte order mark is taken away and input that is
    /// certainly no text is refused, because each of its lines would fail.
    pub(crate) fn fill(&mut self) -> Result<bool, Problem> {
        if self.begun {
            return self.fill_once();
        }
        self.begun = true;
        while self.unused().len() < 5 && self.fill_once()? {}
        if let Some(kind) = foreign_kind(self.unused()) {
            return Err(self.not_text(kind));
        }
        if self.unused().starts_with(BYTE_ORDER_MARK) {
            self.use_up(BYTE_ORDER_MARK.len());
        }
        Ok(!self.unused().is_empty())
    }

    /// Gives up what was not used and what was not read.
    pub(crate) fn close(&mut self) {
        self.use_up(self.end);
        self.ended = true;
    }

    /// How far the bytes were used.
    pub(crate) fn position(&self) -> Position {
        Position { read: self.read - self.unused().len() as u64, total: self.total }
    }

    fn fill_once(&mut self) -> Result<bool, Problem> {
        if self.ended {
            return Ok(false);
        }
        self.make_room();
        loop {
            match self.input.read(self.buffer.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    self.read += count as u64;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(&error)),
            }
        }
    }

    /// Moves the unused bytes to the front; the buffer grows only when they fill
    /// it, and shrinks again once they do not.
    fn make_room(&mut self) {
        let length = self.end - self.start;
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, length);
        if length == self.buffer.len() {
            self.buffer.resize(length * 2, 0);
        } else if self.buffer.len() > self.block && length < self.block / 2 {
            self.buffer.truncate(self.block);
            self.buffer.shrink_to_fit();
        }
    }

    fn unreadable(&self, error: &io::Error) -> Problem {
        let message = format!("input cannot be read any further: `{}`, after {} bytes", self.name, self.read);
        Problem::new(ProblemCode::InputUnreadable, message)
            .cause(error)
            .hint("what was answered before is kept; go on with `--resume`")
    }

    fn not_text(&self, kind: &str) -> Problem {
        Problem::new(ProblemCode::InputFormat, format!("input is not UTF-8 text but {kind}: `{}`", self.name))
            .hint("unpack or convert it first, for instance into a pipe to `--input - --input-format jsonl`")
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Blocks").field("name", &self.name).field("read", &self.read).finish_non_exhaustive()
    }
}

/// What the first bytes tell about input that is no UTF-8 text.
fn foreign_kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x1f, 0x8b, ..] => Some("compressed with gzip"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("compressed with zstd"),
        [b'P', b'K', 3, 4, ..] => Some("a ZIP archive or a spreadsheet"),
        // `PAR1` alone may be the name of a column.
        [b'P', b'A', b'R', b'1', 0..=8 | 11 | 12 | 14..=31, ..] => Some("a Parquet file"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(bytes: &'static [u8], block: usize) -> Blocks {
        Blocks::with_block(Box::new(bytes), "rows".into(), Some(bytes.len() as u64), block)
    }

    #[test]
    fn the_buffer_grows_for_what_is_unused_and_shrinks_after_it() {
        let mut blocks = blocks(&[b'x'; 100], 8);
        while blocks.fill().unwrap() {}
        assert_eq!(blocks.unused(), [b'x'; 100]);
        blocks.use_up(99);
        blocks.ended = false;
        assert!(!blocks.fill().unwrap());
        assert_eq!((blocks.unused(), blocks.buffer.len()), (&b"x"[..], 8));
    }

    #[test]
    fn the_position_counts_what_was_used() {
        let mut blocks = blocks(b"\xef\xbb\xbfabc", 8);
        assert_eq!(blocks.position(), Position { read: 0, total: Some(6) });
        assert!(blocks.fill().unwrap());
        assert_eq!(blocks.position().read, 3);
        blocks.use_up(2);
        assert_eq!((blocks.unused(), blocks.position().read), (&b"c"[..], 5));
    }

    #[test]
    fn an_input_of_a_byte_order_mark_alone_is_empty() {
        let mut blocks = blocks(b"\xef\xbb\xbf", 8);
        assert!(!blocks.fill().unwrap());
    }

    #[test]
    fn input_that_is_no_text_is_refused_at_once() {
        for (bytes, kind) in [
            (&b"\x1f\x8b\x08\x00"[..], "compressed with gzip"),
            (b"\x28\xb5\x2f\xfd\x00", "compressed with zstd"),
            (b"PK\x03\x04\x14", "a ZIP archive or a spreadsheet"),
            (b"PAR1\x15\x04", "a Parquet file"),
            (b"\xff\xfe{\x00", "UTF-16"),
        ] {
            let problem = blocks(bytes, 8).fill().unwrap_err();
            assert_eq!(problem.code, ProblemCode::InputFormat);
            assert_eq!(problem.message, format!("input is not UTF-8 text but {kind}: `rows`"));
        }
        for text in [&b"PAR1,b\n"[..], b"PAR1\n1\n", b"PK", b"(", b""] {
            assert!(blocks(text, 8).fill().is_ok());
        }
    }
}
