//! Paid answers, stored in an SQLite file so that they are never paid for twice.

mod database;
mod prune;
mod queue;
mod stats;
mod store;
mod store_thread;

#[cfg(test)]
mod tests;

pub use prune::{PruneReport, PruneSpec};
pub use stats::AnswerStoreStats;
pub use store::SqliteAnswerStore;
