//! Lines of a file of envelopes, with their offsets.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Take};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rowmill_core::record::EnvelopeHead;
use rowmill_types::{Problem, ProblemCode};

/// Reads which row a line belongs to.
pub(super) type HeadFn = fn(&[u8]) -> Result<EnvelopeHead, serde_json::Error>;

/// Reads a part of a file line by line. Blank lines are skipped.
#[derive(Debug)]
pub(super) struct OutputLines {
    reader: Take<BufReader<File>>,
    head_of: HeadFn,
    path: PathBuf,
    /// The last line that was read, newline included.
    pub(super) bytes: Vec<u8>,
    /// Its offset.
    pub(super) offset: u64,
    next_offset: u64,
    number: u64,
}

/// The result of reading a line: an envelope, or the end of what could be read.
#[derive(Debug)]
pub(super) enum OutputLine {
    Envelope(EnvelopeHead),
    /// The last line, without a newline: the beginning of an envelope.
    Torn,
    End,
}

impl OutputLines {
    pub(super) fn open(path: &Path, range: Range<u64>, capacity: usize) -> Result<Self, Problem> {
        let mut file = File::open(path).map_err(|error| read_problem(path, &error))?;
        file.seek(SeekFrom::Start(range.start)).map_err(|error| read_problem(path, &error))?;
        let reader = BufReader::with_capacity(capacity, file).take(range.end - range.start);
        let (offset, next_offset) = (range.start, range.start);
        Ok(Self {
            reader,
            head_of: EnvelopeHead::parse,
            path: path.to_owned(),
            bytes: Vec::new(),
            offset,
            next_offset,
            number: 0,
        })
    }

    /// Reads lines of another format.
    pub(super) fn with_head(self, head_of: HeadFn) -> Self {
        Self { head_of, ..self }
    }

    pub(super) fn next(&mut self) -> Result<OutputLine, Problem> {
        loop {
            self.bytes.clear();
            let read = self
                .reader
                .read_until(b'\n', &mut self.bytes)
                .map_err(|error| read_problem(&self.path, &error))?;
            if read == 0 {
                return Ok(OutputLine::End);
            }
            self.number += 1;
            self.offset = self.next_offset;
            self.next_offset += read as u64;
            if self.bytes.trim_ascii().is_empty() {
                continue;
            }
            return match (self.head_of)(&self.bytes) {
                Ok(head) => Ok(OutputLine::Envelope(head)),
                Err(_) if !self.has_newline() && is_torn(&self.bytes) => Ok(OutputLine::Torn),
                Err(error) => Err(self.unusable(&error)),
            };
        }
    }

    /// Reads the next line without parsing it; `false` at the end.
    pub(super) fn next_line(&mut self) -> Result<bool, Problem> {
        self.bytes.clear();
        let read = self.reader.read_until(b'\n', &mut self.bytes);
        Ok(read.map_err(|error| read_problem(&self.path, &error))? > 0)
    }

    /// Whether the last line that was read has a newline.
    pub(super) fn has_newline(&self) -> bool {
        self.bytes.last() == Some(&b'\n')
    }

    pub(super) fn unusable(&self, error: &serde_json::Error) -> Problem {
        let message = format!(
            "line {} of the existing output `{}` is not an envelope",
            self.number,
            self.path.display()
        );
        Problem::new(ProblemCode::OutputUnusable, message)
            .cause(error)
            .hint("correct or remove the line, or move the file away; nothing was changed")
    }
}

/// Whether a line without a newline can be the remainder of a line that a crash interrupted. A complete value
/// of another type, or any other text, was written by someone else.
pub(super) fn is_torn(line: &[u8]) -> bool {
    const BEGIN: &[u8] = b"{\"id\":";
    let begins = line.starts_with(BEGIN) || BEGIN.starts_with(line);
    // A disk may return zeros for data that was never written.
    let is_blank = line.iter().all(|&byte| byte == 0);
    is_blank || begins && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err()
}

pub(super) fn read_problem(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::OutputUnusable, format!("cannot read `{}`", path.display()))
        .cause(error)
        .hint("check the permissions of the file")
}
