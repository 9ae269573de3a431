//! The output of a run as a file of envelopes: claiming, reading back, appending and settling.

mod claim;
mod envelopes;
mod ids;
mod input_order;
mod lines;
mod links;
mod made_whole;
mod rows;
mod scan;
mod settle;
mod sink;
mod sorted_runs;
mod stdout;
mod written;

pub use claim::{Claim, OutputFile, check_name, check_takes_files, names_open_file};
pub(crate) use claim::{cannot_write, check_folder_of};
pub use envelopes::{Envelopes, Newer};
pub use ids::replace_ids;
pub use input_order::{InputIds, InputOrder, RemovedRows, order_by_input};
pub use links::link_target;
pub use made_whole::MadeWhole;
pub use rows::result_rows;
pub use scan::{OutputScan, scan_output};
pub(crate) use settle::{each_replaced, settle_lines};
pub use settle::{rewrite_errors, settle, settle_by_number};
pub use sink::{LineSink, Part};
pub(crate) use stdout::stdout_failed;
pub use stdout::{READER_ENDED, StandardOutput};
