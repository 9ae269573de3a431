//! Claims an output for the duration of a run.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_types::actions::RUN_AGAIN;
use rowmill_types::settings::{OUTPUT, OVERWRITE, RESUME};
use rowmill_types::{Problem, ProblemCode, Setting, storage_limit_hint};

use super::expected_content::ExpectedContent;
use super::{LineSink, OutputScan, SinkContent, link_target};

/// The longest name of an output, in bytes. File systems allow 255, and the temporary file beside an output
/// (`.NAME.XXXXXX.rowmill-new`) adds twenty.
const LONGEST_NAME: usize = 235;

/// What may be done with an existing output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputClaimMode {
    /// Nothing: it must not exist.
    New,
    /// Continue it.
    Resume,
    /// Replace it.
    Overwrite,
}

/// An output file to which no other run can write while this is alive.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    path: PathBuf,
    /// The resolved path at the time of the claim.
    target: PathBuf,
    /// Whether the file did not exist before.
    is_new: bool,
    /// The expected content.
    written: Arc<ExpectedContent>,
}

impl OutputFile {
    /// Checks that `path` could be claimed, without touching it, so that a mistake is reported before
    /// anything else is done. Messages name `setting`.
    ///
    /// # Errors
    ///
    /// It exists but must not, its folder cannot be created, or it is not a file.
    pub fn check_claimable(path: &Path, setting: Setting, claim: OutputClaimMode) -> Result<(), Problem> {
        let shown = path.display();
        if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            let message = format!("`{shown}`, given to {setting}, is a folder");
            return Err(Problem::new(ProblemCode::OutputPath, message).hint("choose a file in it"));
        }
        if setting == OUTPUT && path.exists() && !path.is_file() {
            let message = format!("`{shown}`, given to {setting}, is not a regular file");
            return Err(Problem::new(ProblemCode::OutputPath, message).hint(format!(
                "use {output} and redirect standard output there",
                output = OUTPUT.with_value("-")
            )));
        }
        if names_open_file(path) && !path.exists() {
            let folder = path.parent().unwrap_or(path).display();
            let message = format!(
                "`{shown}`, given to {setting}, does not exist, and files cannot be created in `{folder}`"
            );
            return Err(Problem::new(ProblemCode::OutputPath, message).hint("choose another path"));
        }
        let target = link_target(path);
        if target.is_symlink() {
            let message = format!("`{shown}`, given to {setting}, is a symbolic link loop");
            return Err(Problem::new(ProblemCode::OutputPath, message).hint("choose another path"));
        }
        check_name_length(&target, setting)?;
        check_folder_of(&target, setting)?;
        if claim == OutputClaimMode::New && path.exists() {
            let message = format!("output file `{shown}` already exists");
            return Err(Problem::new(ProblemCode::OutputExists, message)
                .hint(format!("use {RESUME} to continue the run, or {OVERWRITE} to replace it")));
        }
        Ok(())
    }

    /// Opens the output and locks it.
    ///
    /// # Errors
    ///
    /// As for [`OutputFile::check_claimable`]; or it cannot be opened, or another run has locked it.
    pub fn claim(path: &Path, claim: OutputClaimMode) -> Result<Self, Problem> {
        Self::check_claimable(path, OUTPUT, claim)?;
        let (is_new, target) = (!path.exists(), link_target(path));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(|error| write_problem(path, &error))?;
        lock_file(&file, path)?;
        // A leftover of a crash that was to replace this file; it was not complete.
        drop(fs::remove_file(replacement_path(&target)));
        Ok(Self { file, path: path.to_owned(), target, is_new, written: Arc::default() })
    }

    /// A sink that appends to the file.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub fn sink(&self) -> Result<LineSink, Problem> {
        let sink = LineSink::append(&self.path, SinkContent::Envelopes, u64::MAX)?;
        self.written.begin(&self.path).map_err(|error| write_problem(&self.path, &error))?;
        Ok(sink.reporting_to(Arc::clone(&self.written)))
    }

    /// Whether the file holds exactly what it held when [`OutputFile::sink`] was opened, plus what was
    /// written since.
    #[must_use]
    pub fn has_expected_content(&self) -> bool {
        self.written.matches_file(&self.path)
    }

    /// Whether nothing was written since [`OutputFile::sink`] was opened.
    #[must_use]
    pub fn is_unwritten(&self) -> bool {
        self.written.is_unchanged()
    }

    /// The path of the file that may be replaced. A link that replaced the file during the run leads to a
    /// foreign file, unless its content is what the run wrote.
    pub(super) fn resolved_path(&self) -> PathBuf {
        if self.has_expected_content() { link_target(&self.path) } else { self.target.clone() }
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Truncates the file to `length`, which removes a torn line, or everything.
    ///
    /// # Errors
    ///
    /// It cannot be changed.
    pub fn truncate(&self, length: u64) -> Result<(), Problem> {
        self.file.set_len(length).map_err(|error| write_problem(&self.path, &error))
    }

    /// Abandons the claim before anything was written: a newly created file is removed.
    pub fn abandon_claim(self) {
        if self.is_new && self.file.metadata().is_ok_and(|found| found.len() == 0) {
            // If it cannot be removed, it is empty and the next run reports it.
            drop(fs::remove_file(&self.target));
        }
    }

    /// Removes a torn last line, or adds a missing newline.
    ///
    /// # Errors
    ///
    /// It cannot be changed.
    pub fn repair_end(&self, found: &OutputScan) -> Result<(), Problem> {
        self.truncate(found.length)?;
        if found.lacks_newline {
            let mut end = OpenOptions::new()
                .append(true)
                .open(&self.path)
                .map_err(|error| write_problem(&self.path, &error))?;
            end.write_all(b"\n").map_err(|error| write_problem(&self.path, &error))?;
        }
        Ok(())
    }

    /// Flushes everything to the disk.
    ///
    /// # Errors
    ///
    /// The disk reports a failure.
    pub fn sync(&self) -> Result<(), Problem> {
        let file = File::open(&self.path).map_err(|error| write_problem(&self.path, &error))?;
        file.sync_all().map_err(|error| write_problem(&self.path, &error))
    }
}

