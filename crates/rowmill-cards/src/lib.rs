//! Agent cards: descriptions of agents in Markdown or YAML.
//!
//! The text of a card is parsed into a [`AgentCard`]; cards that refer to each other form a [`CardSet`].
//! This crate does not read files: the caller provides the texts of cards and of what they include.

mod card;
mod card_fields;
mod card_set;
mod card_type;
mod expand_variables;
mod field;
mod field_lines;
mod front_matter;
mod instruction;
mod kind;
mod mcp;
mod messages;
mod messages_json;
mod mistake;
mod parse;
mod parse_kind;
mod parse_tools;
mod paths;
mod placeholders;
mod python;
mod request_params;
mod shape;
mod tools;
mod unfilled_placeholders;
mod yaml;

pub use card::AgentCard;
pub use card_set::CardSet;
pub use card_type::CardType;
pub use front_matter::{CardFileFormat, has_front_matter, is_skill_manifest};
pub use instruction::{
    AGENT_SKILLS, IncludeSource, InstructionFillReport, InstructionInclude, SERVER_INSTRUCTIONS,
};
pub use kind::{AnswerEquality, AnswerRating, CardTypeSettings, OrchestratorPlanType};
pub use mcp::CardMcpServer;
pub use messages::{MessageFileFormat, parse_message_file};
pub use mistake::join_problems;
pub use parse::{CardOrigin, UnparsedCard, parse_card};
pub use python::PythonFunctionReference;
pub use request_params::{
    RequestParams, ServiceTier, StreamIdleTimeout, StructuredToolPolicy, ToolResultMode,
};
pub use tools::{
    CardPythonTool, CardToolCallAction, CodeArgument, HostedTools, LifecycleHook, ServerItemFilters,
    ToolPolicy,
};
pub use unfilled_placeholders::{UnfilledPlaceholder, unfilled_problem};
pub use yaml::yaml_to_json;
