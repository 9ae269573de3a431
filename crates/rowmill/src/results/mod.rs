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

pub use diff::{ChangedField, ChangedRow, RunDiff, diff_runs};
pub use distribution::{HistogramBar, ValueDistribution};
pub use envelopes::envelopes_path;
pub use fields::FieldSummary;
pub use overview::{FailedRow, ResultsOverview, ResultsSpec, read_results};
pub use query::{QueryContext, query_results};
pub use telemetry::TelemetrySummary;
pub use unfinished::{UnfinishedRun, find_unfinished_run};
