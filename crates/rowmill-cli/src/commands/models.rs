//! `rowmill models`: lists providers, aliases and prices, and describes one model.

mod aliases;
mod one;
mod prices;
mod providers;

use rowmill::{ConfigFile, ExitCode, PriceTable, Problem, ProviderRegistry};

use crate::args::ModelsFlags;
use crate::printer;
use crate::resolve::config_search_folder;

/// The data that the command reads.
struct ModelCatalogue {
    providers: ProviderRegistry,
    prices: PriceTable,
}

/// The output of the command, as text and as JSON.
struct CommandOutput {
    text: String,
    json: serde_json::Value,
}

/// Runs the command.
pub(crate) fn models(flags: &ModelsFlags) -> Result<ExitCode, Problem> {
    let config = ConfigFile::find(&config_search_folder())?.config;
    let prices = PriceTable::with_config(&config.prices)?;
    let aliases = config.alias_config();
    let providers = ProviderRegistry::with_config(config.providers)?.with_aliases(aliases)?;
    let known = ModelCatalogue { providers, prices };
    let answer = match (&flags.model, &flags.prices) {
        _ if flags.aliases => aliases::aliases(&known),
        (Some(model), _) => one::model(&known, model)?,
        (None, Some(provider)) => {
            prices::prices(&known, Some(provider.as_str()).filter(|name| !name.is_empty()))?
        }
        (None, None) => providers::providers(&known),
    };
    // Plain data, so it always serializes to JSON.
    let json = || serde_json::to_string_pretty(&answer.json).unwrap_or_default();
    let text = if flags.json { json() } else { answer.text };
    printer::report(&text)?;
    Ok(ExitCode::Ok)
}
