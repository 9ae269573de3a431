//! What an agent may use according to its card.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::PythonFunctionReference;

/// Which items of a server are offered: the server, and the names or patterns of the items.
pub type ServerItemFilters = Vec<(String, Vec<String>)>;

/// A Python function that is offered as a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardPythonTool {
    /// The function.
    pub entrypoint: PythonFunctionReference,
    /// For a tool that takes a program, how it takes it.
    pub code: Option<CodeArgument>,
    /// Whether the function may run twice with the same arguments.
    pub idempotent: bool,
}

/// A tool that takes a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeArgument {
    /// The argument that holds the program.
    pub argument: String,
    /// The language of the program.
    pub language: String,
}

/// When a lifecycle hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleHook {
    /// Before the first row.
    OnStart,
    /// After the last row.
    OnShutdown,
}

/// Tools that run at the provider; `None` leaves the choice to the model string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostedTools {
    /// Web search.
    pub web_search: Option<bool>,
    /// Fetching web pages.
    pub web_fetch: Option<bool>,
    /// Search on X.
    pub x_search: Option<bool>,
}

/// How calls of one tool are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolPolicy {
    /// Where a call goes.
    pub route: CardToolCallAction,
    /// Whether the tool may run twice with the same arguments; `None` leaves this to its server or
    /// function.
    pub idempotent: Option<bool>,
    /// The timeout of a call.
    pub timeout: Option<Duration>,
    /// The maximum number of parallel calls of the tool, over all rows.
    pub max_parallel: Option<NonZeroU32>,
}

/// Where a tool call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CardToolCallAction {
    /// To the tool, and its output to the model.
    #[default]
    Call,
    /// Nowhere: the model is informed that the call is not allowed.
    Deny,
    /// To the tool, and its output becomes the agent's answer, without another turn.
    Passthrough,
}
