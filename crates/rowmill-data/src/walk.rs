//! The files below a folder.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use rowmill_types::Problem;

use crate::dataset::cannot_open;

/// The files of a folder and its folders, in the order of their paths.
///
/// Files and folders are left out whose name begins with a dot or is not to be kept, and so is what
/// is no file, such as a pipe. A link to a folder is followed, unless that folder is read anyway.
pub(crate) fn files_below(path: &Path, is_kept: fn(&OsStr) -> bool) -> Result<Vec<PathBuf>, Problem> {
    let unreadable = |error: io::Error| cannot_open(path, &error);
    let root = fs::canonicalize(path).map_err(unreadable)?;
    let mut walk = Walk { root, is_kept, linked: HashSet::new(), waiting: Vec::new() };
    walk.enter(path).map_err(unreadable)?;
    let mut files = Vec::new();
    while let Some(found) = walk.waiting.pop() {
        match found {
            Found::Folder(path) => {
                let unreadable = |error: io::Error| cannot_open(&path, &error);
                if walk.is_new(&path).map_err(unreadable)? {
                    walk.enter(&path).map_err(unreadable)?;
                }
            }
            Found::File(path) => files.push(path),
        }
    }
    Ok(files)
}

enum Found {
    Folder(PathBuf),
    File(PathBuf),
}

struct Walk {
    /// The folder that was named, in full.
    root: PathBuf,
    is_kept: fn(&OsStr) -> bool,
    /// Folders outside of it that links led to.
    linked: HashSet<PathBuf>,
    /// What was found and not yet looked at, the next one last.
    waiting: Vec<Found>,
}

impl Walk {
    /// Adds what is in a folder.
    fn enter(&mut self, folder: &Path) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        let is_kept = self.is_kept;
        let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
        entries.retain(|entry| !is_hidden(&entry.file_name()) && is_kept(&entry.file_name()));
        entries.sort_by_cached_key(DirEntry::file_name);
        for entry in entries.iter().rev() {
            // Paths are joined to what was given, so that a relative path stays one.
            let path = folder.join(entry.file_name());
            self.waiting.extend(look(entry, path)?);
        }
        Ok(())
    }

    /// Whether a folder is still to be read: links may lead to folders that were or will be.
    /// What is inside the root is read where it is, and all else where it is found first.
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

fn look(entry: &DirEntry, path: PathBuf) -> io::Result<Option<Found>> {
    let kind = entry.file_type()?;
    let (is_folder, is_file) = if kind.is_symlink() {
        // A link that leads nowhere is a file that cannot be read: its row will say so.
        fs::metadata(&path).map_or((false, true), |target| (target.is_dir(), target.is_file()))
    } else {
        (kind.is_dir(), kind.is_file())
    };
    Ok(match (is_folder, is_file) {
        (true, _) => Some(Found::Folder(path)),
        (false, true) => Some(Found::File(path)),
        (false, false) => None,
    })
}
