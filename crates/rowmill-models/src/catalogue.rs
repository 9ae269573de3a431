//! What `rowmill models` shows.

use crate::base_url::base_url;
use crate::connection::{Environment, key};
use crate::provider::{Protocol, Providers};
use crate::settings::Key;

/// Whether a provider's key is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    /// The variable with this name holds it.
    Set(String),
    /// It is required and not set.
    Missing,
    /// It is not set, and calls may work without it.
    Optional,
    /// There is no key.
    NotNeeded,
}

/// One provider, as it stands with this configuration and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The name in model strings.
    pub provider: String,
    /// What it is, in one line.
    pub about: &'static str,
    /// The protocol that it speaks.
    pub protocol: Protocol,
    /// Where calls would go; `None` when it is built in or no address is set.
    pub base_url: Option<String>,
    /// The variables that may hold the key.
    pub key_variables: Vec<String>,
    /// Whether the key is there.
    pub key: KeyState,
    /// The variables that may hold the base URL.
    pub base_url_variables: Vec<String>,
    /// The keys that its model strings take.
    pub settings: &'static [Key],
}

/// Every provider with what it needs and what is there of it.
#[must_use]
pub fn catalogue(providers: &Providers, environment: Environment<'_>) -> Vec<CatalogueEntry> {
    let entry = |provider: &crate::Provider| CatalogueEntry {
        provider: provider.name().to_owned(),
        about: provider.about(),
        protocol: provider.protocol(),
        base_url: base_url(provider, environment).ok().flatten().map(|base| base.shown()),
        key_variables: provider.key_variables(),
        key: match key(provider, environment) {
            Ok(Some((variable, _))) => KeyState::Set(variable),
            Err(_) => KeyState::Missing,
            Ok(None) if provider.protocol() == Protocol::Builtin => KeyState::NotNeeded,
            Ok(None) => KeyState::Optional,
        },
        base_url_variables: provider.base_url_variables(),
        settings: provider.keys(),
    };
    providers.iter().map(entry).collect()
}
