//! A dataset as an SQL table.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowmill_core::ports::{ColumnCondition, Dataset, RequestedDatasetPart};
use rowmill_sql::{ScanRequest, SqlTable, SqlTableColumn, SqlType, TableScan};
use rowmill_types::Problem;

use super::handoff::RowHandoff;
use super::query_warnings::QueryWarnings;
use super::scan::RowScan;
use super::shape::SqlColumns;

/// A dataset as queries see it.
#[derive(Debug, Clone)]
pub(crate) struct DatasetTable {
    pub(crate) input: Arc<dyn Dataset>,
    pub(crate) shape: Arc<SqlColumns>,
    pub(crate) watch: Arc<QueryWarnings>,
    pub(crate) handoff: Arc<RowHandoff>,
    /// Set if rows are passed on unchanged.
    pub(crate) tap: Option<Arc<RowTap>>,
}

/// Passes on the rows of a scan unchanged, once a query has selected them.
#[derive(Debug)]
pub(crate) struct RowTap {
    pub(crate) handoff: Arc<RowHandoff>,
    /// Whether the query has selected the current row.
    pub(crate) matched: AtomicBool,
    /// Whether a scan was started.
    pub(crate) opened: AtomicBool,
    /// The columns that the rows must have, besides those that the query reads; `None` for all.
    pub(crate) columns: Option<Vec<String>>,
}

impl SqlTable for DatasetTable {
    fn columns(&self) -> &[SqlTableColumn] {
        &self.shape.columns
    }

    fn scan(&self, wanted: &ScanRequest) -> Result<Box<dyn TableScan>, Problem> {
        if let Some(tap) = &self.tap {
            tap.opened.store(true, Ordering::Relaxed);
        }
        let part =
            RequestedDatasetPart { columns: self.part_columns(wanted), conditions: self.conditions(wanted) };
        let source = self.input.open_part(&part)?;
        Ok(Box::new(RowScan::new(source, self, &wanted.columns)))
    }
}

impl DatasetTable {
    /// The names of the fields that the scan needs, in the order of the input.
    fn part_columns(&self, wanted: &ScanRequest) -> Option<Vec<String>> {
        let mut fields: BTreeSet<usize> = wanted.columns.iter().copied().collect();
        if let Some(tap) = &self.tap {
            let places = self.shape.fields.iter().enumerate();
            let kept = tap.columns.as_ref()?;
            fields.extend(places.filter(|(_, field)| kept.contains(field)).map(|(at, _)| at));
        }
        if fields.is_empty() {
            // Rows that are only counted still have to be read; a number costs least.
            let columns = self.shape.columns.iter();
            let cheap = columns.enumerate().find(|(_, column)| {
                matches!(column.kind, SqlType::BigInt | SqlType::Integer | SqlType::Boolean | SqlType::Double)
            });
            fields.insert(cheap.map_or(0, |(at, _)| at));
        }
        Some(fields.iter().filter_map(|at| self.shape.fields.get(*at)).cloned().collect())
    }

    /// The conditions, by field name.
    fn conditions(&self, wanted: &ScanRequest) -> Vec<ColumnCondition> {
        let condition = |condition: &rowmill_sql::ScanCondition| {
            let column = self.shape.fields.get(condition.column)?.clone();
            let rowmill_sql::ScanCondition { comparison, value, .. } = condition.clone();
            Some(ColumnCondition { column, comparison, value })
        };
        wanted.conditions.iter().filter_map(condition).collect()
    }
}
