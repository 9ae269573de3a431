//! Providers: the known ones, with the changes and additions of the configuration.

use std::collections::BTreeMap;

use rowmill_types::{Problem, ProblemCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ProviderConfig;
use crate::aliases::AliasConfig;
use crate::model_settings::{ModelSettingKey, ModelSettingValue};
use crate::provider_table::{PROVIDER_ROWS, ProviderRow, row_for_protocol};
use crate::quirks::ProviderQuirks;

/// Protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderProtocol {
    /// OpenAI chat completions and every compatible server.
    Chat,
    /// The OpenAI Responses API.
    Responses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Google,
    /// Answered in this process.
    #[serde(skip)]
    Builtin,
}

impl ProviderProtocol {
    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
            Self::Builtin => "builtin",
        }
    }
}

/// A provider: the facts known about it, and its configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    name: String,
    /// Its address and the names of its variables.
    row: &'static ProviderRow,
    /// How its protocol is spoken; another row's if the configuration changes the protocol.
    speech: &'static ProviderRow,
    pub(crate) config: ProviderConfig,
}

impl Provider {
    /// The name in model strings.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its protocol.
    #[must_use]
    pub fn protocol(&self) -> ProviderProtocol {
        self.speech.protocol
    }

    /// A description in one line.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.row.about
    }

    /// The keys that its model strings take.
    #[must_use]
    pub fn model_setting_keys(&self) -> &'static [ModelSettingKey] {
        self.speech.keys
    }

    /// Whether calls are impossible without a key.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        self.row.needs_key || self.config.api_key_env.is_some()
    }

    /// The variables that may hold the key; the first that is set wins.
    #[must_use]
    pub fn key_variables(&self) -> Vec<String> {
        if let Some(variable) = &self.config.api_key_env {
            return vec![variable.clone()];
        }
        self.variables(self.row.key_variables, "API_KEY")
    }

    /// The variables that may hold the base URL; the first that is set wins.
    #[must_use]
    pub fn base_url_variables(&self) -> Vec<String> {
        self.variables(self.row.base_url_variables, "BASE_URL")
    }

    pub(crate) fn default_base_url(&self) -> Option<&'static str> {
        self.row.base_url
    }

    pub(crate) fn quirks(&self) -> ProviderQuirks {
        self.speech.quirks
    }

    /// The allowed values of `key`, if `value` is not one of them.
    pub(crate) fn refuses(&self, key: ModelSettingKey, value: &ModelSettingValue) -> Option<String> {
        let (words, budget) = match key {
            ModelSettingKey::Reasoning => {
                (self.speech.quirks.reasoning.words(), self.speech.quirks.reasoning.takes_budget())
            }
            ModelSettingKey::ServiceTier => (self.speech.quirks.tiers, false),
            _ => return None,
        };
        let fits = match value {
            ModelSettingValue::Word(word) => words.contains(word),
            _ => budget,
        };
        if fits {
            return None;
        }
        Some(words.join(", ") + if budget { ", or a number of tokens" } else { "" })
    }

    /// The row's variables, or for an added provider one derived from its name.
    fn variables(&self, known: &[&str], ending: &str) -> Vec<String> {
        if !known.is_empty() {
            return known.iter().map(|&variable| variable.to_owned()).collect();
        }
        if self.speech.protocol == ProviderProtocol::Builtin {
            return Vec::new();
        }
        vec![format!("{}_{ending}", self.name.to_uppercase().replace('-', "_"))]
    }
}

/// All providers that a model string can name, and the short names for models.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderRegistry {
    all: Vec<Provider>,
    aliases: AliasConfig,
}

impl Default for ProviderRegistry {
    fn default() -> Self {
        let provider = |row: &'static ProviderRow| Provider {
            name: row.name.to_owned(),
            row,
            speech: row,
            config: ProviderConfig::default(),
        };
        Self { all: PROVIDER_ROWS.iter().map(provider).collect(), aliases: AliasConfig::default() }
    }
}

