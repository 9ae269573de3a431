//! Ledgers, the durable record of a run, and the store of paid answers.

pub mod answers;
pub mod file;
