//! The output of a run as a file of envelopes: claiming it, reading it back,
//! appending to it and settling it.

mod claim;
mod envelopes;
mod lines;
mod rows;
mod scan;
mod settle;
mod sink;

pub(crate) use claim::cannot_write;
pub use claim::{Claim, OutputFile};
pub use envelopes::{Envelopes, Newer};
pub use rows::result_rows;
pub use scan::{OutputScan, scan_output};
pub(crate) use settle::{each_replaced, settle_lines};
pub use settle::{rewrite_errors, settle};
pub use sink::{LineSink, Part};
