//! Agent cards: descriptions of agents in Markdown or YAML.
//!
//! The text of a card is parsed into a [`Card`]; cards that refer to each other form a [`CardSet`].
//! This crate does not read files: the caller provides the texts of cards and of what they include.

mod card;
mod card_type;
mod expand;
mod field;
mod fields;
mod front_matter;
mod instruction;
mod kind;
mod lines;
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
mod request;
mod set;
mod shape;
mod tools;
mod unfilled;
mod yaml;

pub use card::Card;
pub use card_type::CardType;
pub use front_matter::{CardForm, has_front_matter, is_skill_manifest};
pub use instruction::{AGENT_SKILLS, Filled, Include, IncludeFrom, SERVER_INSTRUCTIONS};
pub use kind::{Kind, MatchStrategy, PlanType, Rating};
pub use mcp::McpConnect;
pub use messages::{MessageForm, parse_messages};
pub use mistake::one_problem;
pub use parse::{CardText, Origin, parse};
pub use python::PythonFunction;
pub use request::{RequestParams, ServiceTier, StreamingTimeout, StructuredToolPolicy, ToolResultMode};
pub use set::CardSet;
pub use tools::{CodeTool, Filter, FunctionTool, HostedTools, LifecycleHook, ToolPolicy, ToolRoute};
pub use unfilled::{Unfilled, unfilled_problem};
pub use yaml::yaml_to_json;
