//! How an agent comes to its answer, and which others it asks.

use std::num::NonZeroU32;

use crate::CardType;

/// What a card does, with its children by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A model that may call tools, and its children as tools.
    Agent {
        /// The children that are offered as tools.
        agents: Vec<String>,
    },
    /// The answer of each is the message to the next.
    Chain {
        /// Who is asked, in order.
        sequence: Vec<String>,
        /// Whether each hears the request and all answers before, not only the last one.
        cumulative: bool,
    },
    /// All are asked the same, and their answers are put together.
    Parallel {
        /// Who is asked.
        fan_out: Vec<String>,
        /// Who makes one answer of all; without it they are listed.
        fan_in: Option<String>,
        /// Whether the request is told together with the answers.
        include_request: bool,
    },
    /// An answer is refined until it is rated good enough.
    EvaluatorOptimizer {
        /// Who writes.
        generator: String,
        /// Who rates.
        evaluator: String,
        /// The rating that is good enough.
        min_rating: Rating,
        /// How often it is refined at most.
        max_refinements: u32,
        /// What the evaluator is told that it is.
        refinement_instruction: Option<String>,
    },
    /// A model chooses who answers.
    Router {
        /// Among whom it chooses.
        agents: Vec<String>,
    },
    /// A model plans steps that others carry out.
    Orchestrator {
        /// Who carries steps out.
        agents: Vec<String>,
        /// Whether it plans everything at once.
        plan_type: PlanType,
        /// How many rounds of planning there may be; `None` is without bound.
        plan_iterations: Option<NonZeroU32>,
    },
    /// A model plans one step after the other.
    IterativePlanner {
        /// Who carries steps out.
        agents: Vec<String>,
        /// How many steps there may be; `None` is without bound.
        plan_iterations: Option<NonZeroU32>,
    },
    /// One agent is asked again and again until one answer leads by `k`.
    Maker {
        /// Who is asked.
        worker: String,
        /// By how many answers one must lead.
        k: u32,
        /// How often it is asked at most; then the most frequent answer wins.
        max_samples: u32,
        /// Which answers count as the same.
        match_strategy: MatchStrategy,
        /// Answers with more characters are thrown away.
        red_flag_max_length: Option<u32>,
    },
}

impl Kind {
    /// The type that the card has.
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
pub enum Rating {
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
pub enum PlanType {
    /// All steps at once.
    Full,
    /// One step, then the next.
    Iterative,
}

/// Which answers count as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchStrategy {
    /// The same text, letter for letter.
    Exact,
    /// The same words, whatever their case and the space between them.
    Normalized,
    /// The same JSON value.
    Structured,
}
