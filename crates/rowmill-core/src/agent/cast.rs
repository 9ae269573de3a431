//! Who works on a row: the same for every row of a run.

use std::collections::HashMap;
use std::time::Duration;

use rowmill_types::{Message, Problem, ToolSpec, Vocabulary};
use serde::{Deserialize, Serialize};

use super::form::Form;
use crate::validate::ResultSchema;

/// All agents that rows meet, and the one that they go to first.
#[derive(Debug)]
pub struct Cast {
    pub(super) members: Vec<Member>,
    pub(super) worker: usize,
    /// Every tool that some agent has.
    tools: Vec<Tool>,
    pub(super) voices: Vec<Voice>,
    pub(super) by_form: HashMap<(usize, Form), usize>,
    /// The form of the row's result.
    pub(super) form: Form,
    /// How many model calls a row may make in all.
    pub(super) turns: Option<u32>,
    /// How often an answer that breaks its schema may be corrected.
    pub(super) repairs: u32,
    /// Whether row states keep what a transcript needs.
    pub(super) traced: bool,
    /// How errors name settings; agents are told of them too.
    pub(super) vocabulary: Vocabulary,
}

/// One of the agent graph.
#[derive(Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What it is good for, as other agents' models get to read.
    pub description: String,
    /// What it does.
    pub kind: Kind,
}

/// What an agent does. Agents name each other by their index in the agent graph.
#[derive(Debug)]
pub enum Kind {
    /// Speaks with a model, which may call tools.
    Agent(Agent),
    /// Gives the answer of each agent to the next.
    Chain {
        /// The agents, in order.
        sequence: Vec<usize>,
        /// Whether each sees all answers before it, and the result holds them all.
        cumulative: bool,
    },
    /// Asks several agents at once.
    Parallel {
        /// Those that are asked.
        fan_out: Vec<usize>,
        /// The one that makes one answer of theirs.
        fan_in: Option<usize>,
        /// Whether it gets to see the request, too.
        include_request: bool,
    },
    /// Lets its model choose the agent that answers.
    Router {
        /// Those that can be chosen.
        agents: Vec<usize>,
    },
    /// Has an answer judged and made better until it is good enough.
    EvaluatorOptimizer {
        /// Gives answers.
        generator: usize,
        /// Judges them.
        evaluator: usize,
        /// Good enough.
        min_rating: Rating,
        /// How often an answer is made better, at most.
        max_refinements: u32,
        /// What evaluator and generator are told besides.
        instruction: Option<String>,
    },
    /// Makes a plan and has its steps done.
    Orchestrator {
        /// Those that can be given tasks.
        agents: Vec<usize>,
        /// How it plans.
        plan: PlanType,
        /// How many steps or plans it may make; no limit without it.
        iterations: Option<u32>,
    },
    /// Asks the same until an answer is ahead of all others.
    Maker {
        /// The one that is asked.
        worker: usize,
        /// By how many votes.
        k: u32,
        /// How often it is asked, at most.
        max_samples: u32,
        /// Which answers are the same.
        matching: Matching,
        /// Longer answers count for nothing, in characters.
        red_flag_max_length: Option<usize>,
    },
}

/// An agent's own settings.
#[derive(Debug, Default)]
pub struct Agent {
    /// Its tools, by their index in the agent graph.
    pub tools: Vec<usize>,
    /// Agents that it can call like tools.
    pub children: Vec<Child>,
    /// How many model calls one conversation may have.
    pub max_iterations: u32,
    /// How many children work at once, at most.
    pub max_parallel: Option<usize>,
    /// How long a child may take.
    pub child_timeout: Option<Duration>,
    /// Whether the calls of one turn are made one after the other.
    pub one_by_one: bool,
    /// What stands before every request: examples of good answers.
    pub examples: Vec<Message>,
}

/// An agent that another one can call.
#[derive(Debug)]
pub struct Child {
    /// Who.
    pub member: usize,
    /// How it is offered.
    pub spec: ToolSpec,
    /// Checks the arguments, where that can be done.
    pub arguments: Option<ResultSchema>,
}

