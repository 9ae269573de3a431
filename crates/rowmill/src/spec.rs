//! What a run is to do, as plain data. Defaults are applied before it is made.

use std::path::{Path, PathBuf};

use rowmill_core::redact::Redactor;
use rowmill_core::select::RowSelection;
use rowmill_data::output::RemovedRows;
use rowmill_data::table::{InputRowInclusion, TableExportSettings, TableFormat, TableLayout, TableTarget};
use rowmill_data::{ColumnTypeSetting, InputSpec, SqlEngine};
use rowmill_store::file::WorkFolder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notify::NotifyOptions;
use crate::spec_json::SpecVersion;
use crate::work_spec::WorkSpec;

/// Everything that defines a run, as plain data.
///
/// It can be written as JSON and read back without loss. Paths are kept as given; relative ones are
/// resolved from the current folder. It contains no credentials: `${NAME}` in the settings of providers
/// and servers is looked up in the environment when the run is prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Version of the spec format.
    pub version: SpecVersion,
    /// Input rows.
    pub input: InputSpec,
    /// Query, condition and columns that are applied to the input.
    #[serde(default)]
    pub query: InputQuery,
    /// Which of the remaining rows are processed.
    #[serde(default)]
    pub selection: RowSelection,
    /// Field that identifies rows; defaults to row numbers, or to paths if rows are files.
    #[serde(default)]
    pub id_field: Option<String>,
    /// Files that are sent with rows.
    #[serde(default)]
    pub files: AttachmentOptions,
    /// How a row becomes a prompt.
    #[serde(default)]
    pub prompt: PromptSource,
    /// Source of the instruction (system prompt): a path or a `file://`, `http(s)://` or `hf://` URL.
    #[serde(default)]
    pub instruction: Option<String>,
    /// Variables of the instruction.
    #[serde(default)]
    pub variables: InstructionVariableOptions,
    /// Models, agents and limits.
    #[serde(default = "WorkSpec::for_file_run")]
    pub work: WorkSpec,
    /// JSON Schema that results must satisfy.
    #[serde(default)]
    pub schema: ResultSchemaSource,
    /// Where results go.
    pub output: OutputTarget,
    /// What to do if the output exists.
    #[serde(default)]
    pub existing: ExistingOutput,
    /// On a resume, what to do with the envelopes of rows that are no longer in the input.
    #[serde(default)]
    pub removed_rows: RemovedRows,
    /// Whether envelopes contain the input row.
    #[serde(default)]
    pub include_input: bool,
    /// File that gets a copy of the envelopes of failed rows.
    #[serde(default)]
    pub error_output: Option<PathBuf>,
    /// File that gets times and tokens of every row.
    #[serde(default)]
    pub telemetry_output: Option<PathBuf>,
    /// File that gets the summary.
    #[serde(default)]
    pub summary_output: Option<PathBuf>,
    /// Folder that gets the trace of every row.
    #[serde(default)]
    pub traces: Option<PathBuf>,
    /// Folder of the ledger; defaults to a folder next to the output.
    #[serde(default)]
    pub work_dir: Option<PathBuf>,
    /// What to keep in the work folder when all rows are ok.
    #[serde(default)]
    pub keep_temp: KeptFiles,
    /// Who is notified of the end of the run.
    #[serde(default)]
    pub notify: NotifyOptions,
    /// Configuration files that settings were read from, so that they are not overwritten.
    #[serde(default)]
    pub config_files: Vec<PathBuf>,
}

/// What to keep in the work folder of a run whose rows are all ok.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeptFiles {
    /// The ledger too.
    Ledger,
    /// The header, which a resume needs for the settings and a plan for the usage of rows; for a table,
    /// also the envelopes that it was made from.
    #[default]
    Header,
    /// Nothing.
    Nothing,
}

/// Query, condition and columns that are applied to the input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InputQuery {
    /// SQL query whose result is used as the input.
    pub sql: Option<String>,
    /// SQL condition that rows must satisfy.
    pub condition: Option<String>,
    /// Fields to keep; all if empty.
    pub columns: Vec<String>,
    /// Column types for `sql` and `condition`.
    pub types: Vec<ColumnTypeSetting>,
    /// Engine that runs `sql`.
    pub engine: SqlEngine,
}

impl InputQuery {
    /// Whether every row is seen as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sql.is_none() && self.condition.is_none() && self.columns.is_empty()
    }

    /// The query with all that decides what it gives: a run with another one is another run.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        Some(format!("{}{}", self.sql.as_ref()?, self.settings_text()))
    }

    /// What decides, beside its text, what the query gives; nothing where nothing was said.
    pub(crate) fn settings_text(&self) -> String {
        let mut settings = String::new();
        for ColumnTypeSetting { column, type_name } in &self.types {
            settings.push_str(&format!("\n-- type of {column}: {type_name}"));
        }
        if self.engine == SqlEngine::DuckDb {
            settings.push_str("\n-- engine: duckdb");
        }
        settings
    }
}

