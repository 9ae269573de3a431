//! What an agent may use, as its card says it.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::PythonFunction;

/// Which items of a server are offered: the server, and the names or patterns of the items.
pub type Filter = Vec<(String, Vec<String>)>;

/// A Python function that is offered as a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionTool {
    /// The function.
    pub entrypoint: PythonFunction,
    /// For a tool that takes a program, how it takes it.
    pub code: Option<CodeTool>,
    /// Whether it may run twice with the same arguments.
    pub idempotent: bool,
}

/// A tool that takes a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeTool {
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

/// Tools that the provider runs; `None` leaves them as the model string says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostedTools {
    /// Searching the web.
    pub web_search: Option<bool>,
    /// Reading pages of the web.
    pub web_fetch: Option<bool>,
    /// Searching X.
    pub x_search: Option<bool>,
}

/// How calls of one tool are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolPolicy {
    /// Where a call goes.
    pub route: ToolRoute,
    /// Whether the tool may run twice with the same arguments; `None` leaves it as its server or
    /// function says.
    pub idempotent: Option<bool>,
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// How many calls of it are made at once, over all rows.
    pub max_parallel: Option<NonZeroU32>,
}

/// Where a call of a tool goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolRoute {
    /// To the tool, and what it gives to the model.
    #[default]
    Call,
    /// Nowhere: the model is told that it may not.
    Deny,
    /// To the tool, and what it gives is the agent's answer, without another turn.
    Passthrough,
}
