//! What comes out of a query.

use rusqlite::Row;
use rusqlite::types::ValueRef;

/// A row of a result, while the query stands on it.
#[derive(Debug)]
pub struct Record<'r> {
    row: &'r Row<'r>,
}

impl<'r> Record<'r> {
    pub(crate) fn new(row: &'r Row<'r>) -> Self {
        Self { row }
    }

    /// The value of a column of the result.
    #[must_use]
    pub fn value(&self, column: usize) -> Output<'_> {
        match self.row.get_ref(column) {
            Ok(ValueRef::Integer(number)) => Output::Integer(number),
            Ok(ValueRef::Real(number)) => Output::Real(number),
            Ok(ValueRef::Text(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => Output::Text(text),
                Err(_) => Output::Bytes(bytes),
            },
            Ok(ValueRef::Blob(bytes)) => Output::Bytes(bytes),
            Ok(ValueRef::Null) | Err(_) => Output::Null,
        }
    }
}

/// A value of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Output<'r> {
    /// None.
    Null,
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(&'r str),
    /// Bytes.
    Bytes(&'r [u8]),
}
