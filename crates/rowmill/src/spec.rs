//! What a run is to do, as plain data. Defaults are applied before it is made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill_core::limits::BudgetLimits;
use rowmill_core::select::Selection;
use rowmill_data::output::RemovedRows;
use rowmill_data::table::{InputPart, Layout, TableFormat, TableSettings, TableTarget};
use rowmill_data::{ColumnType, InputSpec, SqlEngine};
use rowmill_store::file::WorkFolder;
use rowmill_tools::McpServerConfig;
use rowmill_types::Problem;

use crate::agents::environment_redactor;
use crate::work::WorkSpec;

/// Everything that defines a run.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// Where rows come from.
    pub input: InputSpec,
    /// Which of them are seen at all, and what of them.
    pub query: Query,
    /// Which of them are taken.
    pub selection: Selection,
    /// The field that names rows; row numbers do without it, and paths where rows are files.
    pub id_field: Option<String>,
    /// The files that go with rows.
    pub files: FileFlags,
    /// How a row becomes a prompt.
    pub prompt: Prompt,
    /// The source of the instruction: a path, `file://`, `http(s)://` or `hf://`.
    pub instruction: Option<String>,
    /// Variables of the instruction.
    pub variables: VariableFlags,
    /// What answers rows, and within which limits.
    pub work: WorkSpec,
    /// What results must satisfy.
    pub schema: Schema,
    /// Where results go.
    pub output: Output,
    /// What may be done with an output that exists.
    pub existing: Existing,
    /// What becomes of the envelopes of rows that are not in the input any more, at a resume.
    pub removed_rows: RemovedRows,
    /// Whether envelopes carry the input row.
    pub include_input: bool,
    /// A copy of the envelopes of failed rows.
    pub error_output: Option<PathBuf>,
    /// Times and tokens of every row.
    pub telemetry_output: Option<PathBuf>,
    /// The summary as a file.
    pub summary_output: Option<PathBuf>,
    /// The folder that gets the trace of every row.
    pub traces: Option<PathBuf>,
    /// Where the ledger is kept; beside the output without it.
    pub work_dir: Option<PathBuf>,
    /// What is left in the work folder of a run whose rows are all ok.
    pub keep_temp: KeepTemp,
    /// Configuration files that the settings came from, so that nothing is written over them.
    pub config_files: Vec<PathBuf>,
}

/// What a run whose rows are all ok leaves in its work folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepTemp {
    /// The ledger too.
    Ledger,
    /// The header, from which a resume knows the settings and a plan what rows used; of a table
    /// also the envelopes that it was made from.
    #[default]
    Header,
    /// Nothing.
    Nothing,
}

/// The agents of a run and their tools, as given.
#[derive(Debug, Clone)]
pub struct AgentFlags {
    /// Cards: files, folders and addresses.
    pub cards: Vec<String>,
    /// The card that works on rows, where several could.
    pub agent: Option<String>,
    /// Whether the model string was given, and replaces that of the worker's card.
    pub model_given: bool,
    /// How many model calls a row may make in all.
    pub turns: Option<u32>,
    /// Whether every finished turn is kept, to go on from after a crash.
    pub checkpoint_turns: bool,
    /// Whether rows are worked on again whose tools may have run.
    pub retry_unknown: bool,
    /// What one row may spend.
    pub row_budget: BudgetLimits,
    /// Tools with recorded answers, as `tool=source`.
    pub stubs: Vec<String>,
    /// Tools whose result is the row's result, by names or patterns.
    pub passthrough: Vec<String>,
    /// Tools that are not called, by names or patterns.
    pub deny: Vec<String>,
    /// A folder that gets what tools give, for `--stub`.
    pub record_tools: Option<PathBuf>,
    /// How long a tool may take, where nothing else says so.
    pub tool_timeout: Duration,
    /// The most bytes of text that a tool's result brings into a conversation.
    pub tool_result_limit: usize,
    /// Whether the worker may run commands.
    pub shell: bool,
    /// The most Python processes at once, where that is said.
    pub python_processes: Option<usize>,
    /// Keys of models that Python functions get all the same, by the names of their variables.
    pub python_env: Vec<String>,
    /// MCP servers of the configuration file.
    pub servers: BTreeMap<String, McpServerConfig>,
    /// The folder of that file.
    pub config_folder: PathBuf,
}

