//! The types of cards and their fields.

use std::fmt;

use crate::card_fields::CardFields;
use crate::field::CardField;
use crate::mistake::{CardMistake, backticked_list, nearest, suggestion};
use crate::yaml::YamlEntry;

/// The type of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CardType {
    /// A model with an instruction, tools and children.
    Agent,
    /// Several agents, one after the other.
    Chain,
    /// Several agents, side by side.
    Parallel,
    /// One agent writes and another rates, until the rating is good enough.
    EvaluatorOptimizer,
    /// A model that chooses the agent for a request.
    Router,
    /// A model that makes a plan and assigns its steps to agents.
    Orchestrator,
    /// A model that plans one step after the other.
    IterativePlanner,
    /// One agent that is asked repeatedly until one answer leads.
    Maker,
}

const COMMON: &[&str] =
    &["type", "name", "instruction", "description", "default", "tool_only", "schema_version"];
const MODEL_FIELDS: &[&str] =
    &["model", "request_params", "api_key", "messages", "variables", "web_search", "web_fetch", "x_search"];
const INTERACTIVE_FIELDS: &[&str] = &["use_history", "save_trajectory", "human_input"];
const SERVER_FIELDS: &[&str] = &["servers", "tools", "resources", "prompts", "tool_policy"];
const AGENT: &[&str] = &[
    "agents",
    "mcp_connect",
    "skills",
    "history_source",
    "history_merge_target",
    "max_parallel",
    "child_timeout_sec",
    "max_display_instances",
    "function_tools",
    "tool_hooks",
    "lifecycle_hooks",
    "commands",
    "trim_tool_history",
    "tool_input_schema",
    "shell",
    "cwd",
    "subagents",
    "subagent_model",
    "harness_tools",
];

impl CardType {
    /// Every type.
    pub const ALL: [Self; 8] = [
        Self::Agent,
        Self::Chain,
        Self::Parallel,
        Self::EvaluatorOptimizer,
        Self::Router,
        Self::Orchestrator,
        Self::IterativePlanner,
        Self::Maker,
    ];

    /// The name of the type in a card.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Chain => "chain",
            Self::Parallel => "parallel",
            Self::EvaluatorOptimizer => "evaluator_optimizer",
            Self::Router => "router",
            Self::Orchestrator => "orchestrator",
            Self::IterativePlanner => "iterative_planner",
            Self::Maker => "MAKER",
        }
    }

    /// The fields that a card of this type may have.
    pub fn fields(self) -> impl Iterator<Item = &'static str> + Clone {
        let own: [&[&str]; 4] = match self {
            Self::Agent => [MODEL_FIELDS, INTERACTIVE_FIELDS, SERVER_FIELDS, AGENT],
            Self::Chain => [&["sequence", "cumulative"], &[], &[], &[]],
            Self::Parallel => [&["fan_out", "fan_in", "include_request"], &[], &[], &[]],
            Self::EvaluatorOptimizer => [
                &["generator", "evaluator", "min_rating", "max_refinements", "refinement_instruction"],
                &["messages"],
                &[],
                &[],
            ],
            Self::Router => [&["agents"], MODEL_FIELDS, INTERACTIVE_FIELDS, SERVER_FIELDS],
            Self::Orchestrator => {
                [&["agents", "plan_type", "plan_iterations"], MODEL_FIELDS, INTERACTIVE_FIELDS, &[]]
            }
            Self::IterativePlanner => [&["agents", "plan_iterations"], MODEL_FIELDS, &[], &[]],
            Self::Maker => [
                &["worker", "k", "max_samples", "match_strategy", "red_flag_max_length"],
                &["messages"],
                &[],
                &[],
            ],
        };
        COMMON.iter().chain(own.into_iter().flatten()).copied()
    }

    /// Whether a card of this type calls a model itself, instead of only passing on answers of others.
    #[must_use]
    pub fn asks_model(self) -> bool {
        matches!(self, Self::Agent | Self::Router | Self::Orchestrator | Self::IterativePlanner)
    }

    /// Reads the `type` of a card; also returns whether it is the old name `smart`.
    pub(crate) fn from_field(field: Option<CardField>) -> Result<(Self, bool), CardMistake> {
        let Some(field) = field else { return Ok((Self::Agent, false)) };
        let wrong = field.clone();
        let word = field.text()?;
        let plain = word.to_ascii_lowercase().replace('-', "_");
        if let Some(found) = Self::ALL.iter().find(|known| known.name().eq_ignore_ascii_case(&plain)) {
            return Ok((*found, false));
        }
        match plain.as_str() {
            "smart" => Ok((Self::Agent, true)),
            "a2a" => Err(wrong
                .mistake("`a2a` is not supported: agents of other services cannot process rows")
                .hint("use a card of type `agent` whose tools call the service")),
            _ => {
                let names = Self::ALL.iter().map(|known| known.name());
                let hint = suggestion(&plain, names, "types");
                Err(wrong.mistake(&format!("is unknown: `{word}`")).hint(hint))
            }
        }
    }

    /// The fields that this type does not have, each with the name that was probably meant.
    pub(crate) fn unknown_fields(self, fields: &CardFields) -> Vec<CardMistake> {
        let known = |name: &str| self.fields().any(|field| field == name);
        let unknown = fields.entries().iter().filter(|entry| !known(&entry.key));
        unknown.map(|entry| self.unknown_field(fields, entry)).collect()
    }

    fn unknown_field(self, fields: &CardFields, entry: &YamlEntry) -> CardMistake {
        let name = entry.key.as_str();
        let having = Self::ALL.iter().filter(|other| other.fields().any(|field| field == name));
        let having: Vec<_> = having.map(|other| other.name()).collect();
        if !having.is_empty() {
            return CardMistake::at(entry.line, format!("type `{self}` has no field `{name}`"))
                .hint(format!("it belongs to: {}", backticked_list(having)));
        }
        // A field name of another type is still a better suggestion than none.
        let everywhere = || Self::ALL.iter().flat_map(|other| other.fields());
        let hint = match nearest(name, self.fields()).or_else(|| nearest(name, everywhere())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("fields of type `{self}`: {}", backticked_list(self.fields())),
        };
        fields.unknown_field(entry).hint(hint)
    }
}

impl fmt::Display for CardType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
