//! `run.json`: the header of a run, and the name of the file with its events.

use rowmill_core::run_header::RunHeader;
use serde::{Deserialize, Serialize};

/// The format that this version writes; a reader rejects unknown formats.
pub(super) const FORMAT: u32 = 1;

/// The content of `run.json`. It is replaced atomically, so a new ledger and a new base for telemetry take effect
/// together or not at all.
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
