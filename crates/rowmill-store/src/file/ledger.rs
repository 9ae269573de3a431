//! Appending to the ledger, with a reserve for the day the disk is full.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rowmill_core::ports::{Appended, Group, Ledger, LedgerReader, Span};
use rowmill_types::{Problem, ProblemCode};

use super::format::{cover_line, released_line, taken_line};
use super::{Header, WorkFolder};

/// What a row's record takes, until larger ones are seen.
const TYPICAL_RECORD: usize = 4 * 1024;
const LEAST_RESERVE: usize = 64 * 1024;
const MOST_RESERVE: usize = 32 * 1024 * 1024;

/// A ledger in a file. One per run; the output's lock keeps others away.
#[derive(Debug)]
pub struct FileLedger {
    file: File,
    path: PathBuf,
    length: u64,
    reserve: PathBuf,
    reserve_bytes: usize,
    reserved_rows: usize,
    lines: Vec<u8>,
}

impl FileLedger {
    /// Opens the ledger that `header` names, after its first `length` bytes of whole
    /// lines; what follows was cut by a crash and is removed.
    ///
    /// Room for the records of `reserved_rows` rows is set aside on the same disk, to be
    /// given up when the disk is full, so that answers in flight at that moment can still
    /// be written.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or there is no room for the reserve.
    pub fn open(
        folder: &WorkFolder,
        header: &Header,
        length: u64,
        reserved_rows: usize,
    ) -> Result<Self, Problem> {
        let path = folder.ledger(header);
        let failed = |error: std::io::Error| cannot_write(&path, &error);
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        file.set_len(length).and_then(|()| file.seek(SeekFrom::Start(length))).map_err(failed)?;
        let reserve = folder.reserve();
        let reserve_bytes = (reserved_rows * TYPICAL_RECORD).clamp(LEAST_RESERVE, MOST_RESERVE);
        set_aside(&reserve, reserve_bytes).map_err(|error| {
            // What fitted of it would only take room.
            drop(fs::remove_file(&reserve));
            cannot_write(&reserve, &error)
        })?;
        Ok(Self { file, path, length, reserve, reserve_bytes, reserved_rows, lines: Vec::new() })
    }

    fn write_at_end(&mut self, lines: &[u8]) -> std::io::Result<()> {
        let written = self.file.write_all(lines);
        if written.is_err() {
            // Half a line must not stand before the next one.
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
        }
        written
    }
}

impl Ledger for FileLedger {
    fn append(&mut self, group: Group<'_>) -> Result<Appended, Problem> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        let records = self.length;
        for record in group.records {
            lines.extend_from_slice(&record.line);
        }
        for turn in group.turns {
            turn.write(&mut lines);
        }
        // After the records: a kill in the middle of the write then costs no answer for the
        // sake of rows that were not sent yet.
        released_line(group.released, &mut lines);
        if let Some(spent) = group.cover {
            cover_line(spent, &mut lines);
        }
        taken_line(group.taken, &mut lines);
        let trouble = self.write(&lines)?.or_else(|| self.enlarge_reserve(group));
        self.lines = lines;
        Ok(Appended { records, trouble })
    }

    fn reader(&self) -> Result<Box<dyn LedgerReader>, Problem> {
        let file = File::open(&self.path).map_err(|error| cannot_read(&self.path, &error))?;
        Ok(Box::new(FileReader { file, path: self.path.clone() }))
    }
}

impl FileLedger {
    /// Sets more aside once records turn out larger; what it returns is why it cannot.
    fn enlarge_reserve(&mut self, group: Group<'_>) -> Option<Problem> {
        let largest = group.records.iter().map(|record| record.line.len()).max().unwrap_or_default();
        let wanted = largest.saturating_mul(self.reserved_rows).min(MOST_RESERVE);
        if wanted <= self.reserve_bytes {
            return None;
        }
        // Doubled at least, so that growing answers do not mean a write each time.
        self.reserve_bytes = wanted.next_power_of_two();
        let written = set_aside(&self.reserve, self.reserve_bytes);
        written.err().map(|error| cannot_write(&self.reserve, &error))
    }

    /// Writes whole lines; what it returns is why the reserve had to be given up.
    fn write(&mut self, lines: &[u8]) -> Result<Option<Problem>, Problem> {
        let mut trouble = None;
        if let Err(first) = self.write_at_end(lines) {
            let problem = cannot_write(&self.path, &first);
            if !matches!(first.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
                return Err(problem);
            }
            drop(fs::remove_file(&self.reserve));
            self.reserve_bytes = usize::MAX;
            self.write_at_end(lines).map_err(|error| cannot_write(&self.path, &error))?;
            trouble = Some(problem);
        }
        self.length += lines.len() as u64;
        Ok(trouble)
    }
}

/// Takes room on the disk. Zeros are written, because a file with a hole takes none.
fn set_aside(path: &Path, bytes: usize) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    std::io::copy(&mut std::io::repeat(0).take(bytes as u64), &mut file).map(drop)
}

struct FileReader {
    file: File,
    path: PathBuf,
}

impl LedgerReader for FileReader {
    fn read(&mut self, span: Span) -> Result<Vec<u8>, Problem> {
        let mut bytes = vec![0; span.length as usize];
        self.file
            .seek(SeekFrom::Start(span.offset))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|error| cannot_read(&self.path, &error))?;
        Ok(bytes)
    }
}

pub(super) fn cannot_write(path: &Path, error: &std::io::Error) -> Problem {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "the disk is full: make room and run again with `--resume`; everything answered so far is kept"
        }
        _ => "check the folder, or choose another one with `--work-dir`",
    };
    Problem::new(ProblemCode::WriteFailed, format!("cannot write `{}`", path.display()))
        .cause(error)
        .hint(hint)
}

pub(super) fn cannot_read(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::LedgerUnusable, format!("cannot read the ledger `{}`", path.display()))
        .cause(error)
        .hint("move the work folder away to resume from the output alone")
}
