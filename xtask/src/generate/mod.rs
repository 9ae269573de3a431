//! `cargo xtask generate`: the documents that are made from the code.

mod cli;
mod documents;
mod errors;
mod exit_codes;

pub use documents::{Mode, generate};
