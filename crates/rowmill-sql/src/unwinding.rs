//! Keeps panics out of SQLite, which is C: one that reached it would end the process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rowmill_types::{Problem, ProblemCode};

/// Runs work that SQLite calls.
///
/// # Errors
///
/// The error of the work, or its panic.
pub(crate) fn catch_unwind_for_sqlite<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Problem::new(ProblemCode::Internal, "reading the input panicked")))
}
