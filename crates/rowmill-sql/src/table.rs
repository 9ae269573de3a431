//! The data that a query reads: tables, their columns and their values.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use rowmill_types::Problem;
pub use rowmill_types::{ComparisonOperator, ComparisonValue};

use crate::values::sql_type::SqlType;

/// Something that can be read row by row, repeatedly.
pub trait SqlTable: Send + Sync + Debug {
    /// Its columns. Names are unique, even ignoring case.
    fn columns(&self) -> &[SqlTableColumn];

    /// Starts a scan.
    ///
    /// # Errors
    ///
    /// The table cannot be read.
    fn scan(&self, wanted: &ScanRequest) -> Result<Box<dyn TableScan>, Problem>;
}

/// A scan of a table. It starts before the first row.
pub trait TableScan {
    /// Moves to the next row; `false` if there is none.
    ///
    /// # Errors
    ///
    /// The table cannot be read any further.
    fn advance(&mut self) -> Result<bool, Problem>;

    /// The value of a column in the current row. Only columns in [`ScanRequest`] are requested.
    ///
    /// # Errors
    ///
    /// The value does not have the type of its column.
    fn value(&self, column: usize) -> Result<SqliteColumnValue<'_>, Problem>;

    /// The JSON of that value as in the row, if there is any.
    fn raw(&self, column: usize) -> Option<Cow<'_, str>>;

    /// The number of the current row: SQL's `rowid`.
    fn number(&self) -> u64;
}

/// A table with the name that queries use for it.
#[derive(Debug, Clone)]
pub struct NamedTable {
    /// The name.
    pub name: &'static str,
    /// The table.
    pub table: Arc<dyn SqlTable>,
}

/// What a scan has to return. Returning more is always correct: SQLite checks again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScanRequest {
    /// The columns that are requested, in order.
    pub columns: Vec<usize>,
    /// Rows that do not satisfy one of these may be left out.
    pub conditions: Vec<ScanCondition>,
}

/// A comparison of a column with a value. Null never satisfies it.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanCondition {
    /// The column.
    pub column: usize,
    /// The comparison operator.
    pub comparison: ComparisonOperator,
    /// The value to compare with.
    pub value: ComparisonValue,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlTableColumn {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub kind: SqlType,
    /// Whether scans return the JSON of its values, which is then passed on instead of them.
    pub has_raw: bool,
    /// A note about its values for messages about its type.
    pub note: Option<String>,
}

/// A value of a row in SQLite's representation: [`crate::sqlite_value_from_json`] creates it.
#[derive(Debug, Clone, PartialEq)]
pub enum SqliteColumnValue<'r> {
    /// Null.
    Null,
    /// An integer, or a value that is represented as one: a boolean, a date, a time, a short decimal number.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// Text, or JSON text.
    Text(Cow<'r, str>),
    /// Bytes, or a value that is represented as bytes: a long number, a list, a struct.
    Bytes(Vec<u8>),
}

impl SqliteColumnValue<'_> {
    pub(crate) fn of_sqlite(value: rusqlite::types::Value) -> Self {
        match value {
            rusqlite::types::Value::Null => Self::Null,
            rusqlite::types::Value::Integer(number) => Self::Integer(number),
            rusqlite::types::Value::Real(number) => Self::Real(number),
            rusqlite::types::Value::Text(text) => Self::Text(Cow::Owned(text)),
            rusqlite::types::Value::Blob(bytes) => Self::Bytes(bytes),
        }
    }
}
