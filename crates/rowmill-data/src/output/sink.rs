//! Appending records to a file or to standard output, one write per group.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rowmill_core::ports::{Published, Sink};
use rowmill_types::Problem;

use super::claim::cannot_write;

/// Which part of a record a sink writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
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
    part: Part,
    target: Target,
    pending: Vec<u8>,
}

#[derive(Debug)]
enum Target {
    File { file: File, path: PathBuf, length: u64 },
    Stdout,
}

impl LineSink {
    /// Appends to the file at `path` after its first `keep` bytes; what followed is cut off.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or changed.
    pub fn append(path: &Path, part: Part, keep: u64) -> Result<Self, Problem> {
        let failed = |error: io::Error| cannot_write(path, &error);
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        let length = keep.min(found.len());
        // A device or a pipe has nothing that could be cut off.
        if found.is_file() {
            file.set_len(length).map_err(failed)?;
        }
        Ok(Self { part, target: Target::File { file, path: path.to_owned(), length }, pending: Vec::new() })
    }

    /// Writes to standard output.
    #[must_use]
    pub fn stdout(part: Part) -> Self {
        Self { part, target: Target::Stdout, pending: Vec::new() }
    }

    /// Takes a line that is not part of a record of this run.
    pub fn push(&mut self, line: &[u8]) {
        self.pending.extend_from_slice(line);
        self.pending.push(b'\n');
    }
}

impl Sink for LineSink {
    fn publish(&mut self, published: Published<'_>) -> Result<(), Problem> {
        match self.part {
            Part::Envelopes => self.push(published.envelope),
            Part::Failures if published.ok => {}
            Part::Failures => self.push(published.envelope),
            Part::Telemetry => self.push(published.telemetry),
        }
        if self.pending.len() > 1 << 20 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Problem> {
        if self.pending.is_empty() {
            return Ok(());
        }
        match &mut self.target {
            Target::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout
                    .write_all(&self.pending)
                    .and_then(|()| stdout.flush())
                    .map_err(|error| cannot_write(Path::new("standard output"), &error))?;
            }
            Target::File { file, path, length } => {
                if let Err(error) = file.write_all(&self.pending) {
                    // Half a line must not stay; the ledger has the whole record.
                    drop(file.set_len(*length));
                    return Err(cannot_write(path, &error));
                }
                *length += self.pending.len() as u64;
            }
        }
        self.pending.clear();
        Ok(())
    }
}
