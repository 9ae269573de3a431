//! The providers and aliases that `rowmill models` shows.

use crate::base_url::resolve_base_url;
use crate::connection::{VariableLookup, find_key};
use crate::model_settings::ModelSettingKey;
use crate::provider::{ProviderProtocol, ProviderRegistry};

/// Whether a provider's key is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiKeyPresence {
    /// The key is in the variable with this name.
    Set(String),
    /// The key is required and not set.
    Missing,
    /// The key is not set, but calls may work without it.
    Optional,
    /// The provider needs no key.
    NotNeeded,
}

/// One provider with the current configuration and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderCatalogueEntry {
    /// The name in model strings.
    pub provider: String,
    /// A description in one line.
    pub about: &'static str,
    /// Its protocol.
    pub protocol: ProviderProtocol,
    /// Where calls would go; `None` if it is built in or no address is set.
    pub base_url: Option<String>,
    /// The variables that may hold the key.
    pub key_variables: Vec<String>,
    /// Whether the key is set.
    pub key: ApiKeyPresence,
    /// The variables that may hold the base URL.
    pub base_url_variables: Vec<String>,
    /// The keys that its model strings take.
    pub settings: &'static [ModelSettingKey],
}

/// Every provider, with its requirements and which of them are met.
#[must_use]
pub fn provider_catalogue(
    providers: &ProviderRegistry,
    environment: VariableLookup<'_>,
) -> Vec<ProviderCatalogueEntry> {
    let entry = |provider: &crate::Provider| ProviderCatalogueEntry {
        provider: provider.name().to_owned(),
        about: provider.description(),
        protocol: provider.protocol(),
        base_url: resolve_base_url(provider, environment).ok().flatten().map(|base| base.redacted()),
        key_variables: provider.key_variables(),
        key: match find_key(provider, environment) {
            Ok(Some((variable, _))) => ApiKeyPresence::Set(variable),
            Err(_) => ApiKeyPresence::Missing,
            Ok(None) if provider.protocol() == ProviderProtocol::Builtin => ApiKeyPresence::NotNeeded,
            Ok(None) => ApiKeyPresence::Optional,
        },
        base_url_variables: provider.base_url_variables(),
        settings: provider.model_setting_keys(),
    };
    providers.iter().map(entry).collect()
}
