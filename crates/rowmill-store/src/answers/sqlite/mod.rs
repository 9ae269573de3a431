//! The store in an SQLite file.

mod database;
mod prune;
mod queue;
mod stats;
mod store;
mod store_thread;

#[cfg(test)]
mod tests;

pub use store::SqliteAnswerStore;