/// A tool that an agent has.
#[derive(Debug)]
pub struct Tool {
    /// How it is offered.
    pub spec: ToolSpec,
    /// The name that its host knows it by.
    pub host_name: String,
    /// Checks the arguments, where that can be done.
    pub arguments: Option<ResultSchema>,
    /// What becomes of calls.
    pub route: Route,
    /// Whether it may run twice.
    pub idempotent: bool,
    /// How long a call may take.
    pub timeout: Duration,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// It is made, and the model gets its result.
    Call,
    /// It is made, and its result is the answer.
    Passthrough,
    /// It is not made, and the model is told so.
    Deny,
}

/// How good an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Rating {
    /// Much is wrong.
    Poor,
    /// Several things are wrong.
    Fair,
    /// Little is wrong.
    Good,
    /// Nothing is wrong.
    Excellent,
}

impl std::fmt::Display for Rating {
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
pub enum PlanType {
    /// All steps at once.
    Full,
    /// One step after the other.
    Iterative,
}

/// Which answers are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// Letter by letter.
    Exact,
    /// But for case and white space.
    Normalized,
    /// The same JSON.
    Structured,
}

/// One way in which an agent asks its model: every model role has models of its own, because they
/// know its instruction, its tools and its schema.
#[derive(Debug)]
pub struct Voice {
    /// Whose.
    pub member: usize,
    /// What it asks for.
    pub form: Form,
    /// What answers must satisfy.
    pub schema: Option<ResultSchema>,
}

impl Cast {
    /// An agent graph whose rows go to `worker`. `schema` is what results must satisfy.
    ///
    /// # Errors
    ///
    /// No agent can give results for the schema, or a workflow has nobody to work for it.
    pub fn new(
        members: Vec<Member>,
        tools: Vec<Tool>,
        worker: usize,
        schema: Option<ResultSchema>,
    ) -> Result<Self, Problem> {
        let form = if schema.is_some() { Form::Result } else { Form::Text };
        let mut cast = Self {
            members,
            worker,
            tools,
            voices: Vec::new(),
            by_form: HashMap::new(),
            form,
            turns: None,
            repairs: 0,
            traced: false,
            vocabulary: Vocabulary::NEUTRAL,
        };
        cast.find_voices(schema)?;
        Ok(cast)
    }

    /// An agent graph of one agent without tools.
    ///
    /// # Errors
    ///
    /// Never for such an agent graph; the type is that of [`Cast::new`].
    pub fn plain(schema: Option<ResultSchema>, repairs: u32) -> Result<Self, Problem> {
        let agent = Agent { max_iterations: u32::MAX, ..Agent::default() };
        let member = Member { name: String::new(), description: String::new(), kind: Kind::Agent(agent) };
        Ok(Self { repairs, ..Self::new(vec![member], Vec::new(), 0, schema)? })
    }

    /// Limits the model calls of a row.
    #[must_use]
    pub fn with_turns(mut self, turns: Option<u32>) -> Self {
        self.turns = turns;
        self
    }

    /// Lets answers that break their schema be corrected so often.
    #[must_use]
    pub fn with_repairs(mut self, repairs: u32) -> Self {
        self.repairs = repairs;
        self
    }

    /// Keeps transcripts.
    #[must_use]
    pub fn with_transcripts(mut self, traced: bool) -> Self {
        self.traced = traced;
        self
    }

    /// Has settings named in the words of an entry point.
    #[must_use]
    pub fn with_vocabulary(mut self, vocabulary: Vocabulary) -> Self {
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
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// All tools.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Every model role that a row can need.
    #[must_use]
    pub fn voices(&self) -> &[Voice] {
        &self.voices
    }

    /// The agent that rows go to.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The form of results.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// The schema of results.
    #[must_use]
    pub fn schema(&self) -> Option<&ResultSchema> {
        let result = self.voices.iter().find(|voice| voice.form == Form::Result);
        result.and_then(|voice| voice.schema.as_ref())
    }

    pub(super) fn voice(&self, member: usize, form: Form) -> usize {
        self.by_form.get(&(member, form)).copied().unwrap_or_default()
    }

    pub(super) fn name(&self, member: usize) -> &str {
        self.members.get(member).map_or("", |member| member.name.as_str())
    }
}
