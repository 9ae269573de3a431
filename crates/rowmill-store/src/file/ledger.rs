//! Appends to the ledger, with a reserve for the case that the disk is full.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::ledger::write_event_group;
use rowmill_core::ports::{
    AppendOutcome, Durability, EventGroup, Ledger, LedgerPosition, LedgerRecordId, LedgerRequirements,
    RecordReader, RunEpoch,
};
use rowmill_types::actions::RUN_AGAIN;
use rowmill_types::settings::WORK_DIR;
use rowmill_types::{Problem, ProblemCode, private_file_options, storage_limit_hint};

use super::WorkFolder;
use super::disk::Disk;
use super::header::FileHeader;

/// The assumed size of a row's record, until larger ones are seen.
const TYPICAL_RECORD: usize = 4 * 1024;
const LEAST_RESERVE: usize = 64 * 1024;
const MOST_RESERVE: usize = 32 * 1024 * 1024;

/// A ledger in a file, open for one part of a run.
#[derive(Debug)]
pub(super) struct FileLedger {
    path: PathBuf,
    epoch: RunEpoch,
    durability: Durability,
    file: Arc<File>,
    disk: Arc<dyn Disk>,
    writer: Mutex<LedgerWriter>,
}

/// The end of the file, where lines are appended.
#[derive(Debug)]
struct LedgerWriter {
    length: u64,
    reserve: PathBuf,
    reserve_bytes: usize,
    reserved_rows: usize,
    lines: Vec<u8>,
    folder: WorkFolder,
    /// The `run.json` that confirmed this part of the run as the last; `None` before the first check.
    confirmed: Option<FileStamp>,
}

/// Distinguishes a file from one that replaces it.
type FileStamp = (u64, i64, i64);

impl FileLedger {
    /// Opens the ledger that `header` names, after its first `length` bytes of whole lines; the rest is a line
    /// truncated by a crash and is removed.
    ///
    /// Reserves disk space for the records of some rows, to be given up when the disk is full, so that answers in
    /// flight at that moment can still be written.
    pub(super) fn open(
        folder: &WorkFolder,
        header: &FileHeader,
        length: u64,
        room: LedgerRequirements,
    ) -> Result<Self, Problem> {
        let path = folder.ledger(header);
        let failed = |error: std::io::Error| write_problem(&path, &error);
        let mut file =
            private_file_options().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        file.set_len(length).and_then(|()| file.seek(SeekFrom::Start(length))).map_err(failed)?;
        let reserve = folder.reserve();
        let reserve_bytes = (room.rows * TYPICAL_RECORD).clamp(LEAST_RESERVE, MOST_RESERVE);
        write_reserve(&reserve, reserve_bytes).map_err(|error| {
            // A partial reserve would only take space.
            drop(fs::remove_file(&reserve));
            write_problem(&reserve, &error)
        })?;
        let writer = LedgerWriter {
            length,
            reserve,
            reserve_bytes,
            reserved_rows: room.rows,
            lines: Vec::new(),
            folder: folder.clone(),
            confirmed: None,
        };
        Ok(Self {
            path,
            epoch: header.run.epoch,
            durability: room.durability,
            file: Arc::new(file),
            disk: folder.disk(),
            writer: Mutex::new(writer),
        })
    }

    fn writer(&self) -> MutexGuard<'_, LedgerWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a group; the kernel has it when this returns.
    fn write_group(&self, epoch: RunEpoch, group: EventGroup<'_>) -> Result<AppendOutcome, Problem> {
        let mut writer = self.writer();
        if epoch != self.epoch || !writer.is_last_part(epoch) {
            let message = format!("another process has resumed the run in `{}`", self.path.display());
            return Err(Problem::new(ProblemCode::OutputBusy, message)
                .hint("finished rows are kept; let that process finish"));
        }
        let mut lines = std::mem::take(&mut writer.lines);
        lines.clear();
        let start = writer.length;
        let records = write_event_group(&group, &mut lines);
        let written = self.write_lines(&mut writer, &lines);
        let largest = records.iter().map(Range::len).max().unwrap_or_default();
        let trouble = written?.or_else(|| writer.enlarge_reserve(largest));
        writer.lines = lines;
        let id = |range: Range<usize>| {
            LedgerRecordId::new(LedgerPosition::from_key(start + range.start as u64), range.len())
        };
        Ok(AppendOutcome { records: records.into_iter().map(id).collect(), problem: trouble })
    }

    /// Writes whole lines; returns the reason if the reserve had to be given up.
    fn write_lines(&self, writer: &mut LedgerWriter, lines: &[u8]) -> Result<Option<Problem>, Problem> {
        let mut trouble = None;
        if let Err(first) = self.write_at_end(writer.length, lines) {
            let problem = write_problem(&self.path, &first);
            if !matches!(first.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
                return Err(problem);
            }
            drop(fs::remove_file(&writer.reserve));
            writer.reserve_bytes = usize::MAX;
            self.write_at_end(writer.length, lines).map_err(|error| write_problem(&self.path, &error))?;
            trouble = Some(problem);
        }
        writer.length += lines.len() as u64;
        Ok(trouble)
    }

