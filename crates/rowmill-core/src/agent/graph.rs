//! The agent graph: the agents that work on a row, the same for every row of a run.

use std::collections::HashMap;
use std::time::Duration;

use rowmill_types::{Message, Problem, SettingVocabulary, ToolSpec};
use serde::{Deserialize, Serialize};

use super::answer_format::AnswerFormat;
use crate::validate::ResultSchema;

/// All agents that rows can reach, and the one that they go to first.
#[derive(Debug)]
pub struct AgentGraph {
    pub(super) agents: Vec<AgentDefinition>,
    pub(super) entry_agent: usize,
    /// Every tool of every agent.
    tools: Vec<AgentGraphTool>,
    pub(super) model_roles: Vec<ModelRole>,
    pub(super) by_form: HashMap<(usize, AnswerFormat), usize>,
    /// The format of the row's result.
    pub(super) answer_format: AnswerFormat,
    /// The maximum number of model calls of a row.
    pub(super) turns: Option<u32>,
    /// How often an answer that violates its schema may be corrected.
    pub(super) repairs: u32,
    /// Whether row states keep the data for a transcript.
    pub(super) traced: bool,
    /// How errors name settings; agents see these names too.
    pub(super) vocabulary: SettingVocabulary,
}

/// One agent of the graph.
#[derive(Debug)]
pub struct AgentDefinition {
    /// Its name.
    pub name: String,
    /// What it is good for, as the models of other agents read it.
    pub description: String,
    /// What it does.
    pub kind: AgentKind,
}

/// The kind of an agent. Agents refer to each other by their index in the agent graph.
#[derive(Debug)]
pub enum AgentKind {
    /// Talks with a model, which may call tools.
    Agent(AgentSettings),
    /// Passes the answer of each agent to the next.
    Chain {
        /// The agents, in order.
        sequence: Vec<usize>,
        /// Whether each agent sees all earlier answers, and the result contains them all.
        cumulative: bool,
    },
    /// Asks several agents at once.
    Parallel {
        /// The agents that are asked.
        fan_out: Vec<usize>,
        /// The agent that merges their answers into one.
        fan_in: Option<usize>,
        /// Whether that agent also sees the request.
        include_request: bool,
    },
    /// Lets its model choose the agent that answers.
    Router {
        /// The agents to choose from.
        agents: Vec<usize>,
    },
    /// Has an answer judged and improved until it is good enough.
    EvaluatorOptimizer {
        /// The agent that gives answers.
        generator: usize,
        /// The agent that judges them.
        evaluator: usize,
        /// The rating that is good enough.
        min_rating: AnswerRating,
        /// The maximum number of improvements.
        max_refinements: u32,
        /// An additional instruction for evaluator and generator.
        instruction: Option<String>,
    },
    /// Makes a plan and has its steps carried out.
    Orchestrator {
        /// The agents that can be given tasks.
        agents: Vec<usize>,
        /// How it plans.
        plan: OrchestratorPlanType,
        /// The maximum number of steps or plans; `None` means no limit.
        iterations: Option<u32>,
    },
    /// Asks the same question until one answer is ahead of all others.
    Maker {
        /// The agent that is asked.
        worker: usize,
        /// The number of votes by which an answer must lead.
        k: u32,
        /// The maximum number of samples.
        max_samples: u32,
        /// Which answers are the same.
        matching: AnswerEquality,
        /// Answers longer than this, in characters, are discarded.
        red_flag_max_length: Option<usize>,
    },
}

/// The settings of a plain agent.
#[derive(Debug, Default)]
pub struct AgentSettings {
    /// Its tools, by their index in the agent graph.
    pub tools: Vec<usize>,
    /// Agents that it can call like tools.
    pub children: Vec<ChildAgent>,
    /// The maximum number of model calls of one conversation.
    pub max_iterations: u32,
    /// The maximum number of children that work at once.
    pub max_parallel: Option<usize>,
    /// The time limit of a child.
    pub child_timeout: Option<Duration>,
    /// Whether the calls of one turn are made one after the other.
    pub sequential_calls: bool,
    /// Messages before every request: examples of good answers.
    pub examples: Vec<Message>,
}

/// An agent that another one can call.
#[derive(Debug)]
pub struct ChildAgent {
    /// The agent.
    pub agent_index: usize,
    /// How it is offered to the model.
    pub spec: ToolSpec,
    /// Checks the arguments, if they can be checked.
    pub arguments: Option<ResultSchema>,
}

/// A tool that an agent has.
#[derive(Debug)]
pub struct AgentGraphTool {
    /// How it is offered to the model.
    pub spec: ToolSpec,
    /// Its name at the host.
    pub host_name: String,
    /// Checks the arguments, if they can be checked.
    pub arguments: Option<ResultSchema>,
    /// What happens to calls.
    pub route: ToolCallAction,
    /// Whether it may run twice.
    pub idempotent: bool,
    /// The time limit of a call.
    pub timeout: Duration,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallAction {
    /// It is made, and the model gets its result.
    Call,
    /// It is made, and its result is the answer.
    Passthrough,
    /// It is not made, and the model is notified.
    Deny,
}

/// How good an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum AnswerRating {
    /// Much is wrong.
    Poor,
    /// Several things are wrong.
    Fair,
    /// Little is wrong.
    Good,
    /// Nothing is wrong.
    Excellent,
}

