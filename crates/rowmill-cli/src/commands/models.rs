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
        printer::data("\nName a model as provider.model?key=value, e.g. responses.gpt-5.4-mini?reasoning=low");
    }
    Ok(ExitCode::Ok)
}
