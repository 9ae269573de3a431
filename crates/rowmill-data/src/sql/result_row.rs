//! Turns the result of a query into rows.

use std::sync::Arc;

use rowmill_sql::{PreparedSqlQuery, QueryResultRow};
use rowmill_types::{BadRow, RowBuilder, RowErrorKind, RowLayout, RowReadResult};

/// Writes results as rows.
#[derive(Debug)]
pub(crate) struct ResultRowWriter {
    columns: Arc<RowLayout>,
    /// The length of the last row, which is a good estimate for the next.
    length: usize,
}

impl ResultRowWriter {
    pub(crate) fn new(query: &PreparedSqlQuery) -> Self {
        let names = query.columns().iter().map(|column| column.name.as_str());
        Self { columns: Arc::new(RowLayout::new(names)), length: 0 }
    }

    /// The row for a record.
    pub(crate) fn make_row(&mut self, number: u64, record: &QueryResultRow<'_>) -> RowReadResult {
        let mut row = RowBuilder::new(Arc::clone(&self.columns), self.length + self.length / 8 + 16);
        for column in 0..self.columns.len() {
            row.push_value(|text| record.write_column_json(column, text));
        }
        let row = row.into_row(number).ok_or_else(|| BadRow {
            number,
            kind: RowErrorKind::InvalidRow,
            message: format!("Row {number}: longer than 4 GiB"),
        })?;
        self.length = row.json_text().len();
        Ok(row)
    }
}
