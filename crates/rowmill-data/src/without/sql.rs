//! Stands in for queries in a build without them.

use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_types::{CargoFeature, Problem};

use crate::{DuckDbInput, SqlSettings, WarnFn};

/// Would be the rows that a query returns.
///
/// # Errors
///
/// Always: this build has no SQL.
pub fn sql_dataset(
    _input: Arc<dyn Dataset>,
    _sql: &str,
    _settings: &SqlSettings<'_>,
    _notice: WarnFn,
) -> Result<Arc<dyn Dataset>, Problem> {
    Err(CargoFeature::Sql.missing_problem())
}

/// Would be the rows that meet a condition.
///
/// # Errors
///
/// Always: this build has no SQL.
pub fn where_dataset(
    _input: Arc<dyn Dataset>,
    _condition: &str,
    _settings: &SqlSettings<'_>,
    _notice: WarnFn,
) -> Result<Arc<dyn Dataset>, Problem> {
    Err(CargoFeature::Sql.missing_problem())
}

/// Would be the rows that the user's own DuckDB returns.
///
/// # Errors
///
/// Always: this build has no SQL.
pub fn duckdb_dataset(
    _input: Arc<dyn Dataset>,
    _read: &DuckDbInput<'_>,
    _sql: &str,
) -> Result<Arc<dyn Dataset>, Problem> {
    Err(CargoFeature::Sql.missing_problem())
}
