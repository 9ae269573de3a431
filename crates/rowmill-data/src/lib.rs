//! Where rows come from and where envelopes go: a folder per format, and the texts that
//! a run is made with.

mod blocks;
mod csv;
mod dataset;
mod input;
mod jsonl;
pub mod output;
mod spool;
mod text;

pub use dataset::dataset;
pub use input::{Format, InputSpec, Location};
pub use spool::spool;
pub use text::{load_text, shown_source};
