//! Functions of the program as tools, with a state for every item.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_types::ToolOutput;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::failure::FunctionFailure;
use super::function_runner::FunctionRunner;
use super::item_table::item_index;
use super::result_collector::lock_unpoisoned;
use super::tools::{OfferedTool, WorkerTools};

/// Creates the state of an item.
type MakeStateFn<S> = Arc<dyn Fn(usize) -> S + Send + Sync>;
/// Calls a function with the state of an item and the JSON text of the arguments.
type CallFn<S> = Arc<dyn Fn(Arc<S>, &str) -> BoxFuture<'static, ToolOutput> + Send + Sync>;

/// Functions that share a separate state for every item; created with [`WorkerTools::with_state`].
///
/// A function receives the state as an [`Arc`], because a model may call several tools at once: wrap
/// mutable parts in an atomic or a mutex. The state is kept in memory only, so an item that is resumed
/// after a crash, with [`Batch::checkpoint_turns`](super::Batch::checkpoint_turns), starts with a new
/// one.
///
/// It can be used wherever [`WorkerTools`] are expected.
pub struct StatefulTools<S> {
    make: MakeStateFn<S>,
    functions: Vec<(OfferedTool, CallFn<S>)>,
}

impl<S: Send + Sync + 'static> StatefulTools<S> {
    pub(super) fn new(make: impl Fn(usize) -> S + Send + Sync + 'static) -> Self {
        Self { make: Arc::new(make), functions: Vec::new() }
    }

    /// Adds an async function that takes the state and the arguments. Everything else is as with
    /// [`WorkerTools::add_function`].
    pub fn add_function<A, R, F, Fut>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Into<ToolOutput>,
        F: Fn(Arc<S>, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, FunctionFailure>> + Send + 'static,
    {
        self.add_tool(OfferedTool::from_argument_type::<A>(name, description), function)
    }

    /// Adds an async function with the settings of an [`OfferedTool`], as [`WorkerTools::add_tool`] does.
    pub fn add_tool<A, R, F, Fut>(mut self, offered: OfferedTool, function: F) -> Self
    where
        A: DeserializeOwned,
        R: Into<ToolOutput>,
        F: Fn(Arc<S>, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, FunctionFailure>> + Send + 'static,
    {
        let call: CallFn<S> = Arc::new(move |state, arguments| match serde_json::from_str(arguments) {
            Err(error) => {
                ready(ToolOutput::error(format!("the arguments do not match the tool: {error}"))).boxed()
            }
            Ok(arguments) => {
                let calling = function(state, arguments);
                let error_output = |failure: FunctionFailure| ToolOutput::error(failure.message());
                calling.map(move |given| given.map_or_else(error_output, Into::into)).boxed()
            }
        });
        self.functions.push((offered, call));
        self
    }
}

impl<S> fmt::Debug for StatefulTools<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.functions.iter().map(|(offered, _)| offered.name()).collect();
        out.debug_struct("StatefulTools").field("functions", &names).finish_non_exhaustive()
    }
}

impl<S: Send + Sync + 'static> From<StatefulTools<S>> for WorkerTools {
    fn from(tools: StatefulTools<S>) -> Self {
        let StatefulTools { make, functions } = tools;
        let offered = functions.iter().map(|(offered, _)| offered.clone()).collect();
        let named = functions.into_iter().map(|(offered, call)| (offered.name().to_owned(), call));
        let functions: Arc<HashMap<_, _>> = Arc::new(named.collect());
        Self::from_host_maker(offered, move || {
            let (make, functions) = (Arc::clone(&make), Arc::clone(&functions));
            let states = Arc::new(ItemStates { make, states: Mutex::default() });
            Arc::new(FunctionHost { functions, states, runner: Arc::default() })
        })
    }
}

/// The states of items.
struct ItemStates<S> {
    make: MakeStateFn<S>,
    states: Mutex<HashMap<u64, Arc<OnceLock<Arc<S>>>>>,
}

impl<S> ItemStates<S> {
    fn of(&self, row: u64) -> Arc<S> {
        let state = Arc::clone(lock_unpoisoned(&self.states).entry(row).or_default());
        // Created without the lock, because the program's own code runs then.
        Arc::clone(state.get_or_init(|| Arc::new((self.make)(item_index(row)))))
    }
}

/// Calls functions with the state of their item.
struct FunctionHost<S> {
    functions: Arc<HashMap<String, CallFn<S>>>,
    states: Arc<ItemStates<S>>,
    runner: Arc<FunctionRunner>,
}

impl<S> fmt::Debug for FunctionHost<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "FunctionHost({} functions)", self.functions.len())
    }
}

impl<S: Send + Sync + 'static> ToolHost for FunctionHost<S> {
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async move {
            let Some(function) = self.functions.get(request.tool) else {
                let message = format!("there is no tool `{}`", request.tool);
                return Err(ToolFailure { message, may_have_run: false });
            };
            let (function, states) = (Arc::clone(function), Arc::clone(&self.states));
            let (row, arguments) = (request.row, request.arguments.to_owned());
            let calling = self.runner.call(move || function(states.of(row), &arguments));
            let Some(most) = request.timeout else { return Ok(calling.await) };
            tokio::time::timeout(most, calling).await.map_err(|_| ToolFailure {
                message: format!("it did not answer within {} s", most.as_secs_f64()),
                may_have_run: true,
            })
        })
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        // Dropped without the lock, because the program's own code runs then.
        let state = lock_unpoisoned(&self.states.states).remove(&row);
        drop(state);
        ready(()).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let states = std::mem::take(&mut *lock_unpoisoned(&self.states.states));
        drop(states);
        ready(()).boxed()
    }
}

#[cfg(test)]
#[path = "tool_functions_tests.rs"]
mod tests;
