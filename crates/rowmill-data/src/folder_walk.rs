//! Lists the files below a folder.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use rowmill_types::Problem;

use crate::dataset::open_problem;

/// The files of a folder and its subfolders, ordered by path.
///
/// Left out are files and folders whose name begins with a dot or is rejected by `is_kept`, and anything that
/// is not a file, such as a pipe. A link to a folder is followed, unless that folder is read anyway.
pub(crate) fn files_below(path: &Path, is_kept: fn(&OsStr) -> bool) -> Result<Vec<PathBuf>, Problem> {
    let unreadable = |error: io::Error| open_problem(path, &error);
    let root = fs::canonicalize(path).map_err(unreadable)?;
    let mut folder_walk = FolderWalk { root, is_kept, linked: HashSet::new(), waiting: Vec::new() };
    folder_walk.enter(path).map_err(unreadable)?;
    let mut files = Vec::new();
    while let Some(found) = folder_walk.waiting.pop() {
        match found {
            FolderEntry::Folder(path) => {
                let unreadable = |error: io::Error| open_problem(&path, &error);
                if folder_walk.is_new(&path).map_err(unreadable)? {
                    folder_walk.enter(&path).map_err(unreadable)?;
                }
            }
            FolderEntry::File(path) => files.push(path),
        }
    }
    Ok(files)
}

enum FolderEntry {
    Folder(PathBuf),
    File(PathBuf),
}

struct FolderWalk {
    /// The absolute path of the named folder.
    root: PathBuf,
    is_kept: fn(&OsStr) -> bool,
    /// Folders outside it that links lead to.
    linked: HashSet<PathBuf>,
    /// Entries that were found but not visited yet, the next one last.
    waiting: Vec<FolderEntry>,
}

impl FolderWalk {
    /// Adds the entries of a folder.
    fn enter(&mut self, folder: &Path) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        let is_kept = self.is_kept;
        let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
        entries.retain(|entry| !is_hidden(&entry.file_name()) && is_kept(&entry.file_name()));
        entries.sort_by_cached_key(DirEntry::file_name);
        for entry in entries.iter().rev() {
            // Paths are joined to the given path, so that a relative path stays relative.
            let path = folder.join(entry.file_name());
            self.waiting.extend(head_of_dataset(entry, path)?);
        }
        Ok(())
    }

    /// Whether a folder is still to be read: links may lead to folders that already are, or will be.
    /// Folders inside the root are read there, and all others where they are found first.
    fn is_new(&mut self, path: &Path) -> io::Result<bool> {
        let is_link = fs::symlink_metadata(path)?.is_symlink();
        if !is_link && self.linked.is_empty() {
            return Ok(true);
        }
        let full = fs::canonicalize(path)?;
        if full.starts_with(&self.root) {
            return Ok(!is_link && full != self.root);
        }
        Ok(self.linked.insert(full))
    }
}

fn head_of_dataset(entry: &DirEntry, path: PathBuf) -> io::Result<Option<FolderEntry>> {
    let kind = entry.file_type()?;
    let (is_folder, is_file) = if kind.is_symlink() {
        // A dangling link is a file that cannot be read: its row will report that.
        fs::metadata(&path).map_or((false, true), |target| (target.is_dir(), target.is_file()))
    } else {
        (kind.is_dir(), kind.is_file())
    };
    Ok(match (is_folder, is_file) {
        (true, _) => Some(FolderEntry::Folder(path)),
        (false, true) => Some(FolderEntry::File(path)),
        (false, false) => None,
    })
}
