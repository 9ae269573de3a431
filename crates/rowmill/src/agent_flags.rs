//! The agents of a run and their tools, as plain data with its defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rowmill_core::limits::BudgetLimits;
use rowmill_tools::McpServerConfig;
use rowmill_types::{TimeText, time_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The agents of a run and their tools, as given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentFlags {
    /// Cards: files, folders and addresses.
    pub cards: Vec<String>,
    /// The card that works on rows, where several could.
    pub agent: Option<String>,
    /// Whether the model string was given, and replaces that of the worker's card.
    pub model_given: bool,
    /// How many model calls a row may make in all.
    #[schemars(range(min = 1))]
    pub turns: Option<u32>,
    /// Whether every finished turn is kept, to go on from after a crash.
    pub checkpoint_turns: bool,
    /// Whether rows are worked on again whose tools may have run.
    pub retry_unknown: bool,
    /// What one row may spend.
    pub row_budget: BudgetLimits,
    /// Tools with recorded answers, as `tool=source`.
    pub stubs: Vec<String>,
    /// Tools whose result is the row's result, by names or patterns.
    pub passthrough: Vec<String>,
    /// Tools that are not called, by names or patterns.
    pub deny: Vec<String>,
    /// A folder that gets what tools give, for `--stub`.
    pub record_tools: Option<PathBuf>,
    /// How long a tool may take, where nothing else says so.
    #[serde(with = "time_text")]
    #[schemars(with = "TimeText")]
    pub tool_timeout: Duration,
    /// The most bytes of text that a tool's result brings into a conversation.
    #[schemars(range(min = 1))]
    pub tool_result_limit: usize,
    /// Whether the worker may run commands.
    pub shell: bool,
    /// The most Python processes at once, where that is said.
    #[schemars(range(min = 1))]
    pub python_processes: Option<usize>,
    /// Keys of models that Python functions get all the same, by the names of their variables.
    pub python_env: Vec<String>,
    /// MCP servers of the configuration file.
    pub servers: BTreeMap<String, McpServerConfig>,
    /// The folder of that file.
    pub config_folder: PathBuf,
}

impl Default for AgentFlags {
    fn default() -> Self {
        Self {
            cards: Vec::new(),
            agent: None,
            model_given: false,
            turns: None,
            checkpoint_turns: false,
            retry_unknown: false,
            row_budget: BudgetLimits::default(),
            stubs: Vec::new(),
            passthrough: Vec::new(),
            deny: Vec::new(),
            record_tools: None,
            tool_timeout: Duration::from_secs(60),
            tool_result_limit: 256 * 1024,
            shell: false,
            python_processes: None,
            python_env: Vec::new(),
            servers: BTreeMap::new(),
            config_folder: PathBuf::new(),
        }
    }
}
