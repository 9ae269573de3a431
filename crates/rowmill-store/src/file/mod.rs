//! A run in a work folder beside its output; the ledger is a file of JSON lines.

mod disk;
mod header;
mod ledger;
mod lost_header;
mod scan;
mod store;
mod work_folder;

pub use store::FileRunStore;
pub use work_folder::{FolderLock, WorkFolder};
