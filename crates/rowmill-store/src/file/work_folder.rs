//! The folder for the data of a run while it is not finished.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::fingerprint::text_digest;
use rowmill_types::settings::WORK_DIR;
use rowmill_types::{Problem, ProblemCode, make_private_folder, private_file_options};

use super::disk::{Disk, SystemDisk};
use super::header::{FORMAT, FileHeader};
use super::ledger::write_problem;
use super::lost_header::{BEGINNING, is_cut};
use crate::answers::SqliteAnswerStore;

const HEADER: &str = "run.json";
const NEW_HEADER: &str = "run.json.new";
const RESERVE: &str = "reserve";
const ANSWERS: &str = "answers";
const ENVELOPES: &str = "envelopes.jsonl";

/// A work folder that no other run can use while this is alive.
#[derive(Debug)]
pub struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing alone is not enough: a child process that is being started briefly holds a copy of the open file, and
        // with it the lock.
        self.0.unlock().ok();
    }
}

/// The work folder of a run. Only files that rowmill put there are ever removed.
#[derive(Debug, Clone)]
pub struct WorkFolder {
    path: PathBuf,
    disk: Arc<dyn Disk>,
}

/// The start of a file with this name if a run wrote it; empty if no start is known.
fn beginning(file: &Path) -> &'static [u8] {
    match file.file_name().and_then(|name| name.to_str()) {
        Some(ENVELOPES) => b"{\"id\":",
        Some(RESERVE) => b"\0",
        // A run was killed before its header was put in its place.
        Some(NEW_HEADER) => BEGINNING,
        Some(name) if name.starts_with("ledger-") => b"{\"event\":",
        Some(name) if is_recorded(name) => b"{\"number\":",
        _ => b"",
    }
}

/// Whether the name is that of a file with recorded rows of a query.
pub(super) fn is_recorded(name: &str) -> bool {
    name.starts_with("rows-") && name.ends_with(".jsonl")
}

/// Whether the name is that of a copy of standard input.
fn is_spool(file: &Path) -> bool {
    let (begin, end) = WorkFolder::SPOOL;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end))
}

impl WorkFolder {
    /// The prefix and the suffix of the names of copies of standard input. The part between is random, so only runs
    /// create such names.
    pub const SPOOL: (&str, &str) = ("rowmill-input-", ".spool");

    /// The folder at `path`, created if it is missing.
    ///
    /// # Errors
    ///
    /// It cannot be created.
    pub fn open(path: &Path) -> Result<Self, Problem> {
        make_private_folder(path).map_err(|error| {
            Problem::new(
                ProblemCode::WriteFailed,
                format!("cannot create the work folder `{}`", path.display()),
            )
            .cause(error)
            .hint(format!("choose another one with {WORK_DIR}"))
        })?;
        Ok(Self::look_at(path))
    }

    /// The folder at `path`, for reading only; it need not exist.
    #[must_use]
    pub fn look_at(path: &Path) -> Self {
        Self { path: path.to_owned(), disk: Arc::new(SystemDisk) }
    }

    #[cfg(test)]
    pub(super) fn on_disk(self, disk: Arc<dyn Disk>) -> Self {
        Self { disk, ..self }
    }

    pub(super) fn disk(&self) -> Arc<dyn Disk> {
        Arc::clone(&self.disk)
    }

    /// Locks the folder against other runs.
    ///
    /// # Errors
    ///
    /// Another run holds the lock.
    pub fn lock(&self) -> Result<FolderLock, Problem> {
        let file = File::open(&self.path).map_err(|error| write_problem(&self.path, &error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let message = format!("another run keeps its ledger in `{}`", self.path.display());
                Err(Problem::new(ProblemCode::OutputBusy, message)
                    .hint(format!("wait for it, or choose another folder with {WORK_DIR}")))
            }
            // If folders cannot be locked, the lock of the output must suffice.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(FolderLock(file)),
        }
    }

