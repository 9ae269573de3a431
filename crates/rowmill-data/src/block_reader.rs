//! Reads bytes in large blocks and keeps the unused ones contiguous.

use std::fmt;
use std::io::{self, Read};

use rowmill_core::ports::InputReadProgress;
use rowmill_types::settings::{ACCEPT_CHANGES, INPUT, INPUT_FORMAT, RESUME};
use rowmill_types::{Problem, ProblemCode};

use crate::decompress::{CompressionFormat, Decompressor};

/// How many bytes are requested from the system at once.
const BLOCK: usize = 256 * 1024;

/// The longest line or record that is held in memory.
pub(crate) const MAX_RECORD: usize = 64 * 1024 * 1024;

/// The byte order mark that some programs put before UTF-8 text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether the reader may wait for a line or record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadWait {
    /// Read on until there is one, or the input ends.
    UntilFound,
    /// Return one only if it was already read.
    No,
}

/// The source of the bytes.
enum BlockInput {
    Plain(Box<dyn Read + Send>),
    Packed(Box<Decompressor>),
}

/// The bytes of an input, decompressed if necessary, and how many of them were used.
pub(crate) struct BlockReader {
    input: BlockInput,
    /// The name of the input in messages.
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

impl BlockReader {
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
            input: BlockInput::Plain(input),
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

    /// The bytes that were read but not used yet.
    pub(crate) fn unread_bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Marks `count` of the unused bytes as used.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Returns the first `length` unused bytes, and marks them and `extra` more as used.
    pub(crate) fn take(&mut self, length: usize, extra: usize) -> &[u8] {
        let from = self.start;
        self.consume(length + extra);
        self.buffer.get(from..from + length).unwrap_or_default()
    }

    /// The name of the input in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Appends more input to the unused bytes; `false` at the end of the input.
    ///
    /// The first call detects compressed input, removes a byte order mark, and rejects input that is
    /// certainly not text, because each of its lines would fail.
    pub(crate) fn fill(&mut self) -> Result<bool, Problem> {
        if self.begun {
            return self.fill_once();
        }
        self.begun = true;
        self.fill_first()?;
        if let Some(packing) = CompressionFormat::detect(self.unread_bytes()) {
            self.unpack(packing)?;
            self.fill_first()?;
        }
        if let Some(kind) = WrongFormat::of(self.unread_bytes()) {
            return Err(self.not_text(kind));
        }
        if self.unread_bytes().starts_with(BYTE_ORDER_MARK) {
            self.consume(BYTE_ORDER_MARK.len());
        }
        Ok(!self.unread_bytes().is_empty())
    }

    /// Reads enough to detect the type of the input.
    fn fill_first(&mut self) -> Result<(), Problem> {
        while self.unread_bytes().len() < 5 && self.fill_once()? {}
        Ok(())
    }

    /// From here on, yields the decompressed content of the input.
    fn unpack(&mut self, packing: CompressionFormat) -> Result<(), Problem> {
        let begun = self.unread_bytes().to_vec();
        (self.start, self.end, self.ended) = (0, 0, false);
        if let BlockInput::Plain(input) = &mut self.input {
            let input = std::mem::replace(input, Box::new(io::empty()));
            let unpacked =
                Decompressor::new(packing, begun, input).map_err(|error| self.unreadable(&error))?;
            self.input = BlockInput::Packed(Box::new(unpacked));
        }
        Ok(())
    }

    /// Discards what was not used and what was not read.
    pub(crate) fn close(&mut self) {
        self.consume(self.end);
        self.ended = true;
    }

    /// How far the input was used; for compressed input, compressed bytes are counted.
    pub(crate) fn position(&self) -> InputReadProgress {
        let read = match &self.input {
            BlockInput::Plain(_) => self.read - self.unread_bytes().len() as u64,
            BlockInput::Packed(unpack) => unpack.used(),
        };
        InputReadProgress { read, total: self.total }
    }

