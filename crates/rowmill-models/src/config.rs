//! The part of `rowmill.toml` that is about providers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BatchLimitOverrides, ProviderProtocol};

/// An entry `[providers.NAME]` of `rowmill.toml`.
///
/// A built-in provider's name changes that provider; another name adds one,
/// which then needs a `base_url`. Keys may be written with `_` or `-`.
///
/// ```toml
/// [providers.lab]
/// base_url = "http://gpu-1:8000/v1"   # OpenAI style: with /v1
/// protocol = "chat"                   # chat (default), responses, anthropic or google
/// api_key_env = "LAB_KEY"             # the variable that holds the key, never the key itself
/// headers = { x-team = "${TEAM}" }    # `${NAME}` is replaced from the environment
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// Base URL. The provider's environment variable takes precedence.
    #[serde(default, alias = "base-url", skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Environment variable that holds the key, instead of the provider's default.
    #[serde(default, alias = "api-key-env", skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Additional headers; `${NAME}` is replaced from the environment.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The protocol that the provider speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProviderProtocol>,
    /// Limits of its batch API that replace the known ones.
    #[serde(default, skip_serializing_if = "is_unchanged")]
    pub batch: BatchLimitOverrides,
}

fn is_unchanged(limits: &BatchLimitOverrides) -> bool {
    *limits == BatchLimitOverrides::default()
}
