//! What agents need from the outside: tools, and hooks that look on or step in.

use std::any::Any;
use std::fmt::{self, Debug};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_types::{RowId, ToolOutput};

/// One call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolRequest<'a> {
    /// The row that it is for.
    pub row: u64,
    /// The id of that row, by which it is known again although rows may have moved.
    pub id: &'a RowId,
    /// Names the run, the row and the call; the same whenever this call is made again.
    pub key: &'a str,
    /// The tool, by the name that its host knows it by.
    pub tool: &'a str,
    /// The arguments: JSON text of an object that satisfies the tool's schema.
    pub arguments: &'a str,
    /// Whether the tool may run twice; if not, its host never calls it again by itself.
    pub idempotent: bool,
    /// How long the tool may take, where that is not left to its host. The host keeps the time,
    /// because only it knows when the tool begins: a process may have to be started first.
    pub timeout: Option<Duration>,
}

/// A call of a tool that gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFailure {
    /// What happened: a fragment that reads after "the tool failed: " and holds no secret.
    pub message: String,
    /// Whether the tool may have taken effect although nothing came back.
    pub maybe_ran: bool,
}

/// What a call holds while it is made; dropping it gives its place to the next call.
#[derive(Default)]
pub struct ToolPermit(Vec<Box<dyn Any + Send + Sync>>);

impl ToolPermit {
    /// Holds this as well, until the permit is dropped.
    pub fn hold(&mut self, held: impl Any + Send + Sync) {
        self.0.push(Box::new(held));
    }
}

impl Debug for ToolPermit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ToolPermit({} held)", self.0.len())
    }
}

/// Calls tools.
///
/// MCP servers, Python functions, the shell and recorded answers are all hosts. One host
/// serves all rows of a run, and keeps them apart where its tools have state.
///
/// # Contract
///
/// * Dropping the future gives the call up; the host does what it can to end it.
/// * It never logs, and puts no secret into what it returns.
/// * A tool that says it failed is an output with `is_error`; a [`ToolFailure`] means that
///   the tool could not be asked or did not answer. A tool that the host does not have is one
///   that cannot have run.
pub trait ToolHost: Send + Sync + Debug {
    /// Waits until the call can be made: until it is its turn, and until there is a process or a
    /// connection to make it with. None of this is the tool's time. Nothing of the call has left
    /// when this returns, so a failure means that the tool cannot have run.
    ///
    /// A host that nobody asked to be ready must still answer calls.
    fn ready<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        let _ = request;
        Box::pin(std::future::ready(Ok(ToolPermit::default())))
    }

    /// Calls a tool and waits for what it gives.
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>>;

    /// The row has ended: what was kept for it alone can go.
    fn release(&self, row: u64) -> BoxFuture<'_, ()> {
        let _ = row;
        Box::pin(std::future::ready(()))
    }

    /// Ends everything that the host started; called once when the run ends. No process of the
    /// host is left when this returns.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookKind {
    /// Before a turn is sent. Its text may replace the last message.
    BeforeModel,
    /// After a turn was answered. Its text may replace the answer.
    AfterModel,
    /// Before a tool is called. Its object may replace the arguments.
    BeforeTool,
    /// After a tool gave something. Its text may replace it.
    AfterTool,
    /// After an agent has given its answer. Its text may replace the answer.
    AfterTurn,
}

/// One call of a hook.
#[derive(Debug, Clone, Copy)]
pub struct HookCall<'a> {
    /// When.
    pub kind: HookKind,
    /// The row that it is for.
    pub row: u64,
    /// The agent.
    pub agent: &'a str,
    /// Which model call of the row it is about, counted from 1.
    pub turn: u32,
    /// What it is about: a text, or for tools `{"name": …, "arguments": …, "result": …}`.
    pub about: &'a serde_json::Value,
}

/// Calls hooks.
pub trait Hooks: Send + Sync + Debug {
    /// Calls the hook of an agent; `None` leaves everything as it is.
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Option<serde_json::Value>, String>>;
}
