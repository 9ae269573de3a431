//! `rowmill models`: lists providers, aliases and prices, and describes one model.

mod aliases;
mod one;
mod prices;
mod providers;

use rowmill::{ConfigFile, ExitCode, PriceTable, Problem, Providers};

use crate::args::ModelsFlags;
use crate::printer;
use crate::resolve::current_folder;

/// The data that the command reads.
struct Known {
    providers: Providers,
    prices: PriceTable,
}

/// The output of the command, as text and as JSON.
struct Answer {
    text: String,
    json: serde_json::Value,
}

/// Runs the command.
pub(crate) fn models(flags: &ModelsFlags) -> Result<ExitCode, Problem> {
    let config = ConfigFile::find(&current_folder())?.config;
    let prices = PriceTable::with_config(&config.prices)?;
    let aliases = config.alias_config();
    let providers = Providers::with_config(config.providers)?.with_aliases(aliases)?;
    let known = Known { providers, prices };
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
