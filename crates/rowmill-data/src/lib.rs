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
mod json;
mod jsonl;
pub mod output;
mod parquet;
mod pattern;
mod place;
mod several;
mod spool;
mod text;
mod unpack;

pub use dataset::{dataset, local_files};
pub use format::Format;
pub use hub::HubAddress;
pub use input::{FileList, InputFile, InputSpec, Location};
pub use spool::spool;
pub use text::{load_text, shown_source};
