//! Reads the envelopes of a run, one at a time.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rowmill_store::file::WorkFolder;
use rowmill_types::settings::OUTPUT;
use rowmill_types::{Problem, ProblemCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::spec::FOLDER_IN_OUTPUT;

/// The number of bytes read at once.
const BLOCK: usize = 1 << 18;

/// The file with the envelopes of the run that wrote this output: the output itself, or for a table the
/// file beside it.
///
/// # Errors
///
/// There is no such file.
pub fn envelopes_path(output: &Path) -> Result<PathBuf, Problem> {
    let folder =
        if output.is_dir() { output.join(FOLDER_IN_OUTPUT) } else { WorkFolder::default_path(output) };
    let beside = WorkFolder::envelopes_path_in(&folder);
    if beside.is_file() {
        return Ok(beside);
    }
    let shown = output.display();
    let found = std::fs::metadata(output).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Problem::new(ProblemCode::InputNotFound, format!("output file not found: `{shown}`"))
                .hint(format!("use the path that was the run's {OUTPUT}"))
        }
        _ => unreadable_problem(output, &error),
    })?;
    let ending = output.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    if found.is_dir() || matches!(ending.as_deref(), Some("csv" | "tsv" | "parquet")) {
        let message =
            format!("`{shown}` is a table, and the envelopes of its run are gone: `{}`", beside.display());
        return Err(
            Problem::new(ProblemCode::InputFormat, message).hint("view the table itself with `rowmill head`")
        );
    }
    Ok(output.to_owned())
}

/// The parts of an envelope that are used.
#[derive(Debug, Deserialize)]
pub(super) struct EnvelopeView<'a> {
    #[serde(borrow)]
    pub(super) id: &'a RawValue,
    pub(super) row_number: u64,
    pub(super) ok: bool,
    /// The result; `null` counts as none.
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<EnvelopeError<'a>>,
}

/// The error of an envelope.
#[derive(Debug, Deserialize)]
pub(super) struct EnvelopeError<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) message: Cow<'a, str>,
}

impl EnvelopeView<'_> {
    /// The id for display: a string without its quotes.
    pub(super) fn shown_id(&self) -> String {
        serde_json::from_str(self.id.get()).unwrap_or_else(|_| self.id.get().to_owned())
    }

    /// The result as JSON text.
    pub(super) fn result_text(&self) -> &str {
        self.result.map_or("null", RawValue::get)
    }

    /// The type of the error of a failed row.
    pub(super) fn error_kind(&self) -> &str {
        match &self.error {
            Some(error) if !error.kind.is_empty() => &error.kind,
            _ => "unknown",
        }
    }
}

/// The lines of an output.
#[derive(Debug)]
pub(super) struct EnvelopeLines {
    path: PathBuf,
    reader: BufReader<File>,
    line: Vec<u8>,
    /// The number of the line that was read last.
    pub(super) number: u64,
    /// The offset of the next line.
    next: u64,
}

impl EnvelopeLines {
    pub(super) fn open(path: &Path) -> Result<Self, Problem> {
        let file = File::open(path).map_err(|error| unreadable_problem(path, &error))?;
        let reader = BufReader::with_capacity(BLOCK, file);
        Ok(Self { path: path.to_owned(), reader, line: Vec::new(), number: 0, next: 0 })
    }

    /// The next line that is not blank, with its offset; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, Problem> {
        let offset = loop {
            self.line.clear();
            let read = self.reader.read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| unreadable_problem(&self.path, &error))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            let offset = self.next;
            self.next += read as u64;
            if !self.line.trim_ascii().is_empty() {
                break offset;
            }
        };
        Ok(Some((offset, self.line.trim_ascii())))
    }

    /// The line at `offset`.
    pub(super) fn at(&mut self, offset: u64) -> Result<&[u8], Problem> {
        self.line.clear();
        self.reader
            .seek(SeekFrom::Start(offset))
            .and_then(|_| self.reader.read_until(b'\n', &mut self.line))
            .map_err(|error| unreadable_problem(&self.path, &error))?;
        Ok(self.line.trim_ascii())
    }

    /// The problem with the line that was read last.
    pub(super) fn no_envelope(&self, error: &serde_json::Error) -> Problem {
        let message = format!("line {} of `{}` is not an envelope", self.number, self.path.display());
        Problem::new(ProblemCode::InputFormat, message)
            .cause(error)
            .hint("use the output of a run; view other files with `rowmill head`")
    }
}

/// Parses an envelope from its line.
pub(super) fn parse_envelope(line: &[u8]) -> Result<EnvelopeView<'_>, serde_json::Error> {
    serde_json::from_slice(line)
}

pub(super) fn unreadable_problem(path: &Path, error: &io::Error) -> Problem {
    Problem::new(ProblemCode::InputUnreadable, format!("cannot read `{}`", path.display()))
        .cause(error)
        .hint("check the path and its permissions")
}
