//! Appends records to a file or to standard output, one write per group.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::ports::{PublishedRecord, RecordSink};
use rowmill_types::Problem;

use super::claim::{lock_file, names_open_file, write_problem};
use super::expected_content::ExpectedContent;
use super::stdout::{StandardOutput, stdout_problem};

/// Which part of a record a sink writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkContent {
    /// The envelope of every row.
    Envelopes,
    /// The envelopes of failed rows.
    Failures,
    /// The telemetry of every row.
    Telemetry,
}

/// Writes one line per record.
#[derive(Debug)]
pub struct LineSink {
    part: SinkContent,
    target: SinkTarget,
    pending: Vec<u8>,
    /// Records what was written.
    written: Option<Arc<ExpectedContent>>,
}

#[derive(Debug)]
enum SinkTarget {
    File { file: File, path: PathBuf, length: u64 },
    Stdout(StandardOutput),
}

impl LineSink {
    /// Appends to the file at `path` after its first `keep` bytes; the rest is cut off.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or changed.
    pub fn append(path: &Path, part: SinkContent, keep: u64) -> Result<Self, Problem> {
        let failed = |error: io::Error| write_problem(path, &error);
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        let length = keep.min(found.len());
        // The output is already locked by its claim.
        if part != SinkContent::Envelopes && found.is_file() && !names_open_file(path) {
            lock_file(&file, path)?;
        }
        // A device or a pipe cannot be truncated, and standard output must not be.
        if found.is_file() && !names_open_file(path) {
            file.set_len(length).map_err(failed)?;
        }
        Ok(Self {
            part,
            target: SinkTarget::File { file, path: path.to_owned(), length },
            pending: Vec::new(),
            written: None,
        })
    }

    /// Also records what was written.
    pub(super) fn reporting_to(mut self, written: Arc<ExpectedContent>) -> Self {
        self.written = Some(written);
        self
    }

    /// Writes to standard output.
    ///
    /// # Errors
    ///
    /// Standard output is not open.
    pub fn stdout(part: SinkContent) -> Result<Self, Problem> {
        let stdout = StandardOutput::open().map_err(|error| stdout_problem(&error))?;
        Ok(Self { part, target: SinkTarget::Stdout(stdout), pending: Vec::new(), written: None })
    }

    /// Adds a line that is not part of a record of this run.
    pub fn push(&mut self, line: &[u8]) {
        self.pending.extend_from_slice(line);
        self.pending.push(b'\n');
    }
}

impl Drop for LineSink {
    fn drop(&mut self) {
        if let (SinkTarget::File { file, .. }, false) = (&self.target, self.part == SinkContent::Envelopes) {
            // Closing alone is not enough: a process that is just being started has a copy of the open file.
            file.unlock().ok();
        }
    }
}

impl RecordSink for LineSink {
    fn publish(&mut self, published: PublishedRecord<'_>) -> Result<(), Problem> {
        match self.part {
            SinkContent::Envelopes => self.push(published.envelope),
            SinkContent::Failures if published.ok => {}
            SinkContent::Failures => self.push(published.envelope),
            SinkContent::Telemetry => self.push(published.telemetry),
        }
        if self.pending.len() > 1 << 20 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Problem> {
        if self.pending.is_empty() {
            return Ok(());
        }
        match &mut self.target {
            SinkTarget::Stdout(stdout) => {
                stdout.write_all(&self.pending).map_err(|error| stdout_problem(&error))?;
            }
            SinkTarget::File { file, path, length } => {
                if let Err(error) = file.write_all(&self.pending) {
                    // No partial line may remain; the ledger has the whole record.
                    drop(file.set_len(*length));
                    return Err(write_problem(path, &error));
                }
                *length += self.pending.len() as u64;
                if let Some(written) = &self.written {
                    written.add(&self.pending);
                }
            }
        }
        self.pending.clear();
        Ok(())
    }
}