    fn write_at_end(&self, length: u64, lines: &[u8]) -> std::io::Result<()> {
        let mut file = &*self.file;
        let written = file.write_all(lines);
        if written.is_err() {
            // No partial line may remain before the next one.
            file.set_len(length)?;
            file.seek(SeekFrom::Start(length))?;
        }
        written
    }
}

impl Ledger for FileLedger {
    fn append<'a>(
        &'a self,
        epoch: RunEpoch,
        group: EventGroup<'a>,
    ) -> BoxFuture<'a, Result<AppendOutcome, Problem>> {
        let written = self.write_group(epoch, group);
        if self.durability == Durability::Process || written.is_err() {
            return std::future::ready(written).boxed();
        }
        let (file, path, disk) = (Arc::clone(&self.file), self.path.clone(), Arc::clone(&self.disk));
        // Not on the caller's thread, which drives calls.
        let forced = tokio::task::spawn_blocking(move || disk.force_file(&file, &path));
        async move {
            let forced = forced.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            forced.map_err(|error| write_problem(&self.path, &error))?;
            written
        }
        .boxed()
    }

    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem> {
        Ok(Box::new(LedgerFileReader::open(self.path.clone())?))
    }

    fn position(&self) -> LedgerPosition {
        LedgerPosition::from_key(self.writer().length)
    }
}

impl LedgerWriter {
    /// Whether no later part of the run was started. The header shows it; it is read only when it has been replaced. A
    /// missing header was removed by hand, and nothing can continue that run.
    fn is_last_part(&mut self, epoch: RunEpoch) -> bool {
        let Some(stamp) = self.folder.header_stamp() else { return true };
        if self.confirmed == Some(stamp) {
            return true;
        }
        let is_last = !matches!(self.folder.header(), Ok(Some(header)) if header.run.epoch > epoch);
        self.confirmed = is_last.then_some(stamp);
        is_last
    }

    /// Enlarges the reserve once records turn out larger; returns the reason if that is impossible.
    fn enlarge_reserve(&mut self, largest: usize) -> Option<Problem> {
        let wanted = largest.saturating_mul(self.reserved_rows).min(MOST_RESERVE);
        if wanted <= self.reserve_bytes {
            return None;
        }
        // At least doubled, so that growing answers do not cause a write each time.
        self.reserve_bytes = wanted.next_power_of_two();
        let written = write_reserve(&self.reserve, self.reserve_bytes);
        written.err().map(|error| write_problem(&self.reserve, &error))
    }
}

impl WorkFolder {
    fn header_stamp(&self) -> Option<FileStamp> {
        let found = fs::metadata(self.header_path()).ok()?;
        Some((found.ino(), found.mtime(), found.mtime_nsec()))
    }
}

/// Reserves disk space. Zeros are written, because a sparse file reserves none.
fn write_reserve(path: &Path, bytes: usize) -> std::io::Result<()> {
    let mut file = private_file_options().write(true).create(true).truncate(true).open(path)?;
    std::io::copy(&mut std::io::repeat(0).take(bytes as u64), &mut file).map(drop)
}

/// Reads back lines of a ledger.
pub(super) struct LedgerFileReader {
    file: File,
    path: PathBuf,
}

impl LedgerFileReader {
    pub(super) fn open(path: PathBuf) -> Result<Self, Problem> {
        let file = File::open(&path).map_err(|error| read_problem(&path, &error))?;
        Ok(Self { file, path })
    }
}

impl RecordReader for LedgerFileReader {
    fn read(&mut self, id: LedgerRecordId) -> Result<Vec<u8>, Problem> {
        let mut bytes = vec![0; id.event_length()];
        self.file
            .seek(SeekFrom::Start(id.position().key()))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|error| read_problem(&self.path, &error))?;
        Ok(bytes)
    }
}

pub(super) fn write_problem(path: &Path, error: &std::io::Error) -> Problem {
    let hint = match (storage_limit_hint(error), error.kind()) {
        // The reserve is of no use here, so answers that were on their way have found no room.
        (Some(remedy), ErrorKind::FileTooLarge) => {
            format!("{remedy} and {RUN_AGAIN}; finished rows are kept")
        }
        (Some(remedy), _) => format!("{remedy} and {RUN_AGAIN}; finished rows are kept"),
        (None, _) => format!("check the folder, or choose another one with {WORK_DIR}"),
    };
    Problem::new(ProblemCode::WriteFailed, format!("cannot write `{}`", path.display()))
        .cause(error)
        .hint(hint)
}

pub(super) fn read_problem(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::LedgerUnusable, format!("cannot read the ledger `{}`", path.display()))
        .cause(error)
        .hint("move the work folder away to resume from the output alone")
}
