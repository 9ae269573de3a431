//! Paid answers, stored in an SQLite file so that they are never paid for twice.

mod report;
#[cfg_attr(not(feature = "cache"), path = "without_sqlite.rs")]
mod sqlite;

pub use report::{AnswerStoreStats, PruneReport, PruneSpec};
pub use sqlite::SqliteAnswerStore;

use std::path::{Path, PathBuf};

/// The name of the file in a store's folder.
const FILE: &str = "answers.sqlite";

impl SqliteAnswerStore {
    /// The path of the store's file in `folder`, whether it exists or not.
    #[must_use]
    pub fn file_in(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// The paths of the store's file in `folder` and of SQLite's files beside it, existing or not.
    #[must_use]
    pub fn files_in(folder: &Path) -> [PathBuf; 4] {
        ["", "-wal", "-shm", "-journal"].map(|ending| folder.join(format!("{FILE}{ending}")))
    }
}