impl Default for AgentFlags {
    fn default() -> Self {
        Self {
            cards: Vec::new(),
            agent: None,
            model_given: false,
            turns: None,
            checkpoint_turns: false,
            retry_unknown: false,
            row_budget: BudgetLimits::default(),
            stubs: Vec::new(),
            passthrough: Vec::new(),
            deny: Vec::new(),
            record_tools: None,
            tool_timeout: Duration::from_secs(60),
            tool_result_limit: 256 * 1024,
            shell: false,
            python_processes: None,
            python_env: Vec::new(),
            servers: BTreeMap::new(),
            config_folder: PathBuf::new(),
        }
    }
}

/// Which rows of the input are seen, and what of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// A query whose result is the input.
    pub sql: Option<String>,
    /// A condition that rows must satisfy.
    pub condition: Option<String>,
    /// The fields that rows keep; all where there are none.
    pub columns: Vec<String>,
    /// The types that columns are said to have for `sql` and `condition`.
    pub types: Vec<ColumnType>,
    /// What runs `sql`.
    pub engine: SqlEngine,
}

impl Query {
    /// Whether every row is seen as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sql.is_none() && self.condition.is_none() && self.columns.is_empty()
    }

    /// The query with all that decides what it gives: a run with another one is another run.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        Some(format!("{}{}", self.sql.as_ref()?, self.settings()))
    }

    /// What decides, beside its text, what the query gives; nothing where nothing was said.
    pub(crate) fn settings(&self) -> String {
        let mut settings = String::new();
        for ColumnType { column, type_name } in &self.types {
            settings.push_str(&format!("\n-- type of {column}: {type_name}"));
        }
        if self.engine == SqlEngine::DuckDb {
            settings.push_str("\n-- engine: duckdb");
        }
        settings
    }
}

/// The files that go with rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFlags {
    /// Fields that name files.
    pub attach: Vec<String>,
    /// Whether their text is sent instead of them.
    pub extract_text: bool,
    /// The program that extracts text in a process of its own, with its first arguments;
    /// without it a thread does.
    pub extractor: Option<(PathBuf, Vec<String>)>,
    /// A folder that keeps what was sent.
    pub archive: Option<PathBuf>,
    /// Whether it was said what tells documents apart, which only documents have a use for.
    pub id_given: bool,
}

/// How a row becomes a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// The whole row as JSON.
    Default,
    /// A template given in place.
    Inline(String),
    /// The source of a template: a path, `file://`, `http(s)://` or `hf://`.
    Source(String),
}

/// What results must satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    /// Nothing: results are text.
    None,
    /// The source of a JSON Schema: a path, `file://`, `http(s)://` or `hf://`.
    Source(String),
    /// A pydantic model, as `module.path:Class`.
    PythonModel(String),
}

/// Where results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A file of envelopes.
    File(PathBuf),
    /// Envelopes on standard output.
    Stdout,
    /// A table, made from the envelopes when the run ends.
    Table(TableOutput),
}

/// A table of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOutput {
    /// Where it goes.
    pub target: TableTarget,
    /// How it is written.
    pub format: TableFormat,
    /// How its columns are laid out.
    pub layout: Layout,
}

impl Output {
    /// What the user named.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path)
            | Self::Table(TableOutput {
                target: TableTarget::File(path) | TableTarget::Folder { path, .. },
                ..
            }) => path.to_string_lossy().into_owned(),
            Self::Stdout | Self::Table(TableOutput { target: TableTarget::Stdout, .. }) => "-".into(),
        }
    }

    /// Whether results go to standard output.
    #[must_use]
    pub fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout | Self::Table(TableOutput { target: TableTarget::Stdout, .. }))
    }

    /// The file that gets the envelopes while the run goes on, for a run with this work folder.
    pub(crate) fn envelopes(&self, work_folder: &Path) -> Option<PathBuf> {
        match self {
            Self::File(path) => Some(path.clone()),
            Self::Stdout => None,
            Self::Table(_) => Some(WorkFolder::envelopes_in(work_folder)),
        }
    }
}

