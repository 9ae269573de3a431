//! How an agent of each type finds its answer, and which agents it uses.

use std::num::NonZeroU32;

use crate::CardType;

/// The type-specific settings of a card, with its children by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardTypeSettings {
    /// A model that may call tools, with its children as tools.
    Agent {
        /// The children that are offered as tools.
        agents: Vec<String>,
    },
    /// The answer of each agent is the message to the next.
    Chain {
        /// The agents, in order.
        sequence: Vec<String>,
        /// Whether each agent receives the request and all earlier answers, not only the last one.
        cumulative: bool,
    },
    /// All agents receive the same request, and their answers are combined.
    Parallel {
        /// The agents that receive the request.
        fan_out: Vec<String>,
        /// The agent that combines the answers; without it, they are listed.
        fan_in: Option<String>,
        /// Whether the request is included with the answers.
        include_request: bool,
    },
    /// An answer is refined until it is rated good enough.
    EvaluatorOptimizer {
        /// The agent that writes.
        generator: String,
        /// The agent that rates.
        evaluator: String,
        /// The minimum rating of an accepted answer.
        min_rating: AnswerRating,
        /// The maximum number of refinements.
        max_refinements: u32,
        /// The role description for the evaluator.
        refinement_instruction: Option<String>,
    },
    /// A model chooses the agent that answers.
    Router {
        /// The agents to choose from.
        agents: Vec<String>,
    },
    /// A model plans steps that agents carry out.
    Orchestrator {
        /// The agents that carry out steps.
        agents: Vec<String>,
        /// Whether everything is planned at once.
        plan_type: OrchestratorPlanType,
        /// The maximum number of planning rounds; `None` means no limit.
        plan_iterations: Option<NonZeroU32>,
    },
    /// A model plans one step after the other.
    IterativePlanner {
        /// The agents that carry out steps.
        agents: Vec<String>,
        /// The maximum number of steps; `None` means no limit.
        plan_iterations: Option<NonZeroU32>,
    },
    /// One agent is asked repeatedly until one answer leads by `k`.
    Maker {
        /// The agent that is asked.
        worker: String,
        /// By how many votes the winning answer must lead.
        k: u32,
        /// The maximum number of samples; after it, the most frequent answer wins.
        max_samples: u32,
        /// Which answers count as equal.
        match_strategy: AnswerEquality,
        /// Longer answers, in characters, are discarded.
        red_flag_max_length: Option<u32>,
    },
}

impl CardTypeSettings {
    /// The type of the card.
    #[must_use]
    pub fn card_type(&self) -> CardType {
        match self {
            Self::Agent { .. } => CardType::Agent,
            Self::Chain { .. } => CardType::Chain,
            Self::Parallel { .. } => CardType::Parallel,
            Self::EvaluatorOptimizer { .. } => CardType::EvaluatorOptimizer,
            Self::Router { .. } => CardType::Router,
            Self::Orchestrator { .. } => CardType::Orchestrator,
            Self::IterativePlanner { .. } => CardType::IterativePlanner,
            Self::Maker { .. } => CardType::Maker,
        }
    }

    /// The children with the fields that name them, in the order of the card.
    #[must_use]
    pub fn children(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Agent { agents }
            | Self::Router { agents }
            | Self::Orchestrator { agents, .. }
            | Self::IterativePlanner { agents, .. } => named("agents", agents),
            Self::Chain { sequence, .. } => named("sequence", sequence),
            Self::Parallel { fan_out, fan_in, .. } => {
                let mut children = named("fan_out", fan_out);
                children.extend(fan_in.as_deref().map(|name| ("fan_in", name)));
                children
            }
            Self::EvaluatorOptimizer { generator, evaluator, .. } => {
                vec![("generator", generator.as_str()), ("evaluator", evaluator.as_str())]
            }
            Self::Maker { worker, .. } => vec![("worker", worker.as_str())],
        }
    }
}

fn named<'n>(field: &'static str, names: &'n [String]) -> Vec<(&'static str, &'n str)> {
    names.iter().map(|name| (field, name.as_str())).collect()
}

/// How good an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerRating {
    /// `POOR`
    Poor,
    /// `FAIR`
    Fair,
    /// `GOOD`
    Good,
    /// `EXCELLENT`
    Excellent,
}

/// How an orchestrator plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrchestratorPlanType {
    /// All steps at once.
    Full,
    /// One step after the other.
    Iterative,
}

/// Which answers count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEquality {
    /// The same text, character by character.
    Exact,
    /// The same words, ignoring case and whitespace.
    Normalized,
    /// The same JSON value.
    Structured,
}
