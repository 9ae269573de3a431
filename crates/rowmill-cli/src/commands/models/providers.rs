//! The list of providers.

use rowmill::{ApiKeyPresence, ProviderCatalogueEntry, built_in_alias_origin, provider_catalogue};
use serde_json::{Value, json};

use super::{CommandOutput, ModelCatalogue};
use crate::process_environment::process_environment;

/// Every provider with the state of its key.
pub(super) fn providers(known: &ModelCatalogue) -> CommandOutput {
    let entries = provider_catalogue(&known.providers, &|name| process_environment().provider_variable(name));
    let lines: Vec<String> = entries.iter().map(as_text).collect();
    let (version, day) = built_in_alias_origin();
    let next = "Name a model as provider.model?key=value, e.g. responses.gpt-5.4-mini?reasoning=low\n\
                `rowmill models MODEL` shows details of a model, `rowmill models --prices` lists prices,\n\
                `rowmill models --aliases` lists short names such as `haiku`";
    CommandOutput {
        text: format!("{}\n\n{next} ({version}, {day}).", lines.join("\n")),
        json: entries.iter().map(provider_json).collect::<Vec<_>>().into(),
    }
}

/// The state of a provider's key, in words.
pub(super) fn key_text(entry: &ProviderCatalogueEntry) -> String {
    match &entry.key {
        ApiKeyPresence::Set(variable) => format!("key set in {variable}"),
        ApiKeyPresence::Missing => format!("key missing: set {}", entry.key_variables.join(" or ")),
        ApiKeyPresence::Optional => format!("key optional: {}", entry.key_variables.join(" or ")),
        ApiKeyPresence::NotNeeded => "built in, needs no key".to_owned(),
    }
}

fn as_text(entry: &ProviderCatalogueEntry) -> String {
    let place = entry.base_url.as_ref().map_or_else(String::new, |url| format!(", at {url}"));
    format!("{:<14} {}\n{:14} {}{place}", entry.provider, entry.about, "", key_text(entry))
}

/// A provider as JSON.
pub(super) fn provider_json(entry: &ProviderCatalogueEntry) -> Value {
    let (state, variable) = match &entry.key {
        ApiKeyPresence::Set(variable) => ("set", Some(variable.as_str())),
        ApiKeyPresence::Missing => ("missing", None),
        ApiKeyPresence::Optional => ("optional", None),
        ApiKeyPresence::NotNeeded => ("not needed", None),
    };
    json!({
        "provider": entry.provider,
        "about": entry.about,
        "protocol": entry.protocol.name(),
        "base_url": entry.base_url,
        "base_url_variables": entry.base_url_variables,
        "key": state,
        "key_set_in": variable,
        "key_variables": entry.key_variables,
        "settings": entry.settings.iter().map(|key| key.name()).collect::<Vec<_>>(),
    })
}
