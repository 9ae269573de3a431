//! `run.json`: the header of a run, and which file of the folder holds its events.

use rowmill_core::run_header::RunHeader;
use serde::{Deserialize, Serialize};

/// The format that this version writes; a reader refuses formats it does not know.
pub(super) const FORMAT: u32 = 1;

/// What `run.json` holds. It is replaced in one step, so naming a new ledger and a new base for
/// telemetry happens at once or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileHeader {
    /// The format of the folder.
    pub(super) format: u32,
    /// Counts the ledgers of this folder; part of the ledger's file name.
    pub(super) generation: u32,
    /// The run.
    #[serde(flatten)]
    pub(super) run: RunHeader,
}

impl FileHeader {
    pub(super) fn new(generation: u32, run: RunHeader) -> Self {
        Self { format: FORMAT, generation, run }
    }
}
