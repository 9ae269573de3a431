//! The command line: flags, progress, messages and exit codes. A thin layer over `rowmill`.

mod agent_flags;
mod args;
mod batch_flags;
mod batch_text;
mod browser;
mod commands;
mod data_flags;
mod flag_values;
mod flags;
mod hide_memory;
mod json_text;
mod live_lines;
mod number_text;
mod open_files;
mod other_tools;
mod output_flags;
mod panics;
mod planned_budget;
mod printer;
mod process_environment;
mod progress;
mod progress_jobs;
mod progress_line;
mod resolve;
mod run_with_signals;
mod signals;
mod simulate_batch_flags;
mod simulate_flags;
mod spec_file;
mod spec_vocabulary;
mod summary_text;
mod text_layout;
mod vocabulary;

pub use args::command;
pub use commands::main;
pub use vocabulary::COMMAND_LINE_VOCABULARY;
