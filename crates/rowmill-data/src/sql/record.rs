//! From the result of a query to rows.

use rowmill_sql::{Query, Record};
use rowmill_types::Row;

use super::field_name::FieldName;

/// Writes the rows of one result.
#[derive(Debug)]
pub(crate) struct RecordWriter {
    columns: Vec<FieldName>,
}

impl RecordWriter {
    pub(crate) fn new(query: &Query) -> Self {
        Self { columns: query.columns().iter().map(|column| FieldName::new(&column.name)).collect() }
    }

    /// The row that a record becomes.
    pub(crate) fn row(&self, number: u64, record: &Record<'_>) -> Row {
        let mut text = String::new();
        let mut fields = Vec::with_capacity(self.columns.len());
        for (at, name) in self.columns.iter().enumerate() {
            name.write(&mut text);
            let start = text.len();
            record.write_json(at, &mut text);
            fields.push(name.field(start..text.len()));
        }
        text.push('}');
        Row::from_parts(number, text, fields)
    }
}
