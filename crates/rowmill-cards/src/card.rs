//! A card as plain data.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use rowmill_core::ports::HookKind;
use rowmill_core::variables::InstructionVariables;
use rowmill_types::{Message, Secret};
use serde_json::{Map, Value};

use crate::field_lines::FieldLines;
use crate::{
    CardMcpServer, CardPythonTool, CardTypeSettings, HostedTools, LifecycleHook, PythonFunctionReference,
    RequestParams, ServerItemFilters, ToolPolicy,
};

/// One agent, as described by its card.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCard {
    /// The name that other cards and `--agent` use.
    pub name: String,
    /// The file or address that the card was loaded from, for messages.
    pub source: String,
    /// The type-specific settings, with the children by name.
    pub kind: CardTypeSettings,
    /// The system prompt; `None` if the card has none, or if its type calls no model.
    pub instruction: Option<String>,
    /// A description for models and people that choose between agents.
    pub description: Option<String>,
    /// Whether this agent is the worker if several could be.
    pub default: bool,
    /// Whether only other agents may use it.
    pub tool_only: bool,
    /// The model string.
    pub model: Option<String>,
    /// The line of the card in which the model is set.
    pub model_line: Option<u64>,
    /// The API key for the model's provider.
    pub api_key: Option<Secret>,
    /// The settings of requests.
    pub request: RequestParams,
    /// Tools that run at the provider.
    pub hosted: HostedTools,
    /// The MCP servers of the configuration that the agent uses.
    pub servers: Vec<String>,
    /// Which tools of a server are offered; all if the server is not listed.
    pub tools: ServerItemFilters,
    /// Which resources of a server are offered.
    pub resources: ServerItemFilters,
    /// Which prompts of a server are offered.
    pub prompts: ServerItemFilters,
    /// MCP servers that the card defines itself.
    pub mcp_connect: Vec<CardMcpServer>,
    /// The folders of the agent's skills.
    pub skills: Vec<PathBuf>,
    /// Python functions that are offered as tools.
    pub function_tools: Vec<CardPythonTool>,
    /// Functions that are called before and after model calls and tool calls.
    pub tool_hooks: Vec<(HookKind, PythonFunctionReference)>,
    /// Functions that are called when the run starts and ends.
    pub lifecycle_hooks: Vec<(LifecycleHook, PythonFunctionReference)>,
    /// How calls of some tools are handled, by the name that the model knows a tool by.
    pub tool_policy: Vec<(String, ToolPolicy)>,
    /// Whether the agent may run shell commands.
    pub shell: bool,
    /// The folder in which commands run.
    pub cwd: Option<PathBuf>,
    /// The arguments that this agent takes as a tool, as a JSON Schema of an object.
    pub tool_input_schema: Option<Map<String, Value>>,
    /// The maximum number of children that work at once.
    pub max_parallel: Option<NonZeroU32>,
    /// The timeout of a child.
    pub child_timeout: Option<Duration>,
    /// Files with messages that precede the message of the row.
    pub messages: Vec<PathBuf>,
    /// These messages, once they are loaded.
    pub history: Vec<Message>,
    /// The variables of the instruction, with their defaults.
    pub variables: InstructionVariables,
    /// Fields that have no effect in a batch, as the card spells them.
    pub ignored: Vec<String>,
    /// The fields that shape answers, without secrets and without the instruction.
    pub shape: Value,
    /// The line of each child's name, in the order of [`CardTypeSettings::children`].
    pub(crate) child_lines: Vec<u64>,
    /// The lines of the fields, for messages.
    pub(crate) lines: FieldLines,
}
