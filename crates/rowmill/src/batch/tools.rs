//! Tools of the program that a worker's model may call.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::agent::{AgentGraphTool, ToolCallAction};
use rowmill_core::ports::ToolHost;
use rowmill_core::validate::ResultSchema;
use rowmill_tools::{CombinedToolHost as Router, HostToolNames};
use rowmill_types::{Problem, ProblemCode, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::failure::FunctionFailure;
use super::tool_functions::StatefulTools;
use super::tool_hosts::{PerItemToolHost, SharedToolHost};

/// The default timeout of a tool.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest name that all providers accept.
const LONGEST_NAME: usize = 64;

/// A tool as a worker offers it to its model.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    spec: ToolSpec,
    idempotent: bool,
    timeout: Duration,
    route: ToolCallAction,
}

impl OfferedTool {
    /// A tool with its name, its description for the model, and the JSON Schema of its arguments, which
    /// must be an object.
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: serde_json::Value) -> Self {
        let spec = ToolSpec { name: name.into(), description: Some(description.into()), schema };
        Self { spec, idempotent: false, timeout: TIMEOUT, route: ToolCallAction::Call }
    }

    /// A tool whose arguments have the type `A`, a struct. The model receives its JSON Schema,
    /// including the doc comments of its fields.
    ///
    /// ```
    /// use rowmill::OfferedTool;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct LookUp {
    ///     /// The number on the invoice.
    ///     customer: u32,
    /// }
    ///
    /// let tool = OfferedTool::from_argument_type::<LookUp>("look_up", "Finds a customer.");
    /// let schema = tool.schema();
    /// assert_eq!(schema["properties"]["customer"]["description"], "The number on the invoice.");
    /// ```
    pub fn from_argument_type<A: JsonSchema>(
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<A>();
        Self::new(name, description, schema.to_value())
    }

    /// Declares that the tool may run twice for one call: it is run again if it is unknown whether it
    /// ran.
    #[must_use]
    pub fn mark_idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Sets the timeout of a call; the default is one minute.
    #[must_use]
    pub fn timeout(mut self, most: Duration) -> Self {
        self.timeout = most;
        self
    }

    /// Makes the output of the tool the answer; the model is not called again.
    #[must_use]
    pub fn use_output_as_answer(mut self) -> Self {
        self.route = ToolCallAction::Passthrough;
        self
    }

    /// The name by which the model calls the tool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The JSON Schema of the arguments.
    #[must_use]
    pub fn schema(&self) -> &serde_json::Value {
        &self.spec.schema
    }

    fn tool(&self) -> Result<AgentGraphTool, Problem> {
        let ToolSpec { name, schema, .. } = &self.spec;
        let usual = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(usual) {
            let message = format!("`{name}` cannot be the name of a tool");
            return Err(Problem::new(ProblemCode::Usage, message)
                .hint(format!("use up to {LONGEST_NAME} letters, digits, `_` and `-`")));
        }
        if schema.get("type").and_then(serde_json::Value::as_str) != Some("object") {
            let message = format!("the arguments of the tool `{name}` are not an object");
            return Err(Problem::new(ProblemCode::Usage, message)
                .hint("make them a struct with named fields, or a schema with `\"type\": \"object\"`"));
        }
        Ok(AgentGraphTool {
            spec: self.spec.clone(),
            host_name: name.clone(),
            arguments: Some(ResultSchema::parse(&schema.to_string(), name)?),
            route: self.route,
            idempotent: self.idempotent,
            timeout: self.timeout,
        })
    }
}

/// Where the host of a set of tools comes from.
#[derive(Clone)]
enum HostSource {
    /// The program created it, and all batches that use it share it.
    Given(Arc<dyn ToolHost>),
    /// Created for every batch, so that two batches never share its state.
    Made(Arc<dyn Fn() -> Arc<dyn ToolHost> + Send + Sync>),
}

/// Tools that share a host.
#[derive(Clone)]
struct ToolGroup {
    offered: Vec<OfferedTool>,
    host: HostSource,
}

/// The tools of a worker: what its model is offered, and which host runs the calls.
///
/// Tools are functions of the program ([`WorkerTools::add_function`], [`WorkerTools::with_state`]) or come from your
/// own [`ToolHost`] ([`WorkerTools::from_host`], [`WorkerTools::per_item`]); [`WorkerTools::and`] combines several kinds.
/// Names must be unique among all tools of a worker.
///
/// ```
/// use rowmill::{Batch, WorkerTools, Worker};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct LookUp {
///     id: u32,
/// }
///
/// let tools = WorkerTools::none().add_function("look_up", "Finds a customer by id.", |args: LookUp| async move {
///     Ok(format!("customer {} lives in Bergen", args.id))
/// });
/// // The built-in model `passthrough` calls the tool that the prompt names.
/// let results = Batch::over([7, 8])
///     .prompt(|id| format!(r#"***CALL_TOOL look_up {{"id": {id}}}"#))
///     .worker(Worker::from_model_name("passthrough").tools(tools))
///     .run_blocking()?;
/// assert_eq!(results.items, ["customer 7 lives in Bergen", "customer 8 lives in Bergen"]);
/// # Ok::<(), rowmill::BatchError<String>>(())
/// ```
#[derive(Clone, Default)]
pub struct WorkerTools {
    sets: Vec<ToolGroup>,
}

