//! A dataset as an SQL table.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowmill_core::ports::{Condition, Dataset, Part};
use rowmill_sql::{Column, Scan, SqlType, Table, Wanted};
use rowmill_types::Problem;

use super::handoff::Handoff;
use super::scan::RowScan;
use super::shape::Shape;
use super::watch::Watch;

/// A dataset as queries see it.
#[derive(Debug, Clone)]
pub(crate) struct DatasetTable {
    pub(crate) input: Arc<dyn Dataset>,
    pub(crate) shape: Arc<Shape>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) handoff: Arc<Handoff>,
    /// Set if rows are passed on unchanged.
    pub(crate) tap: Option<Arc<Tap>>,
}

/// Passes on the rows of a scan unchanged, once a query has selected them.
#[derive(Debug)]
pub(crate) struct Tap {
    pub(crate) handoff: Arc<Handoff>,
    /// Whether the query has selected the current row.
    pub(crate) matched: AtomicBool,
    /// Whether a scan was started.
    pub(crate) opened: AtomicBool,
    /// The columns that the rows must have, besides those that the query reads; `None` for all.
    pub(crate) columns: Option<Vec<String>>,
}

impl Table for DatasetTable {
    fn columns(&self) -> &[Column] {
        &self.shape.columns
    }

    fn scan(&self, wanted: &Wanted) -> Result<Box<dyn Scan>, Problem> {
        if let Some(tap) = &self.tap {
            tap.opened.store(true, Ordering::Relaxed);
        }
        let part = Part { columns: self.part_columns(wanted), conditions: self.conditions(wanted) };
        let source = self.input.open_part(&part)?;
        Ok(Box::new(RowScan::new(source, self, &wanted.columns)))
    }
}

impl DatasetTable {
    /// The names of the fields that the scan needs, in the order of the input.
    fn part_columns(&self, wanted: &Wanted) -> Option<Vec<String>> {
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
    fn conditions(&self, wanted: &Wanted) -> Vec<Condition> {
        let condition = |condition: &rowmill_sql::Condition| {
            let column = self.shape.fields.get(condition.column)?.clone();
            let rowmill_sql::Condition { comparison, value, .. } = condition.clone();
            Some(Condition { column, comparison, value })
        };
        wanted.conditions.iter().filter_map(condition).collect()
    }
}
