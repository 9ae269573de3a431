//! Every file and folder that a run reads or writes, and the check that these do not conflict.

mod attached;
mod check;
mod folders;
mod identity;
mod reads;
mod writes;

pub(crate) use attached::AttachedFiles;
pub(crate) use check::{check_paths_disjoint, recheck_paths_disjoint};
pub(crate) use folders::CreatedFolders;
pub use identity::same_file;
pub(crate) use reads::{
    ReadPath, card_files, header_paths, paths_read, source_paths, source_paths_from_header,
};
pub(crate) use writes::{WrittenPath, paths_written, table_path_written};
