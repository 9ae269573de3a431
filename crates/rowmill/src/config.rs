//! The configuration file `rowmill.toml`, found upward from the current folder.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use rowmill_core::known_secrets::without_value;
use rowmill_models::{AliasConfig, PriceConfig, ProviderConfig};
use rowmill_tools::McpServerConfig;
use rowmill_types::{Problem, ProblemCode};
use serde::Deserialize;

/// The name of the file.
const NAME: &str = "rowmill.toml";

/// What the file may say. A flag wins over the environment, the environment over
/// the file, the file over the default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Defaults of `rowmill run`.
    #[serde(default)]
    pub run: RunDefaults,
    /// Providers: base URLs, key variables and headers.
    #[serde(default)]
    pub providers: BTreeMap<String, ProviderConfig>,
    /// MCP servers that agent cards can name.
    #[serde(default)]
    pub mcp: McpConfig,
    /// Short names for models, and the model strings that they stand for.
    #[serde(default)]
    pub aliases: BTreeMap<String, String>,
    /// What `$NAMESPACE.KEY` stands for, by namespace and key.
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
    /// Rows worked on at once: a number, or `auto`.
    pub parallel: Option<ParallelSetting>,
    /// Requests per minute, at most.
    pub rpm: Option<u64>,
    /// Tokens per minute, at most.
    pub tpm: Option<u64>,
    /// Prompt tokens per minute, at most.
    pub itpm: Option<u64>,
    /// Generated tokens per minute, at most.
    pub otpm: Option<u64>,
    /// Models to ask when the first gives no answer.
    #[serde(default)]
    pub fallback_models: Vec<String>,
    /// The folder in which answers are kept.
    pub cache: Option<PathBuf>,
    /// Whether answers are forced to disk as they come, to outlast a power failure.
    #[serde(default)]
    pub durable: bool,
    /// Further attempts after a call that failed.
    pub retries: Option<u32>,
    /// The first wait between attempts: seconds, or a text such as `500ms`.
    pub retry_wait: Option<TimeSetting>,
    /// How long one call may take: seconds, or a text such as `90s`.
    pub timeout: Option<TimeSetting>,
    /// How often an answer that breaks the schema may be corrected.
    pub repairs: Option<u32>,
    /// The most processes at once that Python functions run in.
    pub python_processes: Option<NonZeroU32>,
    /// Keys of models that Python functions get all the same, by the names of their variables.
    #[serde(default)]
    pub python_env: Vec<String>,
}

/// A number of rows, or a word.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ParallelSetting {
    /// So many.
    Rows(u64),
    /// `auto`.
    Word(String),
}

/// A length of time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum TimeSetting {
    /// So many seconds.
    Seconds(f64),
    /// A text such as `500ms` or `5m`.
    Text(String),
}

impl fmt::Display for TimeSetting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(out, "{seconds}"),
            Self::Text(text) => out.write_str(text),
        }
    }
}

/// A configuration and where it came from.
#[derive(Debug, Clone, Default)]
pub struct ConfigFile {
    /// The file, if there is one.
    pub path: Option<PathBuf>,
    /// What it says.
    pub config: Config,
}

impl ConfigFile {
    /// Looks for `rowmill.toml` in `folder` and the folders above it.
    ///
    /// # Errors
    ///
    /// The nearest one cannot be read or is not valid.
    pub fn find(folder: &Path) -> Result<Self, Problem> {
        let found = folder.ancestors().map(|folder| folder.join(NAME)).find(|path| path.is_file());
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
                .cause(without_value(error.message()))
                .hint("docs/configuration.md lists what the file may say")
        })?;
        Ok(Self { path: Some(path.to_owned()), config })
    }
}

impl Config {
    /// The short names for models that it adds.
    #[must_use]
    pub fn alias_config(&self) -> AliasConfig {
        AliasConfig { aliases: self.aliases.clone(), references: self.model_references.clone() }
    }
}

impl ConfigFile {
    /// The folder of the file, which paths in it begin at.
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
        let path = home.path().join("a").join(NAME);
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
