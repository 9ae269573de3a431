//! A run in a work folder beside its output; the ledger is a file of JSON lines.

mod disk;
mod folder;
mod header;
mod ledger;
mod lost_header;
mod scan;
mod store;

pub use folder::{FolderLock, WorkFolder};
pub use store::FileRunStore;
