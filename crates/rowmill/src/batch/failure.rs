//! Errors of functions, items and batches.

use std::error::Error;
use std::fmt;

use rowmill_engine::StopCause;
use rowmill_types::{Problem, RowError, RowErrorKind};

use super::report::BatchReport;

/// The reason why a function of the program failed on an item.
///
/// The `?` operator converts every error into it. It does not implement [`Error`] itself, because the
/// conversion from all errors would then be impossible.
///
/// ```
/// use rowmill::FunctionFailure;
///
/// fn number(text: &str) -> Result<u8, FunctionFailure> {
///     if text.is_empty() {
///         return Err(FunctionFailure::temporary("nothing there yet"));
///     }
///     Ok(text.parse()?)
/// }
///
/// assert!(number("").is_err_and(|failure| failure.is_temporary()));
/// assert!(number("x").is_err_and(|failure| failure.message() == "invalid digit found in string"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionFailure {
    message: String,
    temporary: bool,
}

impl FunctionFailure {
    /// A failure that a retry cannot fix.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), temporary: false }
    }

    /// A failure that a retry may fix: the call is retried up to
    /// [`Batch::retries`](super::Batch::retries) times.
    pub fn temporary(message: impl Into<String>) -> Self {
        Self { message: message.into(), temporary: true }
    }

    /// Whether a retry may help.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// The error message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn row_error(self, kind: RowErrorKind) -> RowError {
        RowError::new(kind, self.message)
    }
}

impl fmt::Display for FunctionFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl<E: Error> From<E> for FunctionFailure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            message.push_str(": ");
            message.push_str(&error.to_string());
            source = error.source();
        }
        Self::new(message)
    }
}

/// The reason why an item has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItemError {
    /// The item failed.
    Failed {
        /// The index of the item, counted from 0.
        index: usize,
        /// The error.
        error: RowError,
    },
    /// The item was not worked on, because the batch ended first.
    NotRun {
        /// The index of the item, counted from 0.
        index: usize,
    },
}

impl ItemError {
    /// The index of the item, counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        match self {
            Self::Failed { index, .. } | Self::NotRun { index } => *index,
        }
    }

    /// The kind of failure; `None` for an item that was not worked on.
    #[must_use]
    pub fn kind(&self) -> Option<RowErrorKind> {
        match self {
            Self::Failed { error, .. } => Some(error.kind),
            Self::NotRun { .. } => None,
        }
    }
}

impl fmt::Display for ItemError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { index, error } => write!(out, "item {index} failed: {}", error.message),
            Self::NotRun { index } => write!(out, "item {index} was not run: the batch ended before it"),
        }
    }
}

impl Error for ItemError {}

/// The error of a batch that did not give results for all items. It holds the results that there are.
///
/// ```
/// use rowmill::{Batch, BatchFailureCause, FunctionFailure};
///
/// let batch = Batch::over(["1", "x"]).worker_fn(|item| async move { Ok(item.parse::<u8>()?) });
/// let error = batch.sequential().run_blocking().unwrap_err();
/// assert!(matches!(error.cause(), BatchFailureCause::Item(item) if item.index() == 1));
/// assert_eq!(error.partial(), [Some(1), None]);
/// assert_eq!(error.to_string(), "item 1 failed: invalid digit found in string");
/// ```
pub struct BatchError<U> {
    inner: Box<BatchErrorParts<U>>,
}

struct BatchErrorParts<U> {
    cause: BatchFailureCause,
    partial: Vec<Option<U>>,
    report: Option<BatchReport>,
}

/// The reason why a batch did not give results for all items.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BatchFailureCause {
    /// An item failed, and the batch raises failures.
    Item(ItemError),
    /// A limit was reached, or the batch was stopped from outside.
    Stopped(StopCause),
    /// The batch could not start, or no further item could succeed.
    Problem(Problem),
}

impl<U> BatchError<U> {
    pub(super) fn new(
        cause: BatchFailureCause,
        partial: Vec<Option<U>>,
        report: Option<BatchReport>,
    ) -> Self {
        Self { inner: Box::new(BatchErrorParts { cause, partial, report }) }
    }

    /// The reason why the batch ended.
    #[must_use]
    pub fn cause(&self) -> &BatchFailureCause {
        &self.inner.cause
    }

    /// The results so far, in the order of the items; `None` for an item without one.
    #[must_use]
    pub fn partial(&self) -> &[Option<U>] {
        &self.inner.partial
    }

    /// Takes the results out of the error.
    #[must_use]
    pub fn into_partial(self) -> Vec<Option<U>> {
        self.inner.partial
    }

    /// The report of the batch; `None` if it could not start.
    #[must_use]
    pub fn report(&self) -> Option<&BatchReport> {
        self.inner.report.as_ref()
    }
}

impl<U> fmt::Debug for BatchError<U> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let results = self.inner.partial.iter().flatten().count();
        out.debug_struct("BatchError")
            .field("cause", &self.inner.cause)
            .field("results", &results)
            .field("report", &self.inner.report)
            .finish()
    }
}

impl<U> fmt::Display for BatchError<U> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.cause {
            BatchFailureCause::Item(error) => write!(out, "{error}"),
            BatchFailureCause::Stopped(cause) => {
                write!(out, "the batch ended early: {}", failure_text(cause))
            }
            BatchFailureCause::Problem(problem) => {
                write!(out, "{}", problem.message)?;
                problem.cause.iter().try_for_each(|cause| write!(out, ": {cause}"))?;
                problem.hint.iter().try_for_each(|hint| write!(out, " ({hint})"))
            }
        }
    }
}

impl<U> Error for BatchError<U> {}

/// Describes for the user why a batch ended early.
fn failure_text(cause: &StopCause) -> String {
    match cause {
        StopCause::Problem(problem) => problem.message.to_string(),
        StopCause::Interrupted => "it was stopped".into(),
        StopCause::MaxErrors(most) => format!("{most} items failed"),
        StopCause::ErrorRate { failed, ended, allowed } => {
            format!("{failed} of {ended} items failed, above the allowed {} %", allowed * 100.0)
        }
        StopCause::Deadline(after) => format!("its {} s have passed", after.as_secs_f64()),
        StopCause::FirstResult => "it has its first result".into(),
        StopCause::Budget { spent, worst } => format!(
            "{} and {} tokens were spent, and the next call could use {} and {} tokens",
            spent.cost, spent.tokens, worst.cost, worst.tokens
        ),
    }
}
