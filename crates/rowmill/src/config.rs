//! The configuration file `rowmill.toml`, searched for from the current folder upward.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use rowmill_core::known_secrets::strip_value_from_type_error;
use rowmill_models::{AliasConfig, PriceConfig, ProviderConfig};
use rowmill_tools::McpServerConfig;
use rowmill_types::{Problem, ProblemCode};
use serde::Deserialize;

use crate::lane::{Lane, RepairLane};

/// The name of the file.
const CONFIG_FILE_NAME: &str = "rowmill.toml";

/// The contents of the configuration file. A flag overrides the environment, which overrides the file,
/// which overrides the default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Defaults of `rowmill run`.
    #[serde(default)]
    pub run: RunDefaults,
    /// Providers: base URLs, variables of API keys, and headers.
    #[serde(default)]
    pub providers: BTreeMap<String, ProviderConfig>,
    /// MCP servers that agent cards can name.
    #[serde(default)]
    pub mcp: McpConfig,
    /// Short names for models, with the model strings that they stand for.
    #[serde(default)]
    pub aliases: BTreeMap<String, String>,
    /// The values of `$NAMESPACE.KEY`, by namespace and key.
    #[serde(default)]
    pub model_references: BTreeMap<String, BTreeMap<String, String>>,
    /// Prices by `provider.model` or `provider.*`, in dollars per million tokens.
    #[serde(default)]
    pub prices: BTreeMap<String, PriceConfig>,
}

/// MCP servers that agent cards can name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// The servers, by the names that cards use.
    #[serde(default)]
    pub servers: BTreeMap<String, McpServerConfig>,
}

/// Defaults of `rowmill run`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDefaults {
    /// The model string.
    pub model: Option<String>,
    /// The number of rows worked on at once, or `auto`.
    pub parallel: Option<ParallelSetting>,
    /// The maximum number of requests per minute.
    pub rpm: Option<u64>,
    /// The maximum number of tokens per minute.
    pub tpm: Option<u64>,
    /// The maximum number of prompt tokens per minute.
    pub itpm: Option<u64>,
    /// The maximum number of generated tokens per minute.
    pub otpm: Option<u64>,
    /// Models to call if the first gives no answer.
    #[serde(default)]
    pub fallback_models: Vec<String>,
    /// The folder of the answer cache.
    pub cache: Option<PathBuf>,
    /// Whether answers are forced to disk as they arrive, so that they survive a power failure.
    #[serde(default)]
    pub durable: bool,
    /// The number of retries of a call that failed.
    pub retries: Option<u32>,
    /// The wait before the first retry: seconds, or a text such as `500ms`.
    pub retry_wait: Option<ConfigDuration>,
    /// The timeout of one call: seconds, or a text such as `90s`.
    pub timeout: Option<ConfigDuration>,
    /// How often an answer that violates the schema may be sent back for correction.
    pub repairs: Option<u32>,
    /// How requests are sent.
    pub lane: Option<Lane>,
    /// How repairs are sent in the batch lane.
    pub repair_lane: Option<RepairLane>,
    /// The shell command that is notified of the end of a run.
    pub notify: Option<String>,
    /// The address that is notified of it.
    pub notify_url: Option<String>,
    /// The maximum number of processes for Python functions.
    pub python_processes: Option<NonZeroU32>,
    /// Variables with API keys of models that are passed to Python functions nevertheless.
    #[serde(default)]
    pub python_env: Vec<String>,
}

/// A number of rows, or a word.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ParallelSetting {
    /// A number of rows.
    Rows(u64),
    /// The word `auto`.
    Word(String),
}

/// A duration.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ConfigDuration {
    /// A number of seconds.
    Seconds(f64),
    /// A text such as `500ms` or `5m`.
    Text(String),
}

impl fmt::Display for ConfigDuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(out, "{seconds}"),
            Self::Text(text) => out.write_str(text),
        }
    }
}

/// A configuration, and the file that it comes from.
#[derive(Debug, Clone, Default)]
pub struct ConfigFile {
    /// The file, if there is one.
    pub path: Option<PathBuf>,
    /// The contents.
    pub config: Config,
}

impl ConfigFile {
    /// Looks for `rowmill.toml` in `folder` and the folders above it.
    ///
    /// # Errors
    ///
    /// The nearest one cannot be read or is not valid.
    pub fn find(folder: &Path) -> Result<Self, Problem> {
        let found =
            folder.ancestors().map(|folder| folder.join(CONFIG_FILE_NAME)).find(|path| path.is_file());
        found.map_or_else(|| Ok(Self::default()), |path| Self::read(&path))
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// It cannot be read or is not valid.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let shown = path.display();
        let invalid = |what: String| Problem::new(ProblemCode::InvalidConfig, what);
        let text = std::fs::read_to_string(path)
            .map_err(|error| invalid(format!("cannot read the configuration `{shown}`")).cause(error))?;
        let config = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(&text, span.start));
            invalid(format!("`{shown}` is not valid at line {line}"))
                .cause(strip_value_from_type_error(error.message()))
                .hint("see docs/configuration.md for all settings of the file")
        })?;
        Ok(Self { path: Some(path.to_owned()), config })
    }
}

impl Config {
    /// The short names for models that the file adds.
    #[must_use]
    pub fn alias_config(&self) -> AliasConfig {
        AliasConfig { aliases: self.aliases.clone(), references: self.model_references.clone() }
    }
}

impl ConfigFile {
    /// The folder of the file; relative paths in the file start from it.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).to_owned()
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_upward_is_found_and_mistakes_name_the_line() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let path = home.path().join("a").join(CONFIG_FILE_NAME);
        std::fs::write(&path, "[run]\nmodel = \"simulated\"\n[providers.lab]\nbase_url = \"http://h/v1\"\n")
            .unwrap();
        let found = ConfigFile::find(&deep).unwrap();
        assert_eq!(found.path, Some(path.clone()));
        assert_eq!(found.config.run.model.as_deref(), Some("simulated"));
        assert!(found.config.providers.contains_key("lab"));

        std::fs::write(&path, "[run]\nmodle = \"x\"\n").unwrap();
        let problem = ConfigFile::find(&deep).unwrap_err();
        assert!(problem.message.ends_with("is not valid at line 2"), "{}", problem.message);
        assert!(problem.cause.unwrap().contains("unknown field `modle`"));
    }
}
