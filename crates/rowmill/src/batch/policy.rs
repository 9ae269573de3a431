//! How failures are handled, as a type parameter that decides the type of the results.

use super::failure::ItemError;

/// How failed items are handled.
///
/// [`StopAtFirstFailure`], [`ReturnNone`] and [`ReturnError`] are the only implementations.
///
/// ```
/// use rowmill::{Batch, ItemError, StopAtFirstFailure, ReturnError, ReturnNone};
///
/// let batch = || Batch::over(["1", "x"]).worker_fn(|item| async move { Ok(item.parse::<u8>()?) });
/// let numbers: Vec<Option<u8>> = batch().on_failure(ReturnNone).run_blocking()?.items;
/// assert_eq!(numbers, [Some(1), None]);
/// let told: Vec<Result<u8, ItemError>> = batch().on_failure(ReturnError).run_blocking()?.items;
/// assert!(told[1].is_err());
/// assert!(batch().on_failure(StopAtFirstFailure).run_blocking().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait OnFailure: sealed::Sealed + Send + 'static {
    /// The type of one entry in the list of results.
    type Slot<U>;
}

pub(super) mod sealed {
    use super::ItemError;

    pub trait Sealed {
        /// Whether the first failure ends the batch.
        const RAISES: bool;

        fn slot<U>(result: Result<U, ItemError>) -> Option<<Self as super::OnFailure>::Slot<U>>
        where
            Self: super::OnFailure;
    }
}

/// The first failure ends the batch: calls in flight are finished, no further item is started, and the
/// error holds the results so far. This is the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct StopAtFirstFailure;

/// A failed item has `None` as its result, and the batch continues.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReturnNone;

/// A failed item has its error as its result, and the batch continues.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReturnError;

impl OnFailure for StopAtFirstFailure {
    type Slot<U> = U;
}

impl OnFailure for ReturnNone {
    type Slot<U> = Option<U>;
}

impl OnFailure for ReturnError {
    type Slot<U> = Result<U, ItemError>;
}

impl sealed::Sealed for StopAtFirstFailure {
    const RAISES: bool = true;

    fn slot<U>(result: Result<U, ItemError>) -> Option<U> {
        result.ok()
    }
}

impl sealed::Sealed for ReturnNone {
    const RAISES: bool = false;

    fn slot<U>(result: Result<U, ItemError>) -> Option<Option<U>> {
        Some(result.ok())
    }
}

impl sealed::Sealed for ReturnError {
    const RAISES: bool = false;

    fn slot<U>(result: Result<U, ItemError>) -> Option<Result<U, ItemError>> {
        Some(result)
    }
}
