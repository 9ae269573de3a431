//! How fast rows are read and selected, and with how much memory, compared with DuckDB.

mod duckdb;
mod files;
mod ids;
mod reading;
mod selecting;
mod through_model;

use super::context::ScenarioFn;

pub(super) use duckdb::version as yardstick;

/// All scenarios, in the order of the report.
pub(super) const ALL: &[(&str, ScenarioFn)] = &[
    ("reading", reading::reading),
    ("through a model", through_model::through),
    ("ids", ids::ids),
    ("selecting", selecting::selecting),
];

/// The number of rows, unless time is short.
const ROWS: u64 = 10_000_000;
