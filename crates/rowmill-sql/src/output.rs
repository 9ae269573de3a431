//! The results of a query.

use rusqlite::Row;
use rusqlite::types::ValueRef;

use crate::binder::OutputColumn;
use crate::values::output_json::write_value;
use crate::values::sql_type::SqlType;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryResultColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: SqlType,
}

/// A row of a result, valid while the query is at this row.
#[derive(Debug)]
pub struct QueryResultRow<'r> {
    row: &'r Row<'r>,
    columns: &'r [OutputColumn],
}

impl<'r> QueryResultRow<'r> {
    pub(crate) fn new(row: &'r Row<'r>, columns: &'r [OutputColumn]) -> Self {
        Self { row, columns }
    }

    /// Appends the value of a column as JSON: the original JSON, if the column comes from the input.
    pub fn write_column_json(&self, column: usize, out: &mut String) {
        let (Some(output), Ok(value)) = (self.columns.get(column), self.row.get_ref(column)) else {
            out.push_str("null");
            return;
        };
        match value {
            ValueRef::Text(bytes) if output.has_raw => {
                out.push_str(std::str::from_utf8(bytes).unwrap_or("null"))
            }
            value => write_value(value, &output.kind, out),
        }
    }
}
