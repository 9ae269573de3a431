//! The agents of a run and their tools, as plain data with its defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rowmill_core::limits::BudgetLimits;
use rowmill_tools::McpServerConfig;
use rowmill_types::{DurationText, duration_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The agents of a run and their tools, as given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentOptions {
    /// Agent cards: files, folders and URLs.
    pub cards: Vec<String>,
    /// The agent to run, if the cards define several.
    pub agent: Option<String>,
    /// Whether the model string was given, and replaces the one in the worker's card.
    pub model_given: bool,
    /// Maximum model calls per row.
    #[schemars(range(min = 1))]
    pub turns: Option<u32>,
    /// Whether to save every finished turn, to continue from there after a crash.
    pub checkpoint_turns: bool,
    /// Whether to retry rows whose tools may have run.
    pub retry_unknown: bool,
    /// Spending limits per row.
    pub row_budget: BudgetLimits,
    /// Tools with recorded answers, as `tool=source`.
    pub stubs: Vec<String>,
    /// Tools whose result is used as the row's result, by names or patterns.
    pub passthrough: Vec<String>,
    /// Tools whose calls are denied, by names or patterns.
    pub deny: Vec<String>,
    /// Folder in which to record tool results, for `--stub`.
    pub record_tools: Option<PathBuf>,
    /// Default timeout for a tool call.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub tool_timeout: Duration,
    /// Maximum bytes of text taken from a tool result.
    #[schemars(range(min = 1))]
    pub tool_result_limit: usize,
    /// Whether the worker may run commands.
    pub shell: bool,
    /// Maximum number of Python processes, if set.
    #[schemars(range(min = 1))]
    pub python_processes: Option<usize>,
    /// Environment variables with model keys that Python functions get nevertheless.
    pub python_env: Vec<String>,
    /// MCP servers of the configuration file.
    pub servers: BTreeMap<String, McpServerConfig>,
    /// Folder of the configuration file.
    pub config_folder: PathBuf,
}

impl Default for AgentOptions {
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
