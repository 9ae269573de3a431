//! Reads rows and writes envelopes, with one folder per format, and loads the texts that a run uses.

mod address_credential;
mod attach;
mod block_reader;
#[cfg(test)]
mod chunked_reader;
mod columns;
mod csv;
mod dataset;
mod decompress;
mod deterministic_query;
mod digest;
mod document_id_rule;
#[cfg_attr(not(feature = "documents"), path = "without/documents.rs")]
mod documents;
#[cfg_attr(not(feature = "hub"), path = "without/download.rs")]
mod download;
mod extract;
mod fetch;
mod files_source;
mod folder;
mod folder_walk;
mod foreign_code;
#[cfg_attr(not(feature = "hub"), path = "without/hub.rs")]
mod hub;
mod hub_address;
mod input;
mod input_format;
mod json;
mod jsonl;
mod load_text;
mod media_type;
#[cfg_attr(not(feature = "documents"), path = "without/office_archive.rs")]
mod office_archive;
pub mod output;
mod overlapped;
#[cfg_attr(not(feature = "parquet"), path = "without/parquet.rs")]
mod parquet;
mod partition;
mod pattern;
mod percent;
#[cfg(any(feature = "parquet", feature = "sql"))]
mod read_ahead;
mod record_placement;
mod recorded;
mod spool;
#[cfg_attr(not(feature = "sql"), path = "without/sql.rs")]
mod sql;
mod sql_settings;
pub mod table;
mod text_dataset;
pub mod traces;
mod would_read;

pub use address_credential::split_credential;
pub use attach::{AttachmentSpec, attachment_loader, base_folder_of_input};
pub use columns::{
    WantedColumn, check_columns, column_checking_dataset, column_list_text, find_empty_columns,
    select_columns,
};
pub use csv::FieldDelimiter;
pub use dataset::{local_input_files, open_dataset, overriding_delimiter_of};
pub use deterministic_query::{is_deterministic_condition, is_deterministic_query};
pub use document_id_rule::DocumentIdRule;
pub use extract::{TextExtractor, extract_text, run_extract_child};
pub use fetch::{
    FetchEvent, FetchEventKind, FetchPurpose, FetchSettings, Fetcher, HubSettings, RetrySettings,
    fetch_to_disk,
};
pub use foreign_code::is_in_foreign_code;
pub use hub_address::HubAddress;
pub use input::{FileList, InputFile, InputLocation, InputSpec, PartitionField};
pub use input_format::InputFormat;
pub use load_text::{TextOrigin, load_text, local_path, redacted_source};
pub use overlapped::read_on_second_thread;
pub use recorded::{open_recorded_rows, record_rows_in_file};
pub use spool::spool_input;
pub use sql::{duckdb_dataset, sql_dataset, where_dataset};
pub use sql_settings::{ColumnTypeSetting, DuckDbInput, SqlEngine, SqlSettings, WarnFn};
pub use would_read::input_would_read;
