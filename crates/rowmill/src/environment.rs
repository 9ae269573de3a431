//! The environment of a run: variables, a folder for temporary files, and a program that extracts text.
//! Entry points pass it in; nothing below them reads the process environment.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rowmill_core::known_secrets::variable_secrets;
use rowmill_core::redact::Redactor;
use rowmill_data::{FetchSettings, TextExtractor};
use rowmill_http::HttpClient;
use rowmill_types::{Problem, Secret};

/// The folder for temporary files if no variable names one.
const TEMP_FOLDER: &str = "/tmp";

/// Where runs and batches look up variables: keys and addresses of providers, tokens, proxies, and the
/// values of `${NAME}` in settings. They see nothing else of the process environment.
///
/// ```
/// use rowmill::{Batch, RunEnvironment};
///
/// // A server gives each of its users a key of their own.
/// let theirs = RunEnvironment::from_variables([("OPENAI_API_KEY", "sk-of-this-user")]);
/// let batch = Batch::over(["a"]).prompt(|item| *item).worker("passthrough").environment(&theirs);
/// assert_eq!(batch.run_blocking()?.items, ["a"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RunEnvironment {
    inner: Arc<EnvironmentParts>,
}

struct EnvironmentParts {
    variables: BTreeMap<OsString, OsString>,
    temp_folder: PathBuf,
    /// The program that extracts text in its own process, with its leading arguments.
    text_extractor: Option<(PathBuf, Vec<String>)>,
    /// Masks the secrets in variables; created when first needed.
    redactor: OnceLock<Option<Redactor>>,
}

/// The environment of this process.
impl Default for RunEnvironment {
    fn default() -> Self {
        Self::from_process()
    }
}

/// Values may be secret, so none is shown.
impl fmt::Debug for RunEnvironment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Environment")
            .field("variables", &self.inner.variables.len())
            .field("temp_folder", &self.inner.temp_folder)
            .finish_non_exhaustive()
    }
}

impl RunEnvironment {
    /// The environment of this process at the time of the call. Entry points use it by default.
    #[must_use]
    pub fn from_process() -> Self {
        Self::new(std::env::vars_os().collect(), std::env::temp_dir())
    }

    /// An environment with exactly these variables; `TMPDIR` among them names the folder for temporary
    /// files.
    #[must_use]
    pub fn from_variables<N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let variables: BTreeMap<OsString, OsString> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let temp_folder = variables.get(OsStr::new("TMPDIR")).map_or(TEMP_FOLDER.into(), PathBuf::from);
        Self::new(variables, temp_folder)
    }

    fn new(variables: BTreeMap<OsString, OsString>, temp_folder: PathBuf) -> Self {
        let inner =
            EnvironmentParts { variables, temp_folder, text_extractor: None, redactor: OnceLock::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Adds a program that extracts the text of a document in its own process, with its leading
    /// arguments. Without one, a thread extracts the text, which a broken document can block.
    #[must_use]
    pub fn with_text_extractor(self, program: PathBuf, arguments: Vec<String>) -> Self {
        let EnvironmentParts { variables, temp_folder, .. } = &*self.inner;
        let inner = EnvironmentParts {
            variables: variables.clone(),
            temp_folder: temp_folder.clone(),
            text_extractor: Some((program, arguments)),
            redactor: OnceLock::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The value of a variable; a value that is not valid UTF-8 counts as unset.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        self.inner.variables.get(OsStr::new(name)).and_then(|value| value.to_str()).map(str::to_owned)
    }

    /// All variables, for a process that the user starts.
    pub(crate) fn all_variables(&self) -> BTreeMap<OsString, OsString> {
        self.inner.variables.clone()
    }

    /// The value of a variable for providers: if `HF_TOKEN` is not set, the token that the hub's own
    /// client stored is used.
    #[must_use]
    pub fn provider_variable(&self, name: &str) -> Option<String> {
        let set = self.variable(name).filter(|value| !value.trim().is_empty());
        set.or_else(|| {
            let hub = (name == "HF_TOKEN").then(|| self.fetch_settings().hub)?;
            hub.token.map(|token| token.reveal().to_owned())
        })
    }

    /// Masks the secrets of variables in a text for display; people put them into paths, placeholder
    /// names and other texts that are shown back to them.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.inner.redactor.get_or_init(|| self.redactor().ok()) {
            Some(redactor) => redactor.redact(text),
            None => Cow::Borrowed("not shown: it cannot be searched for secrets"),
        }
    }

    /// The secrets in variables, recognized by their names and by what they look like: a tool may print
    /// what it finds in the environment.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let texts = self.inner.variables.iter();
        let texts = texts.filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        texts.flat_map(|(name, value)| variable_secrets(name, value)).collect()
    }

    /// A redactor for the secrets in variables. What it learns later is not shared with others.
    pub(crate) fn redactor(&self) -> Result<Redactor, Problem> {
        Redactor::new(&self.secrets())
    }

    /// A function that looks up variables, for code that does not know `RunEnvironment`.
    pub(crate) fn lookup(&self) -> impl Fn(&str) -> Option<String> + Send + Sync + use<> {
        let environment = self.clone();
        move |name| environment.variable(name)
    }

    /// All variables, for processes that inherit the environment.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        self.inner.variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    pub(crate) fn temp_folder(&self) -> &Path {
        &self.inner.temp_folder
    }

    pub(crate) fn text_extractor(&self) -> TextExtractor {
        match &self.inner.text_extractor {
            Some((program, args)) => TextExtractor::Child { program: program.clone(), args: args.clone() },
            None => TextExtractor::InProcess,
        }
    }

    pub(crate) fn fetch_settings(&self) -> FetchSettings {
        FetchSettings::from_environment(&self.lookup())
    }

    pub(crate) fn http_client(&self) -> HttpClient {
        HttpClient::new(&self.lookup())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_handed_in_is_seen_and_none_of_it_is_shown() {
        let environment =
            RunEnvironment::from_variables([("LAB_API_KEY", "sk-planted-1234567890"), ("TMPDIR", "/t")]);
        assert_eq!(environment.variable("LAB_API_KEY").as_deref(), Some("sk-planted-1234567890"));
        assert_eq!(environment.variable("PATH"), None);
        assert_eq!(environment.temp_folder(), Path::new("/t"));
        assert!(!format!("{environment:?}").contains("planted"));
        let shown = environment.redact("the key sk-planted-1234567890 is refused");
        assert!(!shown.contains("planted"), "{shown}");
    }
}