/// Locks a file against other runs for as long as it is open.
pub(super) fn lock_file(file: &File, path: &Path) -> Result<(), Problem> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let message = format!("another run is writing to `{}`", path.display());
            Err(Problem::new(ProblemCode::OutputBusy, message).hint("wait for it, or choose another output"))
        }
        Err(TryLockError::Error(error)) => Err(write_problem(path, &error)),
    }
}

/// Checks that files can be created in a folder, which must exist, and leaves none there.
///
/// # Errors
///
/// The folder is not writable, or the disk is full.
pub fn check_folder_writable(folder: &Path) -> Result<(), Problem> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match tempfile::Builder::new().prefix(".rowmill-").tempfile_in(folder) {
        Ok(_) => Ok(()),
        Err(error) => Err(write_problem(folder, &error)),
    }
}

/// Checks that the name of an output or a work folder leaves room for the longer names of the files beside
/// it: otherwise the error would come only after rows were paid for.
///
/// # Errors
///
/// The name is too long.
pub fn check_name_length(path: &Path, setting: Setting) -> Result<(), Problem> {
    let bytes = path.file_name().map_or(0, |name| name.len());
    if bytes <= LONGEST_NAME {
        return Ok(());
    }
    let message = format!(
        "the name `{}`, given to {setting}, is {bytes} bytes long",
        path.file_name().unwrap_or_default().display()
    );
    Err(Problem::new(ProblemCode::OutputPath, message).hint(format!(
        "choose one of at most {LONGEST_NAME} bytes: files created next to it have longer names"
    )))
}

/// Checks that the folder of an output exists or could be created.
pub(crate) fn check_folder_of(path: &Path, setting: Setting) -> Result<(), Problem> {
    let nearest = path.ancestors().skip(1).find(|folder| folder.exists());
    match nearest.filter(|found| !found.is_dir()) {
        None => Ok(()),
        Some(file) => {
            let (shown, file) = (path.display(), file.display());
            let message =
                format!("`{shown}`, given to {setting}, leads through `{file}`, which is not a folder");
            Err(Problem::new(ProblemCode::OutputPath, message).hint("choose another path"))
        }
    }
}

/// Whether a path names an open file of this process, such as `/dev/stdout`. Whatever is behind it, perhaps a
/// file, its existing content must not be truncated or replaced.
#[must_use]
pub fn names_open_file(path: &Path) -> bool {
    ["/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name))
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc")
}

/// The problem that a file cannot be written.
pub(crate) fn write_problem(path: &Path, error: &std::io::Error) -> Problem {
    use std::io::ErrorKind;
    let hint = match (storage_limit_hint(error), error.kind()) {
        (Some(remedy), _) => format!("{remedy} and {RUN_AGAIN}; finished rows are kept"),
        (None, ErrorKind::PermissionDenied) => "check the permissions of the file and its folder".to_owned(),
        (None, ErrorKind::BrokenPipe) => "the program that reads the output has ended".to_owned(),
        (None, _) => format!("check the path, then {RUN_AGAIN}; finished rows are kept"),
    };
    Problem::new(ProblemCode::WriteFailed, format!("cannot write `{}`", path.display()))
        .cause(error)
        .hint(hint)
}

fn replacement_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.rowmill-new"))
}

/// A new file beside `path` that will replace it, with permissions that are no wider.
pub(super) fn create_replacement(path: &Path) -> Result<(PathBuf, File), Problem> {
    let beside = replacement_path(path);
    let file = File::create(&beside).map_err(|error| write_problem(&beside, &error))?;
    if let Ok(found) = path.metadata() {
        file.set_permissions(found.permissions()).map_err(|error| write_problem(&beside, &error))?;
    }
    Ok((beside, file))
}

/// Moves a replacement into place, after flushing it to disk.
pub(super) fn install_replacement(beside: &Path, file: File, path: &Path) -> Result<(), Problem> {
    file.sync_all().and_then(|()| fs::rename(beside, path)).map_err(|error| write_problem(path, &error))
}
