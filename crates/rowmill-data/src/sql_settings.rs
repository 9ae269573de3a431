//! The settings of queries, which a spec can hold whether or not this build has SQL.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use rowmill_types::DiagnosticText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FieldDelimiter, FileList, InputFormat};

/// Reports a warning to the user.
pub type WarnFn = Arc<dyn Fn(DiagnosticText) + Send + Sync>;

/// The settings of a query besides its text.
#[derive(Debug, Clone, Copy)]
pub struct SqlSettings<'s> {
    /// The folder for temporary files; it must exist.
    pub temp: &'s Path,
    /// The declared types of columns.
    pub types: &'s [ColumnTypeSetting],
}

/// A column and its type: `--types zip=text`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ColumnType")]
pub struct ColumnTypeSetting {
    /// The name of the column.
    pub column: String,
    /// The name of the type, as in DuckDB.
    pub type_name: String,
}

/// What runs a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SqlEngine {
    /// The built-in engine.
    #[default]
    BuiltIn,
    /// Your installed DuckDB.
    DuckDb,
}

/// The files that DuckDB reads, and how.
#[derive(Debug, Clone, Copy)]
pub struct DuckDbInput<'i> {
    /// The files and their format.
    pub files: &'i (FileList, InputFormat),
    /// The delimiter of a CSV input, if it was named.
    pub delimiter: Option<FieldDelimiter>,
    /// The declared types of columns.
    pub types: &'i [ColumnTypeSetting],
    /// All variables that there are, of which DuckDB gets those that it needs.
    pub variables: &'i [(OsString, OsString)],
}