impl ProviderRegistry {
    /// The known providers with the changes and additions of the configuration.
    ///
    /// # Errors
    ///
    /// An added provider lacks a base URL or has a name that a model string cannot contain, or a built-in
    /// model is configured.
    pub fn with_config(config: BTreeMap<String, ProviderConfig>) -> Result<Self, Problem> {
        let mut providers = Self::default();
        for (name, config) in config {
            providers.configure(name, config)?;
        }
        Ok(providers)
    }

    /// Adds the aliases of the configuration.
    ///
    /// # Errors
    ///
    /// An alias cannot be used: its name would hide a provider, or aliases refer to each other in a cycle.
    pub fn with_aliases(mut self, aliases: AliasConfig) -> Result<Self, Problem> {
        aliases.check(|name| self.find(name).map(Provider::name))?;
        self.aliases = aliases;
        Ok(self)
    }

    /// The short names for models.
    #[must_use]
    pub fn aliases(&self) -> &AliasConfig {
        &self.aliases
    }

    /// All providers, the known ones first.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.all.iter()
    }

    /// The provider with this name or alias.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Provider> {
        self.all.iter().find(|provider| {
            provider.name == name
                || (provider.name == provider.row.name && provider.row.aliases.contains(&name))
        })
    }

    fn configure(&mut self, name: String, config: ProviderConfig) -> Result<(), Problem> {
        let wrong = |what: String| Problem::new(ProblemCode::InvalidConfig, what);
        if config.api_key_env.as_deref().is_some_and(|variable| !is_variable_name(variable)) {
            // It may be the key itself, so it is not repeated.
            return Err(wrong(format!(
                "`api_key_env` of `[providers.{name}]` does not look like the name of a variable"
            ))
            .hint(
                "write the name of the variable that holds the key, e.g. `api_key_env = \"LAB_KEY\"`, never \
                 the key itself; if that was a key, revoke it",
            ));
        }
        if let Some(known) = self.all.iter_mut().find(|provider| provider.name == name) {
            if known.protocol() == ProviderProtocol::Builtin {
                return Err(wrong(format!("`[providers.{name}]`: `{name}` is built in and has no settings"))
                    .hint("choose another name"));
            }
            if let Some(protocol) = config.protocol.filter(|protocol| *protocol != known.protocol()) {
                // Its keys and quirks belong to the other protocol.
                known.speech = row_for_protocol(protocol);
            }
            known.config = config;
            return Ok(());
        }
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(fits) {
            return Err(wrong(format!("`[providers.{name}]`: the name is not valid in a model string"))
                .hint("use lowercase letters, digits, `-` and `_`"));
        }
        if config.base_url.is_none() {
            return Err(wrong(format!("`[providers.{name}]` has no `base_url`"))
                .hint("add `base_url`, e.g. `base_url = \"http://localhost:8000/v1\"`"));
        }
        let row = row_for_protocol(config.protocol.unwrap_or(ProviderProtocol::Chat));
        self.all.push(Provider { name, row, speech: row, config });
        Ok(())
    }
}

/// Prefixes of keys that could also be variable names.
const KEY_STARTS: &[&str] = &["AIza", "ghp_", "gsk_", "hf_", "pplx_", "sk_", "xai_"];
/// The minimum length of keys.
const SHORTEST_KEY: usize = 20;

/// Whether this can be a variable name and does not look like a key.
fn is_variable_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = text.bytes().all(fits) && text.starts_with(|first: char| !first.is_ascii_digit());
    let has = |kind: fn(&u8) -> bool| text.bytes().any(|byte| kind(&byte));
    let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit);
    let starts_as_key = KEY_STARTS.iter().any(|start| text.starts_with(start));
    is_name && !(text.len() >= SHORTEST_KEY && (is_mixed || starts_as_key))
}
