//! The ledger as a file of JSON lines in a work folder beside the output.

mod folder;
mod format;
mod header;
mod ledger;
mod scan;

pub use folder::{FolderLock, WorkFolder};
pub use format::Line;
pub use header::{Header, SinkBase, Unfinished};
pub use ledger::FileLedger;
pub use scan::{Scanned, scan};
