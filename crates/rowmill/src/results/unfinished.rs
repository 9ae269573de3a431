//! Whether a run reached the end of its input.

use std::path::Path;

use rowmill_core::run_header::UnfinishedRunEntry;
use rowmill_store::file::WorkFolder;
use serde::Serialize;

use crate::run_storage::RunStorage;
use crate::spec::FOLDER_IN_OUTPUT;

/// A run that has not reached the end of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UnfinishedRun {
    /// How many rows have no envelope yet, if known.
    pub missing: Option<u64>,
    /// Whether the run is in progress.
    pub running: bool,
}

/// Returns the state of the run from the work folder beside an output with this many rows; `None` if
/// the run reached its end, or nothing is known about it.
#[must_use]
pub fn unfinished_run_of_output(output: &Path, rows: u64) -> Option<UnfinishedRun> {
    let folder =
        if output.is_dir() { output.join(FOLDER_IN_OUTPUT) } else { WorkFolder::default_path(output) };
    let RunStorage { store, folder, .. } = RunStorage::look_at(&folder);
    let header = store.header().ok()??;
    header.unfinished.map(|UnfinishedRunEntry { rows: all }| UnfinishedRun {
        missing: all.map(|all| all.saturating_sub(rows)).filter(|missing| *missing > 0),
        running: folder.is_in_use(),
    })
}
