//! Every file and folder that a run reads or writes, and the check that these do not conflict.

mod attached;
mod check;
mod folders;
mod identity;
mod reads;
mod writes;

pub(crate) use attached::AttachedFiles;
pub(crate) use check::{check_apart, check_still_apart};
pub(crate) use folders::MadeFolders;
pub use identity::same_file;
pub(crate) use reads::{ReadPath, card_files, kept_paths, made_from, made_from_files, reads};
pub(crate) use writes::{WrittenPath, table_target, writes};
