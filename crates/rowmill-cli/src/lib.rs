//! The command line: flags, progress, messages and exit codes. Thin over `rowmill`.

mod agent_flags;
mod args;
mod commands;
mod conduct;
mod data_flags;
mod flags;
mod layout;
mod numbers;
mod output_flags;
mod printer;
mod progress;
mod resolve;
mod signals;
mod simulate_flags;
mod values;

pub use args::command;
pub use commands::main;
