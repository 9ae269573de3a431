//! Creates folders for the outputs of a run before it starts, and removes them if it does not.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rowmill_data::output::link_target;
use rowmill_types::{DiagnosticText, Problem, ProblemCode};

use super::writes::{DEFAULT_WORK_FOLDER, WrittenKind, WrittenPath};

use crate::run_storage::RunStorage;

const OPEN_TO_ALL: u32 = 0o777;
const PRIVATE: u32 = 0o700;

/// Folders that were created for outputs. Unless they are kept, they are removed when this is dropped,
/// if they are empty.
#[derive(Debug, Default)]
pub(crate) struct CreatedFolders {
    /// Every folder that was created, parents first.
    made: Vec<PathBuf>,
    /// Notices about them.
    notices: Vec<DiagnosticText>,
    /// Files that did not exist before.
    new_files: Vec<PathBuf>,
    /// The work folder, with the id of the run that is about to start in it.
    work_folder: Option<(PathBuf, String)>,
    /// Whether the work folder existed before.
    work_folder_existed: bool,
}

impl CreatedFolders {
    /// Creates the missing folders of outputs.
    ///
    /// # Errors
    ///
    /// A folder cannot be created; those that were created are removed again.
    pub(crate) fn create(writes: &[WrittenPath]) -> Result<Self, Problem> {
        let mut folders = Self::default();
        for write in writes {
            let path = link_target(&write.path);
            if !write.path.exists() && !matches!(write.kind, WrittenKind::Folder(_)) {
                folders.new_files.push(path.clone());
            }
            let (folder, mode) = match &write.kind {
                WrittenKind::File => (path.parent().unwrap_or(Path::new("")), OPEN_TO_ALL),
                WrittenKind::Folder(_) if write.named_by == DEFAULT_WORK_FOLDER => continue,
                WrittenKind::Folder(names) if names.private => (path.as_path(), PRIVATE),
                WrittenKind::Folder(_) => (path.as_path(), OPEN_TO_ALL),
                WrittenKind::FileInFolder => continue,
            };
            if folder.as_os_str().is_empty() || folder.exists() {
                continue;
            }
            folders.make_one(folder, mode).map_err(|error| {
                let message = format!(
                    "cannot create the folder `{}` of {}",
                    folder.display(),
                    write.named_by.with_mention_markers()
                );
                Problem::new(ProblemCode::OutputPath, message).cause(error).hint("choose another path")
            })?;
            let user = write.named_by.with_mention_markers();
            folders.notices.push(format!("created the folder `{}` for {user}", folder.display()).into());
        }
        Ok(folders)
    }

    /// The same folders with the work folder of a run, which is removed too if the run does not start.
    #[must_use]
    pub(crate) fn for_run(mut self, run: &str, work_folder: &Path) -> Self {
        self.work_folder_existed = work_folder.exists() && !self.made.iter().any(|made| made == work_folder);
        self.work_folder = Some((work_folder.to_owned(), run.to_owned()));
        self
    }

    fn make_one(&mut self, folder: &Path, mode: u32) -> io::Result<()> {
        let missing = folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        for path in missing.into_iter().rev() {
            match DirBuilder::new().mode(mode).create(&path) {
                // Creating the path `a/../b` creates `a`, and then `b` may exist.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    self.made.push(path);
                }
            }
        }
        Ok(())
    }

    /// Removes files that were created and are empty. Only the process that holds the output may call
    /// this.
    pub(crate) fn remove_new_files(&self) {
        for file in &self.new_files {
            if file.metadata().is_ok_and(|found| found.is_file() && found.len() == 0) {
                // A file that cannot be removed is empty and does no harm.
                drop(fs::remove_file(file));
            }
        }
    }

    /// Keeps everything; returns notices about it for the user.
    pub(crate) fn commit(mut self) -> Vec<DiagnosticText> {
        self.made.clear();
        self.work_folder = None;
        std::mem::take(&mut self.notices)
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        if let Some((path, run)) = &self.work_folder {
            let RunStorage { store, folder, .. } = RunStorage::look_at(path);
            // A folder with another run in it belongs to that run, even if it was started just now.
            if store.header().is_ok_and(|header| header.is_some_and(|header| header.run == *run)) {
                drop(store.remove());
            } else if !self.work_folder_existed {
                // Removes the copy of an input that was being made when the run was stopped.
                folder.remove_leftovers();
                drop(fs::remove_dir(path));
            }
        }
        for folder in self.made.iter().rev() {
            // A folder with new contents stays.
            drop(fs::remove_dir(folder));
        }
    }
}
