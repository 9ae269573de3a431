//! The command line: flags, progress, messages and exit codes. A thin layer over `rowmill`.

mod agent_flags;
mod args;
mod browser;
mod commands;
mod conduct;
mod data_flags;
mod flags;
mod json_text;
mod layout;
mod live_lines;
mod numbers;
mod open_files;
mod other_tools;
mod output_flags;
mod panics;
mod planned_budget;
mod printer;
mod private;
mod progress;
mod progress_line;
mod resolve;
mod signals;
mod simulate_flags;
mod spec_file;
mod spec_vocabulary;
mod summary_text;
mod surroundings;
mod values;
mod vocabulary;

pub use args::command;
pub use commands::main;
pub use vocabulary::FLAGS;