/// Files that are sent with rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AttachmentOptions {
    /// Fields that contain file paths.
    pub attach: Vec<String>,
    /// Whether to send the text of the files instead of the files.
    pub extract_text: bool,
    /// Folder that archives every file that is sent.
    pub archive: Option<PathBuf>,
    /// Whether `document_ids` was given explicitly, which is only valid for documents.
    pub id_given: bool,
}

/// How a row becomes a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PromptSource {
    /// The whole row as JSON.
    #[default]
    Default,
    /// An inline template.
    Inline(String),
    /// Source of a template: a path or a `file://`, `http(s)://` or `hf://` URL.
    Source(String),
}

/// JSON Schema that results must satisfy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ResultSchemaSource {
    /// No schema: results are text.
    #[default]
    None,
    /// Source of a JSON Schema: a path or a `file://`, `http(s)://` or `hf://` URL.
    Source(String),
    /// A pydantic model, as `module.path:Class`.
    PythonModel(String),
}

/// Where results go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OutputTarget {
    /// A JSON Lines file of envelopes, whatever its extension.
    File(PathBuf),
    /// Envelopes on standard output.
    Stdout,
    /// A table, created from the envelopes when the run ends.
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
    pub layout: TableLayout,
}

impl OutputTarget {
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
            Self::Table(_) => Some(WorkFolder::envelopes_path_in(work_folder)),
        }
    }
}

impl TableOutput {
    /// The work folder of a run with this output, where nothing else is said.
    pub(crate) fn work_folder(&self) -> Option<PathBuf> {
        match &self.target {
            TableTarget::File(path) => Some(WorkFolder::default_path(path)),
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
        self.layout == TableLayout::Flat || splits_by_input
    }

    /// What the table is to look like.
    pub(crate) fn settings(
        &self,
        input: InputRowInclusion,
        schema: Option<String>,
        redactor: Redactor,
    ) -> TableExportSettings {
        TableExportSettings { format: self.format, layout: self.layout, input, schema, redactor }
    }
}

/// The work folder of a run whose output is a folder.
pub(crate) const FOLDER_IN_OUTPUT: &str = ".rowmill";

impl RunSpec {
    /// Everything in a row's place: the whole row is the prompt, text is the result, and nothing
    /// that exists is touched. What is to be different is set afterwards, the model above all.
    #[must_use]
    pub fn new(input: InputSpec, output: OutputTarget) -> Self {
        Self {
            version: SpecVersion,
            input,
            query: InputQuery::default(),
            selection: RowSelection::default(),
            id_field: None,
            files: AttachmentOptions::default(),
            prompt: PromptSource::Default,
            instruction: None,
            variables: InstructionVariableOptions::default(),
            work: WorkSpec::default(),
            schema: ResultSchemaSource::None,
            output,
            existing: ExistingOutput::Refuse,
            removed_rows: RemovedRows::default(),
            include_input: false,
            error_output: None,
            telemetry_output: None,
            summary_output: None,
            traces: None,
            work_dir: None,
            keep_temp: KeptFiles::default(),
            notify: NotifyOptions::default(),
            config_files: Vec::new(),
        }
    }

    /// The work folder, where the output tells it or the user names it.
    pub(crate) fn work_folder(&self) -> Option<PathBuf> {
        self.work_dir.clone().or_else(|| match &self.output {
            OutputTarget::File(path) => Some(WorkFolder::default_path(path)),
            OutputTarget::Stdout => None,
            OutputTarget::Table(table) => table.work_folder(),
        })
    }

    /// Whether every row of the run is worked on. What `--sql` gives are all rows there are, unless ids
    /// let another query go on with the run.
    pub(crate) fn selects_all(&self) -> bool {
        let may_differ = self.query.sql.is_some() && self.id_field.is_some();
        self.selection == RowSelection::default() && self.query.condition.is_none() && !may_differ
    }

    /// Whether envelopes hold the input row: because the user wants it, or the table needs it.
    pub(crate) fn keeps_input(&self) -> bool {
        self.include_input || matches!(&self.output, OutputTarget::Table(table) if table.needs_input())
    }
}

/// What to do if the output exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExistingOutput {
    /// Report an error.
    #[default]
    Refuse,
    /// Resume its run; changed settings are an error.
    Resume,
    /// Resume its run, even with changed settings.
    ResumeChanged,
    /// Overwrite it.
    Overwrite,
}

impl ExistingOutput {
    /// Whether an earlier run is gone on with.
    #[must_use]
    pub fn resumes(self) -> bool {
        matches!(self, Self::Resume | Self::ResumeChanged)
    }
}

/// Variables of the instruction, as given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "VariableOptions")]
pub struct InstructionVariableOptions {
    /// `name=value` entries.
    pub pairs: Vec<String>,
    /// `name=path` entries.
    pub files: Vec<String>,
    /// A file with one JSON object of strings.
    pub json: Option<PathBuf>,
}
