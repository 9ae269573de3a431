//! Ports for programs that bring their own items and make something of their own out of answers.

use std::fmt::{self, Debug};

use futures_util::future::BoxFuture;
use rowmill_types::{Row, RowError};

use crate::record::CallReport;

/// Makes the prompts of rows.
pub trait Prompts: Send + Sync + Debug {
    /// What is asked about a row. Called from the engine's loop; must return at once.
    fn prompt(&self, row: &Row) -> Prompting;
}

/// The prompt of a row, or the row's failure: nothing is sent for it then.
pub enum Prompting {
    /// It is made.
    Done(Result<String, RowError>),
    /// It is being made. Other rows continue meanwhile.
    Running(BoxFuture<'static, Result<String, RowError>>),
}

impl Debug for Prompting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(done) => out.debug_tuple("Done").field(done).finish(),
            Self::Running(_) => out.write_str("Running"),
        }
    }
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
