//! Exports the envelopes of a run as tables: CSV, TSV, Parquet and JSONL, in one file or split by the values
//! of a field.
//!
//! A first pass over the envelopes finds the columns and their types, and a second one writes them. So memory
//! does not grow with the number of rows, and no value is lost because a type turned out too narrow.

mod cells;
mod columns;
mod delimited;
mod draft;
mod format;
mod input_rows;
mod jsonl;
mod kind;
mod names;
#[cfg_attr(not(feature = "parquet"), path = "without_parquet.rs")]
mod parquet;
mod schema;
mod split;
mod survey;
mod target;
mod values;
#[cfg(feature = "parquet")]
mod vectors;
mod writer;

use rowmill_core::redact::Redactor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use draft::{TableDraft, write_table_draft};
pub use format::TableFormat;
pub use input_rows::check_envelopes_contain_input;
pub use target::{TableTarget, listed_table_paths, remove_table_leftovers};

/// The settings of a table export.
#[derive(Debug, Clone)]
pub struct TableExportSettings {
    /// The file format.
    pub format: TableFormat,
    /// The layout of the columns.
    pub layout: TableLayout,
    /// Whether the input rows are included; a flat table always includes them.
    pub input: InputRowInclusion,
    /// The JSON Schema that results satisfy, as text.
    pub schema: Option<String>,
    /// Removes secrets from values that become file names.
    pub redactor: Redactor,
}

/// Column layout of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TableLayout {
    /// The fields of the envelope, with those of the result among them.
    #[default]
    Envelope,
    /// The fields of the input row, then those of the result, then the envelope's.
    Flat,
}

/// Whether the input rows are included in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRowInclusion {
    /// They are left out.
    Excluded,
    /// They are included, if the envelopes have them.
    Included,
}
