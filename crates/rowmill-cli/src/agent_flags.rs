//! The flags of agents and their tools. Their texts are the reference manual.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rowmill::{AgentFlags as Spec, BudgetLimits, ConfigFile, Money, Problem};

use crate::resolve::usage;
use crate::values::{dollars, duration, positive};

/// Agents and their tools.
#[derive(Debug, Args)]
pub(crate) struct AgentFlags {
    /// An agent card: a file, a folder of cards, or an address; can be repeated.
    ///
    /// A card is Markdown with YAML in front, or YAML: an agent with its instruction, model, tools
    /// and MCP servers, or a workflow of other agents. `docs/agent-cards.md` lists every field.
    #[arg(long, value_name = "SOURCE", help_heading = "Agents")]
    pub(crate) agent_card: Vec<String>,

    /// The agent that works on the rows, where the cards have several.
    #[arg(long, value_name = "NAME", help_heading = "Agents")]
    pub(crate) agent: Option<String>,

    /// How many model calls a row may make in all; a row that needs more fails.
    #[arg(long, value_name = "N", value_parser = positive, help_heading = "Agents")]
    pub(crate) turns: Option<u64>,

    /// What the calls of one row may cost, in dollars; no call is made that could pass it.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, help_heading = "Agents")]
    pub(crate) max_row_cost: Option<Money>,

    /// How many tokens the calls of one row may use; no call is made that could pass it.
    #[arg(long, value_name = "N", value_parser = positive, help_heading = "Agents")]
    pub(crate) max_row_tokens: Option<u64>,

    /// Keep every finished turn, so that after a crash `--resume` goes on from there.
    ///
    /// A tool that was running at the crash is called again if it may run twice (`idempotent`).
    /// Otherwise the row ends as `OutcomeUnknown`.
    #[arg(long, help_heading = "Agents")]
    pub(crate) checkpoint_turns: bool,

    /// With `--resume`: work again on rows that ended as `OutcomeUnknown`.
    #[arg(long, help_heading = "Agents")]
    pub(crate) retry_unknown: bool,

    /// Answer calls of a tool from a file of recorded answers, or with `tool=text:…`; can be repeated.
    #[arg(long, value_name = "TOOL=ANSWERS", help_heading = "Agents")]
    pub(crate) stub: Vec<String>,

    /// Make what this tool gives the result, without another model call; can be repeated.
    #[arg(long, value_name = "TOOL", help_heading = "Agents")]
    pub(crate) passthrough: Vec<String>,

    /// Do not call this tool, and tell the model so; can be repeated, and `server__*` names several.
    #[arg(long, value_name = "TOOL", help_heading = "Agents")]
    pub(crate) deny: Vec<String>,

    /// Write what tools give to files in this folder, as `--stub` reads them.
    #[arg(long, value_name = "DIR", help_heading = "Agents")]
    pub(crate) record_tools: Option<PathBuf>,

    /// How long a tool may take, where its card or server says nothing else [default: 60s].
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Agents")]
    pub(crate) tool_timeout: Option<Duration>,

    /// The most bytes of text that a tool's result brings into a conversation [default: 262144].
    #[arg(long, value_name = "BYTES", value_parser = positive, help_heading = "Agents")]
    pub(crate) tool_result_limit: Option<u64>,

    /// The most processes at once that Python functions run in; further rows wait for one [default: 8 for
    /// each core, from 16 to 64].
    #[arg(long, value_name = "N", value_parser = positive, help_heading = "Agents")]
    pub(crate) python_processes: Option<u64>,

    /// Let the agent run shell commands on this machine.
    #[arg(long, short = 'x', help_heading = "Agents")]
    pub(crate) shell: bool,
}

impl AgentFlags {
    /// Refuses what makes no sense without cards, or beside them.
    pub(crate) fn check(&self, has_instruction: bool, resumes: bool) -> Result<(), Problem> {
        let has_cards = !self.agent_card.is_empty();
        if has_cards && has_instruction {
            return Err(usage("--agent-card and --instruction cannot be used together")
                .hint("the instruction of an agent stands in its card"));
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
                return Err(usage(format!("{flag} requires --agent-card")));
            }
        }
        if self.retry_unknown && !resumes {
            return Err(usage("--retry-unknown requires --resume"));
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