impl TableOutput {
    /// The work folder of a run with this output, where nothing else is said.
    pub(crate) fn work_folder(&self) -> Option<PathBuf> {
        match &self.target {
            TableTarget::File(path) => Some(WorkFolder::beside(path)),
            TableTarget::Folder { path, .. } => Some(path.join(FOLDER_IN_OUTPUT)),
            TableTarget::Stdout => None,
        }
    }

    /// Whether the table is made with values of the input rows.
    fn needs_input(&self) -> bool {
        let splits_by_input = match &self.target {
            TableTarget::Folder { split_by, .. } => {
                !["result.", "error."].iter().any(|part| split_by.starts_with(part))
            }
            TableTarget::File(_) | TableTarget::Stdout => false,
        };
        self.layout == Layout::Flat || splits_by_input
    }

    /// What the table is to look like.
    pub(crate) fn settings(
        &self,
        input: InputPart,
        schema: Option<String>,
    ) -> Result<TableSettings, Problem> {
        let redactor = environment_redactor()?;
        Ok(TableSettings { format: self.format, layout: self.layout, input, schema, redactor })
    }
}

/// The work folder of a run whose output is a folder.
pub(crate) const FOLDER_IN_OUTPUT: &str = ".rowmill";

impl RunSpec {
    /// Everything in a row's place: the whole row is the prompt, text is the result, and nothing
    /// that exists is touched. What is to be different is set afterwards, the model above all.
    #[must_use]
    pub fn new(input: InputSpec, output: Output) -> Self {
        Self {
            input,
            query: Query::default(),
            selection: Selection::default(),
            id_field: None,
            files: FileFlags::default(),
            prompt: Prompt::Default,
            instruction: None,
            variables: VariableFlags::default(),
            work: WorkSpec::default(),
            schema: Schema::None,
            output,
            existing: Existing::Refuse,
            removed_rows: RemovedRows::default(),
            include_input: false,
            error_output: None,
            telemetry_output: None,
            summary_output: None,
            traces: None,
            work_dir: None,
            keep_temp: KeepTemp::default(),
            config_files: Vec::new(),
        }
    }

    /// The work folder, where the output tells it or the user names it.
    pub(crate) fn work_folder(&self) -> Option<PathBuf> {
        self.work_dir.clone().or_else(|| match &self.output {
            Output::File(path) => Some(WorkFolder::beside(path)),
            Output::Stdout => None,
            Output::Table(table) => table.work_folder(),
        })
    }

    /// Whether every row of the run is worked on. What `--sql` gives are all rows there are, unless ids
    /// let another query go on with the run.
    pub(crate) fn selects_all(&self) -> bool {
        let may_differ = self.query.sql.is_some() && self.id_field.is_some();
        self.selection == Selection::default() && self.query.condition.is_none() && !may_differ
    }

    /// Whether envelopes hold the input row: because the user wants it, or the table needs it.
    pub(crate) fn keeps_input(&self) -> bool {
        self.include_input || matches!(&self.output, Output::Table(table) if table.needs_input())
    }
}

/// What may be done with an output that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Nothing: that is an error.
    Refuse,
    /// Go on with it; changed settings are an error.
    Resume,
    /// Go on with it, even with changed settings.
    ResumeChanged,
    /// Replace it.
    Overwrite,
}

impl Existing {
    /// Whether an earlier run is gone on with.
    #[must_use]
    pub fn resumes(self) -> bool {
        matches!(self, Self::Resume | Self::ResumeChanged)
    }
}

/// Variables of the instruction, as given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VariableFlags {
    /// `name=value` entries.
    pub pairs: Vec<String>,
    /// `name=path` entries.
    pub files: Vec<String>,
    /// A file with one JSON object of strings.
    pub json: Option<PathBuf>,
}
