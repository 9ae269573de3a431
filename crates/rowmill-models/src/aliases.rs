//! Short names for models: built-in aliases, aliases of the configuration, and references such as
//! `$system.fast`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rowmill_types::{Problem, ProblemCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The built-in aliases.
const BUILT_IN: &str = include_str!("../aliases.toml");

static TABLE: LazyLock<AliasTable> = LazyLock::new(|| toml::from_str(BUILT_IN).unwrap_or_default());

/// The format of the file with the built-in aliases.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AliasTable {
    version: String,
    as_of: String,
    aliases: BTreeMap<String, String>,
    /// The provider of each model, by the model's name in lower case.
    providers: BTreeMap<String, String>,
}

/// The release that the built-in aliases were taken from, and its date, as `(version, date)`.
#[must_use]
pub fn built_in_alias_origin() -> (&'static str, &'static str) {
    (&TABLE.version, &TABLE.as_of)
}

/// The provider of a model that is named without one, if the table knows it.
pub(crate) fn provider_of_bare_name(model: &str) -> Option<&'static str> {
    let name = model.rsplit_once(':').map_or(model, |(name, _)| name).to_ascii_lowercase();
    TABLE.providers.get(&name).map(String::as_str)
}

/// Where an alias is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AliasSource {
    /// The table that is compiled into the program.
    BuiltIn,
    /// The configuration.
    Config,
}

/// One alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AliasEntry<'a> {
    /// The alias.
    pub name: &'a str,
    /// The model string that the name stands for.
    pub means: &'a str,
    /// Where it is defined.
    pub source: AliasSource,
}

/// Aliases from the configuration, in addition to the built-in ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AliasConfig {
    /// `[aliases]`: names and their models.
    pub aliases: BTreeMap<String, String>,
    /// `[model_references.NAMESPACE]`: the models of `$NAMESPACE.KEY`.
    pub references: BTreeMap<String, BTreeMap<String, String>>,
}

impl AliasConfig {
    /// The model string of `$NAMESPACE.KEY`, if it is defined.
    #[must_use]
    pub fn model_of_reference(&self, token: &str) -> Option<&str> {
        let (namespace, key) = token.strip_prefix('$')?.split_once('.')?;
        self.references.get(namespace)?.get(key).map(String::as_str)
    }

    /// The model string of a name; the configuration takes precedence.
    fn find(&self, name: &str) -> Option<&str> {
        if name.starts_with('$') {
            return self.model_of_reference(name);
        }
        self.aliases.get(name).or_else(|| TABLE.aliases.get(name)).map(String::as_str)
    }

    /// All aliases with their model strings, sorted by name; references are not included.
    pub fn entries(&self) -> impl Iterator<Item = AliasEntry<'_>> {
        let built_in = TABLE.aliases.iter().filter(|(name, _)| !self.aliases.contains_key(*name));
        let built_in = built_in.map(|(name, means)| (name, means, AliasSource::BuiltIn));
        let own = self.aliases.iter().map(|(name, means)| (name, means, AliasSource::Config));
        let mut all: Vec<_> = built_in.chain(own).collect();
        all.sort_unstable();
        all.into_iter().map(|(name, means, source)| AliasEntry { name, means, source })
    }

    /// Replaces aliases and references in `text` by the model strings that they stand for; returns `text`
    /// itself if it contains none. Settings after `?` override those of the alias, and text after the last
    /// `:` replaces the alias's suffix.
    ///
    /// # Errors
    ///
    /// Aliases refer to each other in a cycle, or a reference is not defined.
    pub fn expand(&self, text: &str) -> Result<String, Problem> {
        let (mut name, query) = split_query(text.trim());
        let (mut suffix, mut queries) = (None, vec![query]);
        let mut seen: Vec<&str> = Vec::new();
        loop {
            let (base, own_suffix) = match name.rsplit_once(':') {
                Some((base, suffix)) if !base.is_empty() => (base, Some(suffix)),
                _ => (name, None),
            };
            let Some(means) = self.find(base) else {
                if base.starts_with('$') {
                    return Err(self.undefined(base));
                }
                break;
            };
            if seen.contains(&base) {
                seen.push(base);
                return Err(circle(&seen));
            }
            seen.push(base);
            suffix = suffix.or(own_suffix);
            let query;
            (name, query) = split_query(means.trim());
            queries.push(query);
        }
        let mut whole = match (suffix, name.rsplit_once(':')) {
            (Some(suffix), Some((base, _))) => format!("{base}:{suffix}"),
            (Some(suffix), None) => format!("{name}:{suffix}"),
            (None, _) => name.to_owned(),
        };
        // If a key occurs twice, the last one wins, so the text itself comes last.
        queries.reverse();
        queries.retain(|query| !query.is_empty());
        if !queries.is_empty() {
            whole.push('?');
            whole.push_str(&queries.join("&"));
        }
        Ok(whole)
    }

    /// Rejects names that could never be used or would hide something else.
    pub(crate) fn check<'a>(&self, is_provider: impl Fn(&str) -> Option<&'a str>) -> Result<(), Problem> {
        for (name, means) in &self.aliases {
            let wrong = |what: String, hint: &str| {
                Err(Problem::new(ProblemCode::InvalidConfig, format!("`{name}` in `[aliases]` {what}"))
                    .hint(hint.to_owned()))
            };
            if name.trim().is_empty() || name.contains(['?', ':']) || name.starts_with('$') {
                return wrong(
                    "cannot be the name of a model".to_owned(),
                    "use a name without `?` and `:` that does not start with `$`",
                );
            }
            let start = name.split(['.', '/']).next().unwrap_or(name);
            // No provider's name starts like `gemini-3.1`; `openai.gpt-5` would be another provider's model.
            if let Some(provider) = is_provider(start) {
                return wrong(format!("would hide the provider `{provider}`"), "choose another name");
            }
            if means.trim().is_empty() {
                return wrong("is empty".to_owned(), "write a model string after it");
            }
            // A reference need only be defined when the alias is used.
            self.expand(name).or_else(|problem| match problem.code {
                ProblemCode::InvalidConfig => Err(problem),
                _ => Ok(String::new()),
            })?;
        }
        Ok(())
    }

    fn undefined(&self, token: &str) -> Problem {
        let parts = token.strip_prefix('$').and_then(|rest| rest.split_once('.'));
        let Some((namespace, key)) = parts.filter(|(space, key)| !space.is_empty() && !key.is_empty()) else {
            return Problem::new(ProblemCode::InvalidModel, format!("`{token}` is not a model reference"))
                .hint("a reference has a namespace and a key, such as `$system.fast`");
        };
        let known: Vec<String> = self
            .references
            .iter()
            .flat_map(|(space, keys)| keys.keys().map(move |key| format!("`${space}.{key}`")))
            .collect();
        let known = if known.is_empty() { String::new() } else { format!("; defined: {}", known.join(", ")) };
        Problem::new(ProblemCode::InvalidModel, format!("the model reference `{token}` is not defined")).hint(
            format!(
                "add `{key} = \"provider.model\"` under `[model_references.{namespace}]` in `rowmill.toml`{known}"
            ),
        )
    }
}

fn split_query(text: &str) -> (&str, &str) {
    text.split_once('?').unwrap_or((text, ""))
}

fn circle(names: &[&str]) -> Problem {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Problem::new(
        ProblemCode::InvalidConfig,
        format!("aliases refer to each other in a cycle: {}", names.join(" → ")),
    )
    .hint("set one of them to a model")
}
