//! The flags of agents and their tools. Their texts are the reference manual.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rowmill::{AgentOptions as Spec, BudgetLimits, ConfigFile, Money, Problem};

use crate::flag_values::{parse_dollars, parse_duration, parse_positive};
use crate::resolve::usage_problem;

/// Agents and their tools.
#[derive(Debug, Args)]
pub(crate) struct AgentFlags {
    /// Agent card: a file, a folder of cards, or a URL; repeatable.
    ///
    /// A card is YAML, or Markdown with YAML in front. It defines an agent with its instruction,
    /// model, tools and MCP servers, or a workflow of other agents. `docs/agent-cards.md` lists
    /// every field.
    #[arg(long, value_name = "SOURCE", help_heading = "Agents")]
    pub(crate) agent_card: Vec<String>,

    /// Agent to run, if the cards define several.
    #[arg(long, value_name = "NAME", help_heading = "Agents")]
    pub(crate) agent: Option<String>,

    /// Maximum model calls per row; a row that needs more fails.
    #[arg(long, value_name = "N", value_parser = parse_positive, help_heading = "Agents")]
    pub(crate) turns: Option<u64>,

    /// Maximum cost per row in dollars; a call that could exceed it is not made.
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars, help_heading = "Agents")]
    pub(crate) max_row_cost: Option<Money>,

    /// Maximum tokens per row; a call that could exceed it is not made.
    #[arg(long, value_name = "N", value_parser = parse_positive, help_heading = "Agents")]
    pub(crate) max_row_tokens: Option<u64>,

    /// Save every finished turn, so that `--resume` continues from there after a crash.
    ///
    /// A tool that was running during the crash is called again if it may run twice (`idempotent`).
    /// Otherwise the row ends as `OutcomeUnknown`.
    #[arg(long, help_heading = "Agents")]
    pub(crate) checkpoint_turns: bool,

    /// With `--resume`, retry rows that ended as `OutcomeUnknown`.
    #[arg(long, help_heading = "Agents")]
    pub(crate) retry_unknown: bool,

    /// Answer calls to a tool from a file of recorded results, or with `tool=text:…`; repeatable.
    #[arg(long, value_name = "TOOL=ANSWERS", help_heading = "Agents")]
    pub(crate) stub: Vec<String>,

    /// Use this tool's output as the row's result, without another model call; repeatable.
    #[arg(long, value_name = "TOOL", help_heading = "Agents")]
    pub(crate) passthrough: Vec<String>,

    /// Deny calls to this tool and tell the model so; repeatable.
    ///
    /// A pattern such as `server__*` denies several tools.
    #[arg(long, value_name = "TOOL", help_heading = "Agents")]
    pub(crate) deny: Vec<String>,

    /// Record tool results in this folder, for use with `--stub`.
    #[arg(long, value_name = "DIR", help_heading = "Agents")]
    pub(crate) record_tools: Option<PathBuf>,

    /// Default timeout for a tool call, unless its card or server sets one [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Agents")]
    pub(crate) tool_timeout: Option<Duration>,

    /// Maximum bytes of text taken from one tool result [default: 262144].
    #[arg(long, value_name = "BYTES", value_parser = parse_positive, help_heading = "Agents")]
    pub(crate) tool_result_limit: Option<u64>,

    /// Maximum number of processes for Python functions [default: 8 per core, from 16 to 64].
    ///
    /// Rows that need a process wait until one is free.
    #[arg(long, value_name = "N", value_parser = parse_positive, help_heading = "Agents")]
    pub(crate) python_processes: Option<u64>,

    /// Let the agent run shell commands on this machine.
    #[arg(long, short = 'x', help_heading = "Agents")]
    pub(crate) shell: bool,
}

impl AgentFlags {
    /// Refuses what makes no sense without cards, or beside them.
    pub(crate) fn check(&self, instruction: Option<&str>, resumes: bool) -> Result<(), Problem> {
        let has_cards = !self.agent_card.is_empty();
        if has_cards && instruction.is_some() {
            return Err(usage_problem("--agent-card and --instruction cannot be used together")
                .hint("put the instruction into the card"));
        }
        let needs = [
            ("--agent", self.agent.is_some()),
            ("--stub", !self.stub.is_empty()),
            ("--passthrough", !self.passthrough.is_empty()),
            ("--deny", !self.deny.is_empty()),
            ("--record-tools", self.record_tools.is_some()),
            ("--tool-timeout", self.tool_timeout.is_some()),
            ("--tool-result-limit", self.tool_result_limit.is_some()),
            ("--python-processes", self.python_processes.is_some()),
            ("--shell", self.shell),
        ];
        for (flag, given) in needs {
            if given && !has_cards {
                return Err(usage_problem(format!("{flag} requires --agent-card")));
            }
        }
        if self.retry_unknown && !resumes {
            return Err(usage_problem("--retry-unknown requires --resume"));
        }
        Ok(())
    }

    pub(crate) fn spec(self, model_given: bool, file: &ConfigFile) -> Spec {
        let default = Spec::default();
        let folder = file.path.as_deref().and_then(std::path::Path::parent);
        Spec {
            cards: self.agent_card,
            agent: self.agent,
            model_given,
            turns: self.turns.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            checkpoint_turns: self.checkpoint_turns,
            retry_unknown: self.retry_unknown,
            row_budget: BudgetLimits { cost: self.max_row_cost, tokens: self.max_row_tokens },
            stubs: self.stub,
            passthrough: self.passthrough,
            deny: self.deny,
            record_tools: self.record_tools,
            tool_timeout: self.tool_timeout.unwrap_or(default.tool_timeout),
            tool_result_limit: self
                .tool_result_limit
                .map_or(default.tool_result_limit, |most| usize::try_from(most).unwrap_or(usize::MAX)),
            shell: self.shell,
            python_processes: self
                .python_processes
                .or(file.config.run.python_processes.map(|most| most.get().into()))
                .map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
            python_env: file.config.run.python_env.clone(),
            servers: file.config.mcp.servers.clone(),
            config_folder: folder.unwrap_or(std::path::Path::new("")).to_owned(),
        }
    }
}
