//! Which files a folder holds.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use rowmill_types::{Problem, ProblemCode};

use crate::dataset::cannot_open;
use crate::format::format_of_name;
use crate::{FileList, Format, InputFile};

/// The files of a folder and its folders, in the order of their paths: those with an ending of
/// `format`, or all.
///
/// Files and folders whose name begins with a dot are left out, and so is what is no file, such
/// as a pipe. A link to a folder is followed, unless that folder is read anyway.
pub(crate) fn files_of_folder(path: &Path, format: Option<Format>) -> Result<FileList, Problem> {
    let unreadable = |error: io::Error| cannot_open(path, &error);
    let root = fs::canonicalize(path).map_err(unreadable)?;
    let mut walk = Walk { root, linked: HashSet::new(), waiting: Vec::new() };
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
            Found::File(path) => {
                let name = path.display().to_string();
                if matches!(format, None | Some(Format::Documents)) || format_of_name(&name) == format {
                    files.push(InputFile { path, name });
                }
            }
        }
    }
    let name = path.display().to_string();
    if files.is_empty() {
        let kind =
            format.filter(|format| *format != Format::Documents).map(|format| format!("{} ", format.name()));
        let message = format!("no {}file in folder `{name}`", kind.unwrap_or_default());
        return Err(Problem::new(ProblemCode::InputNotFound, message)
            .hint("check the path given to `--input`; files whose name begins with a dot are left out"));
    }
    Ok(FileList { name, files, identity: None })
}

enum Found {
    Folder(PathBuf),
    File(PathBuf),
}

struct Walk {
    /// The folder that was named, in full.
    root: PathBuf,
    /// Folders outside of it that links led to.
    linked: HashSet<PathBuf>,
    /// What was found and not yet looked at, the next one last.
    waiting: Vec<Found>,
}

impl Walk {
    /// Adds what is in a folder.
    fn enter(&mut self, folder: &Path) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.retain(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
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
