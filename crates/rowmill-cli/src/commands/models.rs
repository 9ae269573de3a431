//! `rowmill models`: providers, their keys and settings.

use rowmill::{CatalogueEntry, ConfigFile, ExitCode, KeyState, Problem, Providers, catalogue, environment};

use crate::args::ModelsFlags;
use crate::printer;
use crate::resolve::current_folder;

/// Runs the command.
pub(crate) fn models(flags: &ModelsFlags) -> Result<ExitCode, Problem> {
    let config = ConfigFile::find(&current_folder())?;
    let providers = Providers::with_config(config.config.providers)?;
    let entries = catalogue(&providers, &environment);
    if flags.json {
        let rows: Vec<_> = entries.iter().map(as_json).collect();
        // Plain data, so it is always JSON.
        printer::data(&serde_json::to_string_pretty(&rows).unwrap_or_default());
    } else {
        entries.iter().for_each(|entry| printer::data(&as_text(entry)));
        printer::data(
            "\nName a model as provider.model?key=value, e.g. responses.gpt-5.4-mini?reasoning=low",
        );
    }
    Ok(ExitCode::Ok)
}

fn as_text(entry: &CatalogueEntry) -> String {
    let key = match &entry.key {
        KeyState::Set(variable) => format!("key set in {variable}"),
        KeyState::Missing => format!("key missing: set {}", entry.key_variables.join(" or ")),
        KeyState::Optional => format!("key optional: {}", entry.key_variables.join(" or ")),
        KeyState::NotNeeded => "built in, no key".to_owned(),
    };
    let place = entry.base_url.as_ref().map_or_else(String::new, |url| format!(", at {url}"));
    format!("{:<14} {}\n{:14} {key}{place}", entry.provider, entry.about, "")
}

fn as_json(entry: &CatalogueEntry) -> serde_json::Value {
    let (state, variable) = match &entry.key {
        KeyState::Set(variable) => ("set", Some(variable.as_str())),
        KeyState::Missing => ("missing", None),
        KeyState::Optional => ("optional", None),
        KeyState::NotNeeded => ("not needed", None),
    };
    serde_json::json!({
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
