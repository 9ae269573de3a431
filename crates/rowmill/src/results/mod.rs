//! The results of a run, read from its output: counts, failures, values, times, and the differences
//! from another run.

mod diff;
mod distribution;
mod envelopes;
mod fields;
mod overview;
mod query;
mod telemetry;
mod unfinished;

pub use diff::{ChangedResultField, ChangedRow, RunDiff, diff_runs};
pub use distribution::{HistogramBar, TelemetryDistribution};
pub use envelopes::envelopes_path;
pub use fields::FieldSummary;
pub use overview::{FailedRow, ResultsOverview, ResultsOverviewSpec, summarize_results};
pub use query::{QueryContext, query_results};
pub use telemetry::RowTelemetrySummary;
pub use unfinished::{UnfinishedRun, unfinished_run_of_output};
