//! The short names for models.

use rowmill::{AliasEntry, AliasSource, ModelString, built_in_alias_origin};
use serde_json::{Value, json};

use super::{CommandOutput, ModelCatalogue};
use crate::vocabulary::COMMAND_LINE_VOCABULARY;

/// Every alias with the model that it stands for.
pub(super) fn aliases(known: &ModelCatalogue) -> CommandOutput {
    let entries: Vec<AliasEntry<'_>> = known.providers.aliases().entries().collect();
    let width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let (version, day) = built_in_alias_origin();
    let part = |source: AliasSource, title: String| {
        let lines = entries.iter().filter(|entry| entry.source == source).map(|entry| {
            let note = problem_of(known, entry).map(|problem| format!("   ({problem})")).unwrap_or_default();
            format!("  {:<width$}  {}{note}", entry.name, entry.means)
        });
        let lines: Vec<String> = lines.collect();
        (!lines.is_empty()).then(|| format!("{title}\n{}", lines.join("\n")))
    };
    let own = part(AliasSource::Config, "rowmill.toml".to_owned());
    let built_in = part(AliasSource::BuiltIn, format!("built in, as of {day} ({version})"));
    let text: Vec<String> = own.into_iter().chain(built_in).collect();
    CommandOutput {
        text: format!(
            "{}\n\nAdd your own under `[aliases]` in `rowmill.toml`: quick = \"provider.model\"",
            text.join("\n\n")
        ),
        json: entries.iter().map(|entry| as_json(known, entry)).collect::<Vec<_>>().into(),
    }
}

/// Why an alias cannot be used, in a few words.
fn problem_of(known: &ModelCatalogue, entry: &AliasEntry<'_>) -> Option<String> {
    let problem = ModelString::parse(entry.name, &known.providers).err()?;
    let message = problem.message.render(COMMAND_LINE_VOCABULARY);
    Some(message.rsplit_once(", but ").map_or_else(|| message.clone(), |(_, why)| why.to_owned()))
}

fn as_json(known: &ModelCatalogue, entry: &AliasEntry<'_>) -> Value {
    let (version, day) = built_in_alias_origin();
    let is_built_in = entry.source == AliasSource::BuiltIn;
    json!({
        "alias": entry.name,
        "means": entry.means,
        "model": ModelString::parse(entry.name, &known.providers).ok().map(|model| model.to_string()),
        "source": if is_built_in { version } else { "rowmill.toml" },
        "as_of": is_built_in.then_some(day),
        "problem": problem_of(known, entry),
    })
}
