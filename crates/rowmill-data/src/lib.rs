//! Where rows come from and where envelopes go: a folder per format, and the texts that
//! a run is made with.

mod blocks;
mod csv;
mod dataset;
mod documents;
mod files;
mod format;
mod hub;
mod input;
mod jsonl;
pub mod output;
mod parquet;
mod pattern;
mod spool;
pub mod table;
mod text;

pub use dataset::dataset;
pub use format::Format;
pub use hub::HubAddress;
pub use input::{FileList, InputFile, InputSpec, Location};
pub use spool::spool;
pub use text::{load_text, shown_source};
