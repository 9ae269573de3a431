//! The results of a run, read from its output: counts, failures, values, times, and the differences
//! from another run.

mod bars;
mod diff;
mod envelopes;
mod fields;
mod overview;
mod query;
mod telemetry;
mod unfinished;

pub use bars::{Bar, Distribution};
pub use diff::{Change, ChangedField, Diff, diff};
pub use envelopes::envelopes_of;
pub use fields::FieldSummary;
pub use overview::{Failure, Results, ResultsSpec, results};
pub use query::{QuerySurroundings, query};
pub use telemetry::TelemetrySummary;
pub use unfinished::{UnfinishedRun, unfinished};
