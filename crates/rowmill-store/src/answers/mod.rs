//! Paid answers, stored in an SQLite file so that they are never paid for twice.

mod database;
mod keeper;
mod prune;
mod queue;
mod stats;
mod store;

#[cfg(test)]
mod tests;

pub use prune::{PruneSpec, Pruned};
pub use stats::Stats;
pub use store::SqliteAnswers;
