//! Reads rows and writes envelopes, with one folder per format, and loads the texts that a run uses.

mod attach;
mod blocks;
mod csv;
mod dataset;
mod digest;
mod documents;
mod extract;
mod fetch;
mod files;
mod folder;
mod foreign_code;
mod format;
mod hub;
mod input;
mod json;
mod jsonl;
mod media;
pub mod output;
mod overlapped;
mod parquet;
mod partition;
mod pattern;
#[cfg(test)]
mod pieces;
mod place;
mod read_ahead;
mod recorded;
mod several;
mod spool;
mod sql;
pub mod table;
mod text;
pub mod traces;
mod unpack;
mod walk;
mod would_read;

pub use attach::{AttachmentSpec, attachments, folder_of_input};
pub use csv::FieldDelimiter;
pub use dataset::{dataset, deviating_delimiter, local_files};
pub use documents::DocumentIds;
pub use extract::{Extractor, extract_main, extract_text};
pub use fetch::{FetchEvent, FetchSettings, FetchStep, Fetcher, HubSettings, Patience, Purpose, bring};
pub use foreign_code::in_foreign_code;
pub use format::Format;
pub use hub::HubAddress;
pub use input::{FileList, InputFile, InputSpec, Location, PartitionField};
pub use overlapped::read_overlapped;
pub use recorded::{record_rows, recorded_rows};
pub use spool::spool;
pub use sql::{
    ColumnType, DuckDbInput, Notice, SqlEngine, SqlSettings, WantedColumn, check_columns, checked_stream,
    columns_dataset, duckdb_dataset, empty_columns, is_repeatable_condition, is_repeatable_query,
    listed_columns, sql_dataset, where_dataset,
};
pub use text::{TextName, load_text, local_path, shown_source};
pub use would_read::would_read;
