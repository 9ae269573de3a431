//! What a query reads: tables, their columns and their values.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use rowmill_types::Problem;
pub use rowmill_types::{Comparison, Scalar};

use crate::values::sql_type::SqlType;

/// Something that can be read row by row, as often as a query wants to.
pub trait Table: Send + Sync + Debug {
    /// Its columns. Names differ, also when upper and lower case are not told apart.
    fn columns(&self) -> &[Column];

    /// Begins to read it.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn scan(&self, wanted: &Wanted) -> Result<Box<dyn Scan>, Problem>;
}

/// A read of a table. It stands before the first row at the beginning.
pub trait Scan {
    /// Goes to the next row; `false` once there is none.
    ///
    /// # Errors
    ///
    /// The table cannot be read any further.
    fn advance(&mut self) -> Result<bool, Problem>;

    /// The value of a column in the row that it stands on. Only columns that were wanted are
    /// asked for.
    ///
    /// # Errors
    ///
    /// The row has a value there that is not of the column's type.
    fn value(&self, column: usize) -> Result<Value<'_>, Problem>;

    /// The JSON of that value as the row has it, if it has one.
    fn raw(&self, column: usize) -> Option<Cow<'_, str>>;

    /// The number of the row that it stands on: what SQL calls `rowid`.
    fn number(&self) -> u64;
}

/// A table with the name that queries call it by.
#[derive(Debug, Clone)]
pub struct NamedTable {
    /// The name.
    pub name: &'static str,
    /// The table.
    pub table: Arc<dyn Table>,
}

/// What a scan has to give. More is never wrong: SQLite looks again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// The columns that are asked for, in order.
    pub columns: Vec<usize>,
    /// Rows that break one of these may be left out.
    pub conditions: Vec<Condition>,
}

/// A comparison of a column with a value. Null satisfies none.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The column.
    pub column: usize,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what.
    pub value: Scalar,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub kind: SqlType,
    /// Whether scans give the JSON of its values, which is then passed on in their place.
    pub has_raw: bool,
    /// What to know about its values where a query does not get along with its type.
    pub note: Option<String>,
}

/// A value of a row, as SQLite is given it: [`crate::column_value`] makes it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'r> {
    /// None.
    Null,
    /// A whole number, or what is kept as one: a truth, a day, a time, a short decimal number.
    Integer(i64),
    /// A number with a binary fraction.
    Real(f64),
    /// Text, and JSON text.
    Text(Cow<'r, str>),
    /// Bytes, and what is kept as bytes: long numbers, lists, objects.
    Bytes(Vec<u8>),
}

impl Value<'_> {
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