impl WorkerTools {
    /// An empty set of tools; [`WorkerTools::add_function`] adds to it.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds an async function of the program as a tool. The JSON Schema of its arguments is derived
    /// from their type, which is a struct, and calls whose arguments violate it never reach the
    /// function.
    ///
    /// The return value of the function goes to the model: a text, or a [`ToolOutput`], which can also
    /// be the result of the item ([`ToolOutput::final_result`]: the model is not called again) or a failure
    /// that is reported to the model ([`ToolOutput::error`]). An `Err` is such a failure, too, so `?`
    /// works on every error. A panic is the failure of this item only.
    ///
    /// It runs on the same threads as functions of [`Batch::worker_fn`](super::Batch::worker_fn):
    /// computing is fine, blocking code belongs in `tokio::task::spawn_blocking`. One call may take a
    /// minute; use [`WorkerTools::add_tool`] to change that.
    pub fn add_function<A, R, F, Fut>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Into<ToolOutput>,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, FunctionFailure>> + Send + 'static,
    {
        self.add_tool(OfferedTool::from_argument_type::<A>(name, description), function)
    }

    /// Adds an async function with the settings of an [`OfferedTool`]: its own timeout, another schema,
    /// or permission to run twice.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rowmill::{OfferedTool, WorkerTools};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Page {
    ///     url: String,
    /// }
    ///
    /// let offered = OfferedTool::from_argument_type::<Page>("read_page", "Reads a page.")
    ///     .timeout(Duration::from_secs(5))
    ///     .mark_idempotent();
    /// let tools = WorkerTools::none().add_tool(offered, |page: Page| async move { Ok(page.url) });
    /// # drop(tools);
    /// ```
    pub fn add_tool<A, R, F, Fut>(self, offered: OfferedTool, function: F) -> Self
    where
        A: DeserializeOwned,
        R: Into<ToolOutput>,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, FunctionFailure>> + Send + 'static,
    {
        self.and(StatefulTools::new(|_| ()).add_tool(offered, move |_, arguments| function(arguments)))
    }

    /// Creates tools with a separate state for every item: `make` creates it from the index of the
    /// item, when the item calls one of the tools for the first time. All calls of the item share this
    /// state, and it is dropped when the item has ended. Calls of one turn are made concurrently, in no
    /// order.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use std::sync::Arc;
    /// use rowmill::{Batch, WorkerTools, Worker};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Nothing {}
    ///
    /// let tools = WorkerTools::with_state(|_index| AtomicU32::new(0)).add_function(
    ///     "count",
    ///     "Counts its calls.",
    ///     |calls: Arc<AtomicU32>, _: Nothing| async move {
    ///         Ok(format!("call {}", calls.fetch_add(1, Ordering::Relaxed) + 1))
    ///     },
    /// );
    /// let results = Batch::over(["***CALL_TOOL count\n***CALL_TOOL count"; 2])
    ///     .prompt(|item| *item)
    ///     .worker(Worker::from_model_name("passthrough").tools(tools))
    ///     .run_blocking()?;
    /// for told in results {
    ///     assert!(told.contains("call 1") && told.contains("call 2"), "{told}");
    /// }
    /// # Ok::<(), rowmill::BatchError<String>>(())
    /// ```
    pub fn with_state<S, F>(make: F) -> StatefulTools<S>
    where
        S: Send + Sync + 'static,
        F: Fn(usize) -> S + Send + Sync + 'static,
    {
        StatefulTools::new(make)
    }

    /// Uses the tools of your own host, which serves all items and must separate them if necessary. It
    /// is closed when the batch has ended. Several batches can share a host that still works after
    /// that, if its tools do not depend on row numbers being unique across batches.
    pub fn from_host(host: impl ToolHost + 'static, offered: Vec<OfferedTool>) -> Self {
        Self::one(offered, HostSource::Given(Arc::new(host)))
    }

