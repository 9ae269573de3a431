//! Settings: which functions are tools and hooks, and how they are run.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill_core::ports::HookKind;
use rowmill_types::{Problem, ProblemCode, Secret};

/// The default timeout for imports and `on_start` hooks.
pub const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A function in a Python file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entrypoint {
    /// The file, absolute.
    pub file: PathBuf,
    /// The function, or a dotted path to it.
    pub function: String,
    /// What names it, such as a card's path, for messages.
    pub named_by: String,
}

impl Entrypoint {
    /// Parses `file.py:function`; a relative file is resolved against `folder`.
    ///
    /// ```
    /// # use rowmill_tools::Entrypoint;
    /// let entrypoint = Entrypoint::parse("tools.py:add", "/cards".as_ref(), "/cards/a.md").unwrap();
    /// assert_eq!(entrypoint.to_string(), "/cards/tools.py:add");
    /// assert!(Entrypoint::parse("tools.py", "/cards".as_ref(), "/cards/a.md").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// The text has another format.
    pub fn parse(text: &str, folder: &Path, named_by: &str) -> Result<Self, Problem> {
        let parts = text.rsplit_once(':').map(|(file, function)| (file.trim(), function.trim()));
        match parts.filter(|(file, function)| !file.is_empty() && !function.is_empty()) {
            Some((file, function)) => Ok(Self {
                file: folder.join(file),
                function: function.to_owned(),
                named_by: named_by.to_owned(),
            }),
            None => {
                let message = format!("`{named_by}` names the function `{text}`, which has no function name");
                Err(Problem::new(ProblemCode::FunctionUnusable, message)
                    .hint("write the file and its function: `file.py:function`"))
            }
        }
    }
}

impl fmt::Display for Entrypoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file.display(), self.function)
    }
}

/// A function that is offered to models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonFunctionTool {
    /// The function.
    pub entrypoint: Entrypoint,
    /// Whether it may run twice.
    pub idempotent: bool,
    /// The argument that takes code as text, if the card says `variant: code`.
    pub code_argument: Option<String>,
}

/// A function that observes a step or changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHook {
    /// The agent.
    pub agent: String,
    /// When it is called.
    pub kind: HookKind,
    /// The function.
    pub entrypoint: Entrypoint,
}

/// A moment in the life of a Python process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessMoment {
    /// Before its first call.
    Start,
    /// After its last call.
    Shutdown,
}

/// A function that is called once by each Python process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonLifecycleHook {
    /// The agent that it belongs to.
    pub agent: String,
    /// When.
    pub moment: ProcessMoment,
    /// The function.
    pub entrypoint: Entrypoint,
}

/// The settings of Python in a run.
#[derive(Debug, Clone)]
pub struct PythonSettings {
    /// The interpreter: a path, or a name that is searched for on the path.
    pub interpreter: PathBuf,
    /// The folder that the processes work in.
    pub folder: PathBuf,
    /// The tools.
    pub functions: Vec<PythonFunctionTool>,
    /// The hooks, at most one of a kind for each agent.
    pub hooks: Vec<AgentHook>,
    /// The functions that each process calls once.
    pub lifecycle: Vec<PythonLifecycleHook>,
    /// The maximum number of processes. Each belongs to one row at a time; further rows wait.
    pub processes: usize,
    /// The timeout of a call or a hook.
    pub timeout: Option<Duration>,
    /// The timeout for imports and `on_start` hooks together.
    pub start_timeout: Duration,
    /// The variables of the processes; those of this process if absent.
    pub variables: Option<Vec<(OsString, OsString)>>,
    /// Variables that the processes never get, such as keys of models.
    pub without: Vec<String>,
    /// The values that no message may show.
    pub secrets: Vec<Secret>,
}

impl PythonSettings {
    /// Settings without functions.
    #[must_use]
    pub fn new(interpreter: PathBuf, folder: PathBuf) -> Self {
        Self {
            interpreter,
            folder,
            functions: Vec::new(),
            hooks: Vec::new(),
            lifecycle: Vec::new(),
            processes: 1,
            timeout: None,
            start_timeout: START_TIMEOUT,
            variables: None,
            without: Vec::new(),
            secrets: Vec::new(),
        }
    }

    /// Whether there is anything to do, and so a reason to start Python.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.hooks.is_empty() && self.lifecycle.is_empty()
    }
}
