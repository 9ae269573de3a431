//! Which functions are tools and hooks, and how they are run.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill_core::ports::HookKind;
use rowmill_types::{Problem, ProblemCode, Secret};

/// How long imports and `on_start` hooks may take unless the settings say otherwise.
pub const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A function in a Python file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entrypoint {
    /// The file, absolute.
    pub file: PathBuf,
    /// The function, or a dotted way to it.
    pub function: String,
    /// Who names it, such as a card's path, for messages.
    pub named_by: String,
}

impl Entrypoint {
    /// Reads `file.py:function`; a relative file is looked for in `folder`.
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
    /// The text has another form.
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
pub struct FunctionTool {
    /// The function.
    pub entrypoint: Entrypoint,
    /// Whether it may run twice.
    pub idempotent: bool,
    /// The argument that takes code as text, where the card says `variant: code`.
    pub code_argument: Option<String>,
}

/// A function that looks on or steps in.
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
pub enum Moment {
    /// Before its first call.
    Start,
    /// After its last call.
    Shutdown,
}

/// A function that is called once by each Python process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifecycleHook {
    /// The agent that it belongs to.
    pub agent: String,
    /// When.
    pub moment: Moment,
    /// The function.
    pub entrypoint: Entrypoint,
}

/// What Python is to do in a run.
#[derive(Debug, Clone)]
pub struct PythonSettings {
    /// The interpreter: a path, or a name that is looked for on the path.
    pub interpreter: PathBuf,
    /// The folder that the processes work in.
    pub folder: PathBuf,
    /// The tools.
    pub functions: Vec<FunctionTool>,
    /// The hooks, at most one of a kind for each agent.
    pub hooks: Vec<AgentHook>,
    /// What is called once by each process.
    pub lifecycle: Vec<LifecycleHook>,
    /// The most processes at once. Each belongs to one row at a time; further rows wait.
    pub processes: usize,
    /// The longest that a call or a hook may take.
    pub timeout: Option<Duration>,
    /// The longest that imports and `on_start` hooks may take together.
    pub start_timeout: Duration,
    /// Variables of the processes; those of this process unless given.
    pub variables: Option<Vec<(OsString, OsString)>>,
    /// Variables that the processes do not get all the same, such as keys of models.
    pub without: Vec<String>,
    /// What no message may show.
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
