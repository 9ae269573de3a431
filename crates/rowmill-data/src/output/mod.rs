//! The output of a run as a file of envelopes: claiming, reading back, appending and settling.

mod claim;
mod envelopes;
mod expected_content;
mod external_sort;
mod input_order;
mod lines;
mod links;
mod rebuild;
mod replace_envelope_ids;
mod rows;
mod scan;
mod settle;
mod sink;
mod stdout;

pub use claim::{OutputClaimMode, OutputFile, check_folder_writable, check_name_length, names_open_file};
pub(crate) use claim::{check_folder_of, write_problem};
pub use envelopes::{EnvelopeReader, NewerRecords};
pub use input_order::{NextInputIdFn, RemovedRows, ReorderReport, order_by_input};
pub use links::link_target;
pub use rebuild::RebuildReport;
pub use replace_envelope_ids::replace_envelope_ids;
pub use rows::open_result_rows;
pub use scan::{OutputScan, scan_output};
pub(crate) use settle::{for_each_replaced, settle_lines};
pub use settle::{rewrite_error_file, settle_by_number, settle_output};
pub use sink::{LineSink, SinkContent};
pub(crate) use stdout::stdout_problem;
pub use stdout::{READER_ENDED, StandardOutput};
