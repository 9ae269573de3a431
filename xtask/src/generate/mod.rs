//! `cargo xtask generate`: generates documents from the code.

mod cli;
mod documents;
mod errors;
mod exit_codes;
mod run_spec;

pub use documents::{DocumentMode, generate_documents};
