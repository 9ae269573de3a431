//! Foreign code that runs on our threads: a panic in it is a problem that stops the run.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rowmill_types::{Problem, ProblemCode};

/// Runs `work`. A panic becomes a problem; `what` says where it happened.
///
/// State that `work` changes must not be used again after a panic.
pub(crate) fn catch_panic<T>(what: &str, work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Problem::new(ProblemCode::Internal, what).cause(text.unwrap_or("a panic without a message")))
    })
}
