//! Wraps a function of the program as a model for the engine.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::ports::Model;
use rowmill_engine::said;
use rowmill_types::{CallError, CallFailure, Completion, Request};

use super::builder::Encode;
use super::failure::Failure;
use super::function_runner::FunctionRunner;
use super::item::Item;
use super::shelf::Shelf;

/// Stands for an answer that waits in the item table.
const ON_THE_SHELF: &str = "null";

/// A function that works on items.
pub(super) type WorkFn<T, A> = Arc<dyn Fn(Item<T>) -> BoxFuture<'static, Result<A, Failure>> + Send + Sync>;

/// Answers rows with a function. The answer is kept in the item table, unless it goes to a ledger.
pub(super) struct FunctionModel<T, A, U> {
    pub(super) work: WorkFn<T, A>,
    pub(super) shelf: Arc<Shelf<T, A, U>>,
    /// How answers become JSON, if they are stored.
    pub(super) encode: Option<Encode<A>>,
    pub(super) runner: Arc<FunctionRunner>,
}

impl<T, A, U> fmt::Debug for FunctionModel<T, A, U> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FunctionModel")
    }
}

impl<T, A, U> Model for FunctionModel<T, A, U>
where
    T: Send + Sync + 'static,
    A: Send + 'static,
    U: Send + 'static,
{
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(async move {
            let Some(item) = self.shelf.item(request.row) else {
                return Err(CallError::new(CallFailure::Internal, "the item is gone"));
            };
            let work = Arc::clone(&self.work);
            // A panic is a defect of the function, and is reported as one.
            let working = AssertUnwindSafe(self.runner.call(move || work(item))).catch_unwind();
            let answer = working
                .await
                .unwrap_or_else(|panic| Err(Failure::new(format!("the worker panicked: {}", said(&*panic)))));
            let answer = answer.map_err(call_error)?;
            match self.encode {
                Some(encode) => encode(&answer).map(Completion::of_text).map_err(|what| {
                    CallError::new(CallFailure::Function, format!("the answer is not JSON: {what}"))
                }),
                None => {
                    self.shelf.put_answer(request.row, answer);
                    Ok(Completion::of_text(ON_THE_SHELF))
                }
            }
        })
    }
}

fn call_error(failure: Failure) -> CallError {
    let kind = if failure.is_temporary() { CallFailure::FunctionBusy } else { CallFailure::Function };
    CallError::new(kind, failure.message())
}