    fn fill_once(&mut self) -> Result<bool, Problem> {
        if self.ended {
            return Ok(false);
        }
        self.make_room();
        loop {
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            let read = match &mut self.input {
                BlockInput::Plain(input) => input.read(room),
                BlockInput::Packed(unpack) => unpack.read(room),
            };
            match read {
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
        let (name, read) = (&self.name, self.position().read);
        let problem = |message| Problem::new(ProblemCode::InputUnreadable, message);
        let BlockInput::Packed(unpack) = &self.input else {
            return problem(format!("cannot read more of the input: `{name}`, after {read} bytes"))
                .cause(error)
                .hint(format!("finished rows are kept, continue with {RESUME}"));
        };
        let packing = unpack.packing().name();
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return problem(format!(
                "input ends in the middle of its {packing} data: `{name}`, after {read} bytes"
            ))
            .hint(format!(
                "the file is truncated: download it again, then continue with {resume_changed}; finished \
                 rows are kept",
                resume_changed = RESUME.and(ACCEPT_CHANGES)
            ));
        }
        problem(format!("input is damaged in the middle of its {packing} data: `{name}`, after {read} bytes"))
            .cause(error)
            .hint(format!(
                "download the file again, then continue with {resume_changed}; finished rows are kept",
                resume_changed = RESUME.and(ACCEPT_CHANGES)
            ))
    }

    fn not_text(&self, kind: WrongFormat) -> Problem {
        let (what, hint) = kind.problem_text();
        Problem::new(ProblemCode::InputFormat, format!("input is not UTF-8 text but {what}: `{}`", self.name))
            .hint(hint)
    }
}

impl fmt::Debug for BlockReader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Blocks").field("name", &self.name).field("read", &self.read).finish_non_exhaustive()
    }
}

/// Input that is not UTF-8 text.
#[derive(Debug, Clone, Copy)]
enum WrongFormat {
    PackedAgain(CompressionFormat),
    Zip,
    Parquet,
    Utf16,
}

impl WrongFormat {
    /// What the first bytes show.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [b'P', b'K', 3, 4, ..] => Some(Self::Zip),
            // `PAR1` alone may be the name of a column.
            [b'P', b'A', b'R', b'1', 0..=8 | 11 | 12 | 14..=31, ..] => Some(Self::Parquet),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(Self::Utf16),
            // The input was already decompressed once.
            _ => CompressionFormat::detect(bytes).map(Self::PackedAgain),
        }
    }

    /// What it is, and how to fix it.
    fn problem_text(self) -> (&'static str, String) {
        let unpack = || {
            let from_pipe = INPUT.with_value("-").and(INPUT_FORMAT.with_value("jsonl"));
            format!("decompress it first, for instance into a pipe to {from_pipe}")
        };
        match self {
            Self::PackedAgain(CompressionFormat::Gzip) => ("compressed twice (gzip inside)", unpack()),
            Self::PackedAgain(CompressionFormat::Zstd) => ("compressed twice (zstd inside)", unpack()),
            Self::Zip => ("a ZIP archive or a spreadsheet", unpack()),
            Self::Parquet => (
                "a Parquet file",
                format!(
                    "read it with {input_format}, from an uncompressed file, not a pipe",
                    input_format = INPUT_FORMAT.with_value("parquet")
                ),
            ),
            Self::Utf16 => {
                ("UTF-16", "convert it first, for instance with `iconv -f utf-16 -t utf-8`".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(bytes: &'static [u8], block: usize) -> BlockReader {
        BlockReader::with_block(Box::new(bytes), "rows".into(), Some(bytes.len() as u64), block)
    }

    #[test]
    fn the_buffer_grows_for_what_is_unused_and_shrinks_after_it() {
        let mut blocks = blocks(&[b'x'; 100], 8);
        while blocks.fill().unwrap() {}
        assert_eq!(blocks.unread_bytes(), [b'x'; 100]);
        blocks.consume(99);
        blocks.ended = false;
        assert!(!blocks.fill().unwrap());
        assert_eq!((blocks.unread_bytes(), blocks.buffer.len()), (&b"x"[..], 8));
    }

    #[test]
    fn the_position_counts_what_was_used() {
        let mut blocks = blocks(b"\xef\xbb\xbfabc", 8);
        assert_eq!(blocks.position(), InputReadProgress { read: 0, total: Some(6) });
        assert!(blocks.fill().unwrap());
        assert_eq!(blocks.position().read, 3);
        blocks.consume(2);
        assert_eq!((blocks.unread_bytes(), blocks.position().read), (&b"c"[..], 5));
    }

    #[test]
    fn an_input_of_a_byte_order_mark_alone_is_empty() {
        let mut blocks = blocks(b"\xef\xbb\xbf", 8);
        assert!(!blocks.fill().unwrap());
    }

    #[test]
    fn input_that_is_no_text_is_refused_at_once() {
        for (bytes, kind) in [
            (&b"PK\x03\x04\x14"[..], "a ZIP archive or a spreadsheet"),
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
