//! Ports for agents: tools, and hooks that observe or intervene.

use std::any::Any;
use std::fmt::{self, Debug};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_types::{RowId, ToolOutput};

/// One tool call.
#[derive(Debug, Clone, Copy)]
pub struct ToolRequest<'a> {
    /// The row that makes the call.
    pub row: u64,
    /// The id of that row, which identifies it even if rows have moved.
    pub id: &'a RowId,
    /// Identifies the run, the row and the call; the same whenever this call is repeated.
    pub key: &'a str,
    /// The tool, by its name at the host.
    pub tool: &'a str,
    /// The arguments: JSON text of an object that satisfies the tool's schema.
    pub arguments: &'a str,
    /// Whether the tool may run twice; if not, its host never repeats a call on its own.
    pub idempotent: bool,
    /// The time limit of the tool, unless it is left to the host. The host measures the time, because only it knows
    /// when the tool starts: a process may have to be started first.
    pub timeout: Option<Duration>,
}

/// A tool call without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFailure {
    /// What happened: a fragment that follows "the tool failed: " and holds no secret.
    pub message: String,
    /// Whether the tool may have taken effect although it returned nothing.
    pub may_have_run: bool,
}

/// The resources that a call holds; dropping it gives its slot to the next call.
#[derive(Default)]
pub struct ToolPermit(Vec<Box<dyn Any + Send + Sync>>);

impl ToolPermit {
    /// Holds `held` as well, until the permit is dropped.
    pub fn add_resource(&mut self, held: impl Any + Send + Sync) {
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
/// MCP servers, Python functions, the shell and recorded answers are all hosts. One host serves all rows of a run and
/// keeps them apart if its tools have state.
///
/// # Contract
///
/// * Dropping the future cancels the call; the host does what it can to end it.
/// * A host never logs, and puts no secret into what it returns.
/// * If a tool reports a failure, the result is an output with `is_error`; a [`ToolFailure`] means that the tool could
///   not be called or did not answer. A tool that the host does not have counts as one that cannot have run.
pub trait ToolHost: Send + Sync + Debug {
    /// Waits until the call can be made: for its turn, and for a process or a connection to make it with. This does not
    /// count as time of the tool. Nothing has been sent when this returns, so a failure means that the tool cannot have
    /// run.
    ///
    /// A host must also answer calls without a preceding `ready`.
    fn wait_until_ready<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        let _ = request;
        Box::pin(std::future::ready(Ok(ToolPermit::default())))
    }

    /// Calls a tool and waits for its result.
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>>;

    /// The row has ended: resources kept for it alone can be released.
    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        let _ = row;
        Box::pin(std::future::ready(()))
    }

    /// Ends everything that the host started; called once when the run ends. No process of the host is left when this
    /// returns.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookKind {
    /// Before a turn is sent. The hook's text may replace the last message.
    BeforeModel,
    /// After a turn was answered. The hook's text may replace the answer.
    AfterModel,
    /// Before a tool is called. The hook's object may replace the arguments.
    BeforeTool,
    /// After a tool returned a result. The hook's text may replace it.
    AfterTool,
    /// After an agent has given its answer. The hook's text may replace the answer.
    AfterTurn,
}

/// One hook call.
#[derive(Debug, Clone, Copy)]
pub struct HookCall<'a> {
    /// When it is called.
    pub kind: HookKind,
    /// The row concerned.
    pub row: u64,
    /// The agent.
    pub agent: &'a str,
    /// The number of the model call of the row that it concerns, counted from 1.
    pub turn: u32,
    /// The subject: a text, or for tools `{"name": …, "arguments": …, "result": …}`.
    pub about: &'a serde_json::Value,
}

/// Calls hooks.
pub trait HookRunner: Send + Sync + Debug {
    /// Calls the hook of an agent; `None` leaves everything unchanged.
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Option<serde_json::Value>, String>>;
}