impl std::fmt::Display for AnswerRating {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Poor => "POOR",
            Self::Fair => "FAIR",
            Self::Good => "GOOD",
            Self::Excellent => "EXCELLENT",
        })
    }
}

/// How an orchestrator plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrchestratorPlanType {
    /// All steps at once.
    Full,
    /// One step after the other.
    Iterative,
}

/// Which answers count as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEquality {
    /// Identical texts.
    Exact,
    /// Texts that differ only in case and white space.
    Normalized,
    /// Equal JSON.
    Structured,
}

/// One way in which an agent uses its model. Every model role has models of its own, because they include its
/// instruction, its tools and its schema.
#[derive(Debug)]
pub struct ModelRole {
    /// The agent.
    pub agent_index: usize,
    /// The format of its answers.
    pub answer_format: AnswerFormat,
    /// The schema of its answers.
    pub schema: Option<ResultSchema>,
}

impl AgentGraph {
    /// An agent graph whose rows go to `worker`. `schema` is what results must satisfy.
    ///
    /// # Errors
    ///
    /// No agent can give results for the schema, or a workflow has no agent to work for it.
    pub fn new(
        agents: Vec<AgentDefinition>,
        tools: Vec<AgentGraphTool>,
        worker: usize,
        schema: Option<ResultSchema>,
    ) -> Result<Self, Problem> {
        let form = if schema.is_some() { AnswerFormat::Result } else { AnswerFormat::Text };
        let mut graph = Self {
            agents,
            entry_agent: worker,
            tools,
            model_roles: Vec::new(),
            by_form: HashMap::new(),
            answer_format: form,
            turns: None,
            repairs: 0,
            traced: false,
            vocabulary: SettingVocabulary::NEUTRAL,
        };
        graph.find_model_roles(schema)?;
        Ok(graph)
    }

    /// An agent graph of one agent without tools.
    ///
    /// # Errors
    ///
    /// Never for such a graph; the type is that of [`AgentGraph::new`].
    pub fn single_agent(schema: Option<ResultSchema>, repairs: u32) -> Result<Self, Problem> {
        let agent = AgentSettings { max_iterations: u32::MAX, ..AgentSettings::default() };
        let agent_index = AgentDefinition {
            name: String::new(),
            description: String::new(),
            kind: AgentKind::Agent(agent),
        };
        Ok(Self { repairs, ..Self::new(vec![agent_index], Vec::new(), 0, schema)? })
    }

    /// Limits the model calls of a row.
    #[must_use]
    pub fn with_turns(mut self, turns: Option<u32>) -> Self {
        self.turns = turns;
        self
    }

    /// Limits how often answers that violate their schema are corrected.
    #[must_use]
    pub fn with_repairs(mut self, repairs: u32) -> Self {
        self.repairs = repairs;
        self
    }

    /// Sets whether transcripts are kept.
    #[must_use]
    pub fn keep_transcripts(mut self, traced: bool) -> Self {
        self.traced = traced;
        self
    }

    /// Sets how settings are named, as the entry point names them.
    #[must_use]
    pub fn with_vocabulary(mut self, vocabulary: SettingVocabulary) -> Self {
        self.vocabulary = vocabulary;
        self
    }

    /// Whether transcripts are kept.
    #[must_use]
    pub fn keeps_transcripts(&self) -> bool {
        self.traced
    }

    /// All agents.
    #[must_use]
    pub fn agents(&self) -> &[AgentDefinition] {
        &self.agents
    }

    /// All tools.
    #[must_use]
    pub fn tools(&self) -> &[AgentGraphTool] {
        &self.tools
    }

    /// Every model role that a row can need.
    #[must_use]
    pub fn model_roles(&self) -> &[ModelRole] {
        &self.model_roles
    }

    /// The agent that rows go to.
    #[must_use]
    pub fn entry_agent(&self) -> usize {
        self.entry_agent
    }

    /// The format of results.
    #[must_use]
    pub fn answer_format(&self) -> AnswerFormat {
        self.answer_format
    }

    /// The schema of results.
    #[must_use]
    pub fn schema(&self) -> Option<&ResultSchema> {
        let result =
            self.model_roles.iter().find(|model_role| model_role.answer_format == AnswerFormat::Result);
        result.and_then(|model_role| model_role.schema.as_ref())
    }

    pub(super) fn model_role(&self, agent_index: usize, form: AnswerFormat) -> usize {
        self.by_form.get(&(agent_index, form)).copied().unwrap_or_default()
    }

    pub(super) fn agent_name(&self, agent_index: usize) -> &str {
        self.agents.get(agent_index).map_or("", |agent_index| agent_index.name.as_str())
    }
}
