//! The files attached to rows, in bounded memory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::reads::{MOST_NAMED, ReadPath};

/// The maximum number of folders that are remembered.
const MOST_FOLDERS: usize = 10_000;

/// The attached files that were seen: by their names, or if there are many, by their folders. Clones
/// share the same files.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttachedFiles {
    seen: Arc<Mutex<SeenPaths>>,
}

#[derive(Debug, Default)]
struct SeenPaths {
    files: BTreeSet<PathBuf>,
    folders: BTreeSet<PathBuf>,
}

impl AttachedFiles {
    /// Remembers files.
    pub(crate) fn add(&self, reads: &[ReadPath]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for ReadPath { path, .. } in reads {
            seen.add(path);
        }
    }

    /// Full paths of the files, or of their folders.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.files.iter().chain(&seen.folders).cloned().collect()
    }
}

impl SeenPaths {
    fn add(&mut self, path: &Path) {
        let is_known =
            self.files.contains(path) || path.parent().is_some_and(|folder| self.folders.contains(folder));
        if is_known {
            return;
        }
        self.files.insert(path.to_owned());
        if self.files.len() > MOST_NAMED {
            let files = std::mem::take(&mut self.files);
            let folders = files.iter().filter_map(|file| file.parent()).map(Path::to_owned);
            self.folders.extend(folders.take(MOST_FOLDERS.saturating_sub(self.folders.len())));
        }
    }
}

#[cfg(test)]
mod tests {
    use rowmill_types::settings::ATTACH;

    use super::*;

    #[test]
    fn of_many_files_their_folders_are_remembered_and_few_of_those() {
        let attached = AttachedFiles::default();
        let add = |path: String| attached.add(&[ReadPath::new(ATTACH, path)]);
        (0..MOST_NAMED).for_each(|file| add(format!("/few/{file}.txt")));
        assert_eq!(attached.paths().len(), MOST_NAMED);
        (0..10 * MOST_NAMED).for_each(|file| add(format!("/many/{file}.txt")));
        assert!(attached.paths().contains(&"/few".into()) && attached.paths().contains(&"/many".into()));
        (0..2 * MOST_FOLDERS).for_each(|folder| add(format!("/{folder}/a.txt")));
        assert!(attached.paths().len() <= MOST_FOLDERS + MOST_NAMED);
    }
}
