//! A card as plain data.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use rowmill_core::ports::HookKind;
use rowmill_core::variables::Variables;
use rowmill_types::{Message, Secret};
use serde_json::{Map, Value};

use crate::lines::Lines;
use crate::{
    Filter, FunctionTool, HostedTools, Kind, LifecycleHook, McpConnect, PythonFunction, RequestParams,
    ToolPolicy,
};

/// One agent, as it was written down.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// The name that other cards and `--agent` use.
    pub name: String,
    /// The file or address that it came from, for messages.
    pub source: String,
    /// What it does, with its children by name.
    pub kind: Kind,
    /// The system prompt; `None` where the card has none, or where its type asks no model.
    pub instruction: Option<String>,
    /// What it is good for, told to whoever may choose it.
    pub description: Option<String>,
    /// Whether it is the worker where several could be.
    pub default: bool,
    /// Whether only other agents may use it.
    pub tool_only: bool,
    /// The model string.
    pub model: Option<String>,
    /// The line in which the card names its model.
    pub model_line: Option<u64>,
    /// The key for the model's provider.
    pub api_key: Option<Secret>,
    /// How the model is asked.
    pub request: RequestParams,
    /// Tools that the provider runs.
    pub hosted: HostedTools,
    /// The MCP servers of the configuration that it uses.
    pub servers: Vec<String>,
    /// Which tools of a server are offered; all, if the server is not named.
    pub tools: Filter,
    /// Which resources of a server are offered.
    pub resources: Filter,
    /// Which prompts of a server are offered.
    pub prompts: Filter,
    /// MCP servers that the card brings itself.
    pub mcp_connect: Vec<McpConnect>,
    /// The folders of its skills.
    pub skills: Vec<PathBuf>,
    /// Python functions that are offered as tools.
    pub function_tools: Vec<FunctionTool>,
    /// Functions that are called round model calls and tool calls.
    pub tool_hooks: Vec<(HookKind, PythonFunction)>,
    /// Functions that are called when the run begins and ends.
    pub lifecycle_hooks: Vec<(LifecycleHook, PythonFunction)>,
    /// How calls of some tools are treated, by the name that the model knows a tool by.
    pub tool_policy: Vec<(String, ToolPolicy)>,
    /// Whether it may run commands.
    pub shell: bool,
    /// Where commands run.
    pub cwd: Option<PathBuf>,
    /// The arguments that this agent takes as a tool, a JSON Schema of an object.
    pub tool_input_schema: Option<Map<String, Value>>,
    /// How many of its children may work at once.
    pub max_parallel: Option<NonZeroU32>,
    /// How long a child may work.
    pub child_timeout: Option<Duration>,
    /// Files with messages that go before the row's.
    pub messages: Vec<PathBuf>,
    /// These messages, once they are loaded.
    pub history: Vec<Message>,
    /// The variables of the instruction, with their defaults.
    pub variables: Variables,
    /// Fields that have no meaning in a batch, as the card spells them.
    pub ignored: Vec<String>,
    /// What the card says, without secrets, instruction and what does not shape answers.
    pub shape: Value,
    /// The line of each child's name, in the order of [`Kind::children`].
    pub(crate) child_lines: Vec<u64>,
    /// Where the card says what it says.
    pub(crate) lines: Lines,
}
