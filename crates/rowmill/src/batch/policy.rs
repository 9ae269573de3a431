//! How failures are handled, as a type: it decides what a list of results is made of.

use super::failure::ItemError;

/// How items that fail are handled.
///
/// [`Raise`], [`ReturnNone`] and [`ReturnError`] are all there is.
///
/// ```
/// use rowmill::{Batch, ItemError, Raise, ReturnError, ReturnNone};
///
/// let batch = || Batch::over(["1", "x"]).worker_fn(|item| async move { Ok(item.parse::<u8>()?) });
/// let numbers: Vec<Option<u8>> = batch().on_failure(ReturnNone).run_blocking()?.items;
/// assert_eq!(numbers, [Some(1), None]);
/// let told: Vec<Result<u8, ItemError>> = batch().on_failure(ReturnError).run_blocking()?.items;
/// assert!(told[1].is_err());
/// assert!(batch().on_failure(Raise).run_blocking().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait OnFailure: sealed::Sealed + Send + 'static {
    /// What stands in the place of an item.
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

/// The first failure ends the batch: calls in flight are finished, no further item is taken, and
/// the error holds the results that there are. This is what happens unless something else is
/// said.
#[derive(Debug, Clone, Copy, Default)]
pub struct Raise;

/// An item that fails has `None` in its place, and the batch continues.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReturnNone;

/// An item that fails has its error in its place, and the batch continues.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReturnError;

impl OnFailure for Raise {
    type Slot<U> = U;
}

impl OnFailure for ReturnNone {
    type Slot<U> = Option<U>;
}

impl OnFailure for ReturnError {
    type Slot<U> = Result<U, ItemError>;
}

impl sealed::Sealed for Raise {
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
