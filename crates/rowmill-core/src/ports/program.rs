//! Ports for programs that supply their own items and map answers to values of their own.

use std::fmt::{self, Debug};

use futures_util::future::BoxFuture;
use rowmill_types::{Row, RowError};

use crate::record::CallReport;

/// Renders the prompts of rows.
pub trait PromptMaker: Send + Sync + Debug {
    /// The prompt of a row. Called from the engine's loop; must return at once.
    fn make_prompt(&self, row: &Row) -> PromptRendering;
}

/// The prompt of a row, or the row's failure; a failed row is not sent.
pub enum PromptRendering {
    /// The prompt is ready.
    Done(Result<String, RowError>),
    /// The prompt is being rendered. Other rows continue in the meantime.
    Running(BoxFuture<'static, Result<String, RowError>>),
}

impl Debug for PromptRendering {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(done) => out.debug_tuple("Done").field(done).finish(),
            Self::Running(_) => out.write_str("Running"),
        }
    }
}

/// Maps the answers of rows to results of the program.
///
/// The ledger keeps the original answer whatever this returns, so nothing is paid for twice.
pub trait AnswerMapper: Send + Sync + Debug {
    /// Maps an answer.
    ///
    /// # Errors
    ///
    /// The row counts as failed.
    fn map_answer(&self, finishing: AnsweredRow<'_>) -> Result<ResultVerdict, RowError>;
}

/// An answered row.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredRow<'a> {
    /// Its number.
    pub row: u64,
    /// The result: JSON text.
    pub result: &'a str,
    /// The model calls that were made for the row in this run.
    pub calls: &'a [CallReport],
}

/// Whether an answer counts as a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultVerdict {
    /// It is a result.
    Result,
    /// It is no result: a run that ends with its first result does not end with it.
    NoResult,
}
