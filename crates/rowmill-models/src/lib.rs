//! Implementations of the port [`Model`](rowmill_core::ports::Model) for model providers.
//!
//! A model string names a provider, a model and settings; a connection adds the address and the key;
//! [`build_model`] creates a model from both, and [`build_batch_api`] the [`BatchApi`](rowmill_core::ports::BatchApi) of
//! its provider. A call is one HTTP call: nothing here retries, waits or logs.

mod aliases;
mod anthropic;
mod base_url;
mod batch;
mod body;
mod build_model;
mod builtin;
mod call_error;
mod catalogue;
mod chat;
mod classify;
mod config;
mod connection;
mod duration_words;
mod endpoint;
mod error_body;
mod files;
mod google;
mod hosted_use;
mod http_model;
mod messages;
mod model_settings;
mod model_string;
mod nearest;
mod prices;
mod provider;
mod provider_table;
mod quirks;
#[cfg(test)]
mod quota_tests;
mod rate_headers;
mod requested_wait;
mod responses;
mod schema;
mod surrogate;
#[cfg(test)]
mod test_support;
mod tokens;
mod tool_calls;
mod wire_protocol;

pub use aliases::{AliasConfig, AliasEntry, AliasSource, built_in_alias_origin};
pub use batch::{BatchLimitOverrides, batch_providers, batch_rules, build_batch_api};
pub use build_model::{ModelSetup, NoticeFn, build_model};
pub use catalogue::{ApiKeyPresence, ProviderCatalogueEntry, provider_catalogue};
pub use config::ProviderConfig;
pub use connection::{ProviderConnection, VariableLookup};
pub use endpoint::{EndpointFacts, endpoint_facts};
pub use files::attachment_rules;
pub use model_settings::{ModelSettingKey, ModelSettingValue, ModelSettings};
pub use model_string::ModelString;
pub use prices::{LongPriceConfig, ModelPrice, PriceConfig, PriceEntry, PriceSource, PriceTable};
pub use provider::{Provider, ProviderProtocol, ProviderRegistry};
pub use tokens::{CountAccuracy, TokenCounter, fixed_tokens, message_tokens, token_counter, tool_tokens};
