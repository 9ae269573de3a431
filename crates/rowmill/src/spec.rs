//! What a run is to do, as plain data. Defaults are applied before it is made.

use std::path::{Path, PathBuf};

use rowmill_core::redact::Redactor;
use rowmill_core::select::Selection;
use rowmill_data::output::RemovedRows;
use rowmill_data::table::{InputPart, Layout, TableFormat, TableSettings, TableTarget};
use rowmill_data::{ColumnType, InputSpec, SqlEngine};
use rowmill_store::file::WorkFolder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec_json::SpecVersion;
use crate::work::WorkSpec;

/// Everything that defines a run, as plain data.
///
/// It can be written as JSON and read back, equal. Paths are kept as given, and relative ones begin at the
/// working folder. It holds no credential: what `${NAME}` stands for in the settings of providers and servers
/// is looked up in the environment when the run is prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The version of this form of specs.
    pub version: SpecVersion,
    /// Where rows come from.
    pub input: InputSpec,
    /// Which of them are seen at all, and what of them.
    #[serde(default)]
    pub query: Query,
    /// Which of them are taken.
    #[serde(default)]
    pub selection: Selection,
    /// The field that names rows; row numbers do without it, and paths where rows are files.
    #[serde(default)]
    pub id_field: Option<String>,
    /// The files that go with rows.
    #[serde(default)]
    pub files: FileFlags,
    /// How a row becomes a prompt.
    #[serde(default)]
    pub prompt: Prompt,
    /// The source of the instruction: a path, `file://`, `http(s)://` or `hf://`.
    #[serde(default)]
    pub instruction: Option<String>,
    /// Variables of the instruction.
    #[serde(default)]
    pub variables: VariableFlags,
    /// What answers rows, and within which limits.
    #[serde(default = "WorkSpec::usual")]
    pub work: WorkSpec,
    /// What results must satisfy.
    #[serde(default)]
    pub schema: Schema,
    /// Where results go.
    pub output: Output,
    /// What may be done with an output that exists.
    #[serde(default)]
    pub existing: Existing,
    /// What becomes of the envelopes of rows that are not in the input any more, at a resume.
    #[serde(default)]
    pub removed_rows: RemovedRows,
    /// Whether envelopes carry the input row.
    #[serde(default)]
    pub include_input: bool,
    /// A copy of the envelopes of failed rows.
    #[serde(default)]
    pub error_output: Option<PathBuf>,
    /// Times and tokens of every row.
    #[serde(default)]
    pub telemetry_output: Option<PathBuf>,
    /// The summary as a file.
    #[serde(default)]
    pub summary_output: Option<PathBuf>,
    /// The folder that gets the trace of every row.
    #[serde(default)]
    pub traces: Option<PathBuf>,
    /// Where the ledger is kept; beside the output without it.
    #[serde(default)]
    pub work_dir: Option<PathBuf>,
    /// What is left in the work folder of a run whose rows are all ok.
    #[serde(default)]
    pub keep_temp: KeepTemp,
    /// Configuration files that the settings came from, so that nothing is written over them.
    #[serde(default)]
    pub config_files: Vec<PathBuf>,
}

/// What a run whose rows are all ok leaves in its work folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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

/// Which rows of the input are seen, and what of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileFlags {
    /// Fields that name files.
    pub attach: Vec<String>,
    /// Whether their text is sent instead of them.
    pub extract_text: bool,
    /// A folder that keeps what was sent.
    pub archive: Option<PathBuf>,
    /// Whether it was said what tells documents apart, which only documents have a use for.
    pub id_given: bool,
}

/// How a row becomes a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Prompt {
    /// The whole row as JSON.
    #[default]
    Default,
    /// A template given in place.
    Inline(String),
    /// The source of a template: a path, `file://`, `http(s)://` or `hf://`.
    Source(String),
}

/// What results must satisfy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Schema {
    /// Nothing: results are text.
    #[default]
    None,
    /// The source of a JSON Schema: a path, `file://`, `http(s)://` or `hf://`.
    Source(String),
    /// A pydantic model, as `module.path:Class`.
    PythonModel(String),
}

/// Where results go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Output {
    /// A file of envelopes, one JSON line each, whatever its name ends in.
    File(PathBuf),
    /// Envelopes on standard output.
    Stdout,
    /// A table, made from the envelopes when the run ends.
    Table(TableOutput),
}

/// A table of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableOutput {
    /// Where it goes.
    pub target: TableTarget,
    /// How it is written.
    pub format: TableFormat,
    /// How its columns are laid out.
    #[serde(default)]
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
        redactor: Redactor,
    ) -> TableSettings {
        TableSettings { format: self.format, layout: self.layout, input, schema, redactor }
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
            version: SpecVersion,
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Existing {
    /// Nothing: that is an error.
    #[default]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VariableFlags {
    /// `name=value` entries.
    pub pairs: Vec<String>,
    /// `name=path` entries.
    pub files: Vec<String>,
    /// A file with one JSON object of strings.
    pub json: Option<PathBuf>,
}
