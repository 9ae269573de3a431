//! Wraps a function of the program as a model for the engine.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::ports::Model;
use rowmill_engine::panic_message;
use rowmill_types::{CallError, CallFailure, Completion, Request};

use super::builder::EncodeFn;
use super::failure::FunctionFailure;
use super::function_runner::FunctionRunner;
use super::item::BatchItem;
use super::item_table::ItemTable;

/// Stands for an answer that waits in the item table.
const ANSWER_IN_ITEM_TABLE: &str = "null";

/// A function that works on items.
pub(super) type WorkFn<T, A> =
    Arc<dyn Fn(BatchItem<T>) -> BoxFuture<'static, Result<A, FunctionFailure>> + Send + Sync>;

/// Answers rows with a function. The answer is kept in the item table, unless it goes to a ledger.
pub(super) struct FunctionModel<T, A, U> {
    pub(super) work: WorkFn<T, A>,
    pub(super) item_table: Arc<ItemTable<T, A, U>>,
    /// How answers become JSON, if they are stored.
    pub(super) encode: Option<EncodeFn<A>>,
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
            let Some(item) = self.item_table.item(request.row) else {
                return Err(CallError::new(CallFailure::Internal, "the item is gone"));
            };
            let work = Arc::clone(&self.work);
            // A panic is a defect of the function, and is reported as one.
            let working = AssertUnwindSafe(self.runner.call(move || work(item))).catch_unwind();
            let answer = working.await.unwrap_or_else(|panic| {
                Err(FunctionFailure::new(format!("the worker panicked: {}", panic_message(&*panic))))
            });
            let answer = answer.map_err(call_error)?;
            match self.encode {
                Some(encode) => encode(&answer).map(Completion::from_text).map_err(|what| {
                    CallError::new(CallFailure::Function, format!("the answer is not JSON: {what}"))
                }),
                None => {
                    self.item_table.put_answer(request.row, answer);
                    Ok(Completion::from_text(ANSWER_IN_ITEM_TABLE))
                }
            }
        })
    }
}

fn call_error(failure: FunctionFailure) -> CallError {
    let kind = if failure.is_temporary() { CallFailure::FunctionBusy } else { CallFailure::Function };
    CallError::new(kind, failure.message())
}
