//! Reads rows and writes envelopes, with one folder per format, and loads the texts that a run uses.

mod attach;
mod block_reader;
#[cfg(test)]
mod chunked_reader;
mod csv;
mod dataset;
mod decompress;
mod digest;
mod documents;
mod extract;
mod fetch;
mod files_source;
mod folder;
mod folder_walk;
mod foreign_code;
mod hub;
mod input;
mod input_format;
mod json;
mod jsonl;
mod load_text;
mod media_type;
pub mod output;
mod overlapped;
mod parquet;
mod partition;
mod pattern;
mod read_ahead;
mod record_placement;
mod recorded;
mod spool;
mod sql;
pub mod table;
mod text_dataset;
pub mod traces;
mod would_read;

pub use attach::{AttachmentSpec, attachment_loader, base_folder_of_input};
pub use csv::FieldDelimiter;
pub use dataset::{local_files, open_dataset, unexpected_delimiter_of};
pub use documents::DocumentIds;
pub use extract::{TextExtractor, extract_text, run_extract_child};
pub use fetch::{
    FetchEvent, FetchPurpose, FetchSettings, FetchStep, Fetcher, HubSettings, RetrySettings, fetch_to_disk,
};
pub use foreign_code::in_foreign_code;
pub use hub::HubAddress;
pub use input::{FileList, InputFile, InputLocation, InputSpec, PartitionField};
pub use input_format::InputFormat;
pub use load_text::{TextName, load_text, local_path, redacted_source};
pub use overlapped::read_on_second_thread;
pub use recorded::{record_rows, recorded_rows};
pub use spool::spool_input;
pub use sql::{
    ColumnType, DuckDbInput, SqlEngine, SqlSettings, WantedColumn, WarnFn, check_columns,
    check_stream_columns, column_list_text, columns_dataset, duckdb_dataset, find_empty_columns,
    is_repeatable_condition, is_repeatable_query, sql_dataset, where_dataset,
};
pub use would_read::input_would_read;
