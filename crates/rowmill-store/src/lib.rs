//! Ledgers, the durable record of a run, and the store of answers that were paid for.

pub mod answers;
pub mod file;
