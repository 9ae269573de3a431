//! Whether a run came to the end of its input.

use std::path::Path;

use rowmill_core::run_header::Unfinished;
use rowmill_store::file::WorkFolder;
use serde::Serialize;

use crate::run_place::RunPlace;
use crate::spec::FOLDER_IN_OUTPUT;

/// A run that has not come to the end of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UnfinishedRun {
    /// How many rows have no envelope yet, where that is known.
    pub missing: Option<u64>,
    /// Whether it is still going.
    pub running: bool,
}

/// What the work folder beside an output with so many rows says of its run; `None` where it came to
/// its end, or nothing is known of it.
#[must_use]
pub fn unfinished(output: &Path, rows: u64) -> Option<UnfinishedRun> {
    let folder = if output.is_dir() { output.join(FOLDER_IN_OUTPUT) } else { WorkFolder::beside(output) };
    let RunPlace { store, folder } = RunPlace::of(&folder);
    let header = store.header().ok()??;
    header.unfinished.map(|Unfinished { rows: all }| UnfinishedRun {
        missing: all.map(|all| all.saturating_sub(rows)).filter(|missing| *missing > 0),
        running: folder.is_in_use(),
    })
}
