//! Where rows come from and where envelopes go: a folder per format, and the texts that
//! a run is made with.

mod attach;
mod blocks;
mod csv;
mod dataset;
mod digest;
mod documents;
mod extract;
mod fetch;
mod files;
mod format;
mod hub;
mod input;
mod json;
mod jsonl;
mod media;
pub mod output;
mod parquet;
mod pattern;
#[cfg(test)]
mod pieces;
mod place;
mod several;
mod spool;
mod sql;
pub mod table;
mod text;
pub mod traces;
mod unpack;
mod would_read;

pub use attach::{AttachmentSpec, attachments, folder_of_input};
pub use dataset::{dataset, local_files};
pub use documents::DocumentIds;
pub use extract::{Extractor, extract_main, extract_text};
pub use fetch::{FetchEvent, FetchSettings, FetchStep, Fetcher, HubSettings, Patience, Purpose, bring};
pub use format::Format;
pub use hub::HubAddress;
pub use input::{FileList, InputFile, InputSpec, Location};
pub use spool::spool;
pub use sql::{
    ColumnType, Notice, SqlEngine, SqlSettings, WantedColumn, check_columns, checked_stream, columns_dataset,
    duckdb_dataset, empty_columns, sql_dataset, where_dataset,
};
pub use text::{load_text, local_path, shown_source};
pub use would_read::would_read;
