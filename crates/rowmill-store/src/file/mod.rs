//! The ledger as a file of JSON lines in a work folder beside the output.

mod folder;
mod format;
mod ledger;
mod scan;

pub use folder::WorkFolder;
pub use format::{Line, SinkBase, Started, started_line};
pub use ledger::FileLedger;
pub use scan::{Scanned, scan};
