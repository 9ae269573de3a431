//! Ports for programs that bring their own items and make something of their own out of answers.

use std::fmt::Debug;

use rowmill_types::{Row, RowError};

use crate::record::CallReport;

/// Makes the prompts of rows.
pub trait Prompts: Send + Sync + Debug {
    /// What is asked about a row.
    ///
    /// # Errors
    ///
    /// The row's failure: nothing is sent for it.
    fn prompt(&self, row: &Row) -> Result<String, RowError>;
}

/// Has the last word on rows that were answered.
///
/// The ledger keeps what was answered, whatever is said here, so that nothing is paid for twice.
pub trait Finish: Send + Sync + Debug {
    /// Makes something out of an answer.
    ///
    /// # Errors
    ///
    /// The row counts as failed.
    fn finish(&self, finishing: Finishing<'_>) -> Result<Verdict, RowError>;
}

/// A row that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Finishing<'a> {
    /// Its number.
    pub row: u64,
    /// The result: JSON text.
    pub result: &'a str,
    /// The model calls that were made for it in this run.
    pub calls: &'a [CallReport],
}

/// What an answer amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A result.
    Result,
    /// Nothing that a run which ends with its first result could end with.
    NoResult,
}