    /// Creates a host for every item from the index of the item, so that the state of the host belongs
    /// to that item alone. The host is closed when the item has ended.
    ///
    /// ```
    /// use rowmill::extend::{BoxFuture, ToolFailure, ToolHost, ToolRequest};
    /// use rowmill::{Batch, OfferedTool, ToolOutput, WorkerTools, Worker};
    ///
    /// #[derive(Debug)]
    /// struct Seat(usize);
    ///
    /// impl ToolHost for Seat {
    ///     fn call<'a>(&'a self, _: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
    ///         Box::pin(async { Ok(ToolOutput::from_text(self.0.to_string())) })
    ///     }
    /// }
    ///
    /// let offered = OfferedTool::new("place", "Tells the place.", serde_json::json!({"type": "object"}));
    /// let worker = Worker::from_model_name("passthrough").tools(WorkerTools::per_item(Seat, vec![offered]));
    /// let batch = Batch::over(["***CALL_TOOL place"; 2]).prompt(|item| *item).worker(worker);
    /// assert_eq!(batch.run_blocking()?.items, ["0", "1"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn per_item<H, F>(make: F, offered: Vec<OfferedTool>) -> Self
    where
        H: ToolHost + 'static,
        F: Fn(usize) -> H + Send + Sync + 'static,
    {
        let make = Arc::new(move |index| Arc::new(make(index)) as Arc<dyn ToolHost>);
        Self::from_host_maker(offered, move || Arc::new(PerItemToolHost::new(Arc::clone(&make) as _)))
    }

    /// Combines these tools with others.
    ///
    /// ```
    /// # use rowmill::WorkerTools;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Nothing {}
    /// let clock = WorkerTools::none().add_function("clock", "Tells the time.", |_: Nothing| async { Ok("noon") });
    /// let notes = WorkerTools::with_state(|_| std::sync::Mutex::new(Vec::<String>::new()))
    ///     .add_function("notes", "Reads the notes.", |notes, _: Nothing| async move {
    ///         Ok(notes.lock().map_err(|_| rowmill::FunctionFailure::new("the notes are lost"))?.join("\n"))
    ///     });
    /// let both = clock.and(notes);
    /// assert_eq!(both.names(), ["clock", "notes"]);
    /// ```
    #[must_use]
    pub fn and(mut self, others: impl Into<Self>) -> Self {
        self.sets.extend(others.into().sets);
        self
    }

    /// The names of all tools.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.offered().map(OfferedTool::name).collect()
    }

    pub(super) fn from_host_maker<F>(offered: Vec<OfferedTool>, make: F) -> Self
    where
        F: Fn() -> Arc<dyn ToolHost> + Send + Sync + 'static,
    {
        Self::one(offered, HostSource::Made(Arc::new(make)))
    }

    fn one(offered: Vec<OfferedTool>, host: HostSource) -> Self {
        Self { sets: vec![ToolGroup { offered, host }] }
    }

    fn offered(&self) -> impl Iterator<Item = &OfferedTool> {
        self.sets.iter().flat_map(|set| &set.offered)
    }

    /// Sets up the tools for a batch.
    pub(super) fn prepare(&self) -> Result<ReadyTools, Problem> {
        let mut seen = HashSet::new();
        if let Some(twice) = self.names().into_iter().find(|name| !seen.insert(*name)) {
            return Err(Problem::new(ProblemCode::Usage, format!("two tools have the name `{twice}`"))
                .hint("use a different name for each tool of a worker"));
        }
        let tools = self.offered().map(OfferedTool::tool).collect::<Result<_, _>>()?;
        let (mut hosts, mut given) = (Vec::new(), Vec::new());
        for ToolGroup { offered, host } in &self.sets {
            let names = offered.iter().map(|tool| HostToolNames::Exact(tool.spec.name.clone())).collect();
            let host = match host {
                HostSource::Made(make) => make(),
                HostSource::Given(host) => {
                    given.push(Arc::clone(host));
                    Arc::new(SharedToolHost(Arc::clone(host)))
                }
            };
            hosts.push((names, host));
        }
        Ok(ReadyTools {
            tools,
            specs: self.offered().map(|offered| offered.spec.clone()).collect(),
            host: Arc::new(Router::new(hosts)),
            given,
        })
    }
}

/// Tools that are set up for a batch.
pub(super) struct ReadyTools {
    pub(super) tools: Vec<AgentGraphTool>,
    pub(super) specs: Vec<ToolSpec>,
    /// Runs the calls. Closing it leaves open the hosts that the program passed in.
    pub(super) host: Arc<dyn ToolHost>,
    /// Those hosts, to be closed when the batch has ended.
    pub(super) given: Vec<Arc<dyn ToolHost>>,
}

impl fmt::Debug for WorkerTools {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tools").field("offered", &self.names()).finish_non_exhaustive()
    }
}