    /// Whether a run is using the folder now, as far as can be seen: a shared lock is requested and released at once.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        File::open(&self.path)
            .is_ok_and(|folder| matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// The default location: beside the output.
    #[must_use]
    pub fn default_path(output: &Path) -> PathBuf {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        output.with_file_name(format!(".{name}.rowmill"))
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the ledger that `header` names.
    pub(super) fn ledger(&self, header: &FileHeader) -> PathBuf {
        self.ledger_path(header.generation)
    }

    pub(super) fn ledger_path(&self, generation: u32) -> PathBuf {
        self.path.join(format!("ledger-{generation}.jsonl"))
    }

    pub(super) fn header_path(&self) -> PathBuf {
        self.path.join(HEADER)
    }

    /// Whether an unfinished run has its ledger in the folder at `path`, which need not exist. An unreadable header may
    /// belong to such a run.
    #[must_use]
    pub fn has_unfinished_run(path: &Path) -> bool {
        let folder = Self::look_at(path);
        !matches!(folder.header(), Ok(header) if header.as_ref().is_none_or(|header| header.run.finished))
    }

    /// The path of the envelopes of a run whose output is a table, in the work folder at `path`.
    #[must_use]
    pub fn envelopes_path_in(path: &Path) -> PathBuf {
        path.join(ENVELOPES)
    }

    /// Removes the envelopes of a run whose output was a table.
    pub fn remove_envelopes(&self) {
        // A missing file needs no removal.
        drop(fs::remove_file(Self::envelopes_path_in(&self.path)));
    }

    /// Whether a file or folder with this name in a work folder may be written or removed.
    #[must_use]
    pub fn is_own_name(name: &str) -> bool {
        let is_ledger = name.starts_with("ledger-") && name.ends_with(".jsonl");
        is_ledger
            || is_recorded(name)
            || is_spool(Path::new(name))
            || [HEADER, NEW_HEADER, RESERVE, ANSWERS, ENVELOPES].contains(&name)
    }

    /// A file in the folder at `path` that has the name of one of ours but is not ours: working in such a folder would
    /// destroy it.
    #[must_use]
    pub fn foreign_file(path: &Path) -> Option<PathBuf> {
        let header = path.join(HEADER);
        let is_ours = |file: &PathBuf, begins: &[u8]| match File::open(file) {
            Ok(open) => {
                let mut start = Vec::new();
                let read = open.take(begins.len() as u64).read_to_end(&mut start);
                // A file truncated by a crash is ours as well.
                read.is_ok_and(|_| begins.starts_with(&start))
                    && (!begins.is_empty() || file.metadata().is_ok_and(|found| found.len() == 0))
            }
            Err(_) => true,
        };
        match fs::read(&header) {
            Ok(bytes) if !is_cut(&bytes) => {
                let found = serde_json::from_slice::<serde_json::Value>(&bytes).unwrap_or_default();
                let is_header = found.get("format").is_some() && found.get("run").is_some();
                (!is_header).then_some(header)
            }
            // Without a header nothing says that the others are ours, so each has to show it.
            _ => {
                let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
                let answers = SqliteAnswerStore::foreign_files_in(&path.join(ANSWERS));
                entries
                    .filter(|file| {
                        file.file_name().and_then(|name| name.to_str()).is_some_and(Self::is_own_name)
                    })
                    .chain(answers)
                    // A run that was killed while it read standard input leaves its copy.
                    .filter(|file| !is_spool(file) && *file != header)
                    .find(|file| file.is_file() && !is_ours(file, beginning(file)))
            }
        }
    }

    /// The paths of files in the folder at `path` that are overwritten in place, existing or not.
    #[must_use]
    pub fn overwritten_files_in(path: &Path) -> Vec<PathBuf> {
        let ledger = Self::look_at(path).part().ok().flatten().map_or(1, |(generation, _)| generation);
        let names = [HEADER, RESERVE, ENVELOPES].map(str::to_owned);
        names.into_iter().chain([format!("ledger-{ledger}.jsonl")]).map(|name| path.join(name)).collect()
    }

    /// The prefix of the name of a file with recorded rows of a query; `query` identifies everything that the rows
    /// depend on.
    #[must_use]
    pub fn recorded_rows_prefix(query: &str) -> String {
        format!("rows-{}", text_digest(query))
    }

    /// Renames the file at `path`, which is in the folder, to `name`, replacing an existing file.
    ///
    /// # Errors
    ///
    /// The folder may not be changed.
    pub fn install_recorded_rows(&self, path: &Path, name: &str) -> Result<(), Problem> {
        let to = self.path.join(name);
        fs::rename(path, &to).map_err(|error| write_problem(&to, &error))
    }

    /// Removes the recorded rows of queries, except those in the file called `name`.
    pub fn remove_recorded_rows(&self, name: Option<&str>) {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in entries {
            let found = entry.file_name();
            let found = found.to_str().filter(|found| is_recorded(found) && Some(*found) != name);
            if found.is_some() {
                // A leftover does no harm.
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// The location of answers that rows of this run share.
    #[must_use]
    pub fn shared_answers_path(&self) -> PathBuf {
        self.path.join(ANSWERS)
    }

    /// Removes the answers that rows of this run share.
    pub fn remove_shared_answers(&self) {
        // A missing file needs no removal, and a folder with other files in it belongs to the user.
        for file in SqliteAnswerStore::files_in(&self.shared_answers_path()) {
            drop(fs::remove_file(file));
        }
        drop(fs::remove_dir(self.shared_answers_path()));
    }

    /// The header of the run whose ledger is here, if there is one.
    ///
    /// # Errors
    ///
    /// The header cannot be read, or its format is unknown to this version.
    pub(super) fn header(&self) -> Result<Option<FileHeader>, Problem> {
        let path = self.header_path();
        let unusable = |what: &str| {
            Problem::new(ProblemCode::LedgerUnusable, format!("`{}` {what}", path.display()))
                .hint("move the work folder away to resume from the output alone")
        };
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            // If a component of the path is a file, there is no folder, and so no run.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(unusable("cannot be read").cause(error)),
        };
        if is_cut(&bytes) {
            return if self.has_lost_header() { Err(self.lost_header_problem()) } else { Ok(None) };
        }
        let header: FileHeader = serde_json::from_slice(&bytes)
            .map_err(|error| unusable("is not the header of a run").cause(error))?;
        if header.format != FORMAT {
            return Err(unusable(&format!("has format {}, but this version reads {FORMAT}", header.format)));
        }
        Ok(Some(header))
    }

    /// Replaces the header atomically.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(super) fn write_header(&self, header: &FileHeader) -> Result<(), Problem> {
        self.prepare_header(header)?;
        self.install_header()
    }

    /// Writes a header that has no effect before [`WorkFolder::install_header`].
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(super) fn prepare_header(&self, header: &FileHeader) -> Result<(), Problem> {
        let path = self.path.join(NEW_HEADER);
        // Plain data is always valid JSON, so the fallback is never used.
        let bytes = serde_json::to_vec_pretty(header).unwrap_or_default();
        // Forced to disk before it takes effect: after a power failure an empty header would make answers unreachable.
        let opened = private_file_options().write(true).create(true).truncate(true).open(&path);
        let written = opened.and_then(|mut file| {
            file.write_all(&bytes)?;
            self.disk.force_file(&file, &path)
        });
        written.map_err(|error| write_problem(&path, &error))
    }

    /// Replaces the existing header by the prepared one.
    ///
    /// # Errors
    ///
    /// The folder may not be changed.
    pub(super) fn install_header(&self) -> Result<(), Problem> {
        let path = self.path.join(HEADER);
        fs::rename(self.path.join(NEW_HEADER), &path).map_err(|error| write_problem(&path, &error))?;
        // Some file systems cannot force a folder to disk; the name is then as safe as possible.
        self.disk.force_folder(&self.path).ok();
        Ok(())
    }

    /// Removes the files of a prepared run whose header did not take effect.
    pub(super) fn discard_prepared(&self, header: &FileHeader) {
        for file in [self.path.join(NEW_HEADER), self.ledger(header), self.reserve()] {
            // A missing file needs no removal, and a leftover does no harm.
            drop(fs::remove_file(file));
        }
    }

    pub(super) fn reserve(&self) -> PathBuf {
        self.path.join(RESERVE)
    }

    /// Removes everything except the run's header and ledger.
    pub fn remove_leftovers(&self) {
        // A run that was killed while it read standard input left its copy.
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let spools = entries.map(|entry| entry.path()).filter(|path| is_spool(path));
        for file in spools.chain([self.reserve()]) {
            // A missing file needs no removal, and a leftover does no harm.
            drop(fs::remove_file(file));
        }
    }

    /// Removes the ledger of this generation and older ones that a crash left. The header decides which one is valid,
    /// so a leftover does no harm.
    pub(super) fn remove_ledgers(&self, newest: u32) {
        for generation in 1..=newest {
            drop(fs::remove_file(self.ledger_path(generation)));
        }
    }

    /// The header of a prepared run that is not in effect yet.
    pub(super) fn prepared_header(&self) -> Option<FileHeader> {
        serde_json::from_slice(&fs::read(self.path.join(NEW_HEADER)).ok()?).ok()
    }

    /// Removes the header and the ledger of the existing run. Everything else belongs to the run that is about to
    /// start.
    ///
    /// # Errors
    ///
    /// The header cannot be removed.
    pub(super) fn remove_run(&self) -> Result<(), Problem> {
        let part = self.part().ok().flatten();
        let path = self.path.join(HEADER);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(write_problem(&path, &error)),
            _ => {}
        }
        if let Some((generation, _)) = part {
            self.remove_ledgers(generation);
        }
        Ok(())
    }

    /// Removes what rowmill put there, and the folder if nothing else is in it.
    ///
    /// # Errors
    ///
    /// The header cannot be removed.
    pub(super) fn clear(&self) -> Result<(), Problem> {
        self.remove_leftovers();
        self.remove_run()?;
        self.remove_recorded_rows(None);
        self.remove_shared_answers();
        self.remove_envelopes();
        // A folder with other files in it belongs to the user and is kept.
        drop(fs::remove_dir(&self.path));
        Ok(())
    }
}
