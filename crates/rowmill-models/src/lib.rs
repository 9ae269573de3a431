//! Implementations of the port [`Model`](rowmill_core::ports::Model) for model providers.
//!
//! A model string names a provider, a model and settings; a connection adds the address and the key;
//! [`build`] creates a model from both. A call is one HTTP call: nothing here retries, waits or logs.

mod aliases;
mod anthropic;
mod base_url;
mod body;
mod build;
mod builtin;
mod call;
mod catalogue;
mod chat;
mod classify;
mod config;
mod connection;
mod error_body;
mod exchange;
mod files;
#[cfg(test)]
mod fixture;
mod google;
mod hosted;
mod lane;
mod messages;
mod model_string;
mod nearest;
mod prices;
mod provider;
mod provider_table;
mod quirks;
#[cfg(test)]
mod quota_tests;
mod rates;
mod reading;
mod responses;
mod schema;
mod settings;
mod span;
mod surrogate;
mod tokens;
mod tools;
mod wait;

pub use aliases::{AliasConfig, AliasEntry, AliasSource, alias_origin};
pub use build::{Notice, Setup, build};
pub use catalogue::{CatalogueEntry, KeyState, catalogue};
pub use config::ProviderConfig;
pub use connection::{Connection, Environment};
pub use files::attachment_rules;
pub use lane::{LaneFacts, lane_facts};
pub use model_string::ModelString;
pub use prices::{LongPriceConfig, PriceConfig, PriceEntry, PriceSource, PriceTable, Priced};
pub use provider::{Protocol, Provider, Providers};
pub use settings::{Key, Setting, Settings};
pub use tokens::{Accuracy, TokenCounter, counter, fixed_tokens, message_tokens, tool_tokens};
