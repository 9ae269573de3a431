//! Ledgers: the durable record of a run.

pub mod file;
