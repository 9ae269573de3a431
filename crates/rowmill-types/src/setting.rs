//! The settings that messages name. Each entry point has its own names for them.

use std::fmt;

use crate::text_marker::{MarkerPart, TextMarker};

macro_rules! setting_table {
    ($($variant:ident $constant:ident $name:literal;)*) => {
        /// A setting as named in messages. In `format!` it leaves a mark, which [`crate::DiagnosticText`] replaces by the name
        /// at the entry point.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Setting { $(#[doc = concat!("`", $name, "`")] $variant,)* }

        impl Setting {
            /// Every setting, by name.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name used in specs, and in messages without a vocabulary.
            #[must_use]
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* } }
        }

        /// The settings as constants, to stand in the text of a message: `format!("go on with {RESUME}")`.
        pub mod settings {
            use super::Setting;

            $(#[doc = concat!("`", $name, "`")] pub const $constant: Setting = Setting::$variant;)*
        }
    };
}

setting_table! {
    AcceptChanges ACCEPT_CHANGES "accept_changes";
    Agent AGENT "agent";
    AgentCard AGENT_CARD "agent_card";
    ArchiveInputs ARCHIVE_INPUTS "archive_inputs";
    Attach ATTACH "attach";
    Cache CACHE "cache";
    Columns COLUMNS "columns";
    ConnectTimeout CONNECT_TIMEOUT "connect_timeout";
    Deadline DEADLINE "deadline";
    Delimiter DELIMITER "delimiter";
    Deny DENY "deny";
    Detach DETACH "detach";
    ErrorOutput ERROR_OUTPUT "error_output";
    ExportTraces EXPORT_TRACES "export_traces";
    Extract EXTRACT "extract";
    FirstByteTimeout FIRST_BYTE_TIMEOUT "first_byte_timeout";
    Flatten FLATTEN "flatten";
    Id ID "id";
    IdField ID_FIELD "id_field";
    IdleTimeout IDLE_TIMEOUT "idle_timeout";
    IncludeInput INCLUDE_INPUT "include_input";
    Input INPUT "input";
    InputFormat INPUT_FORMAT "input_format";
    Instruction INSTRUCTION "instruction";
    JsonSchema JSON_SCHEMA "json_schema";
    KeepGoing KEEP_GOING "keep_going";
    Limit LIMIT "limit";
    Lane LANE "lane";
    MaxCost MAX_COST "max_cost";
    MaxErrors MAX_ERRORS "max_errors";
    MaxOutage MAX_OUTAGE "max_outage";
    MaxRowCost MAX_ROW_COST "max_row_cost";
    MaxRowTokens MAX_ROW_TOKENS "max_row_tokens";
    MaxTokens MAX_TOKENS "max_tokens";
    Model MODEL "model";
    Notify NOTIFY "notify";
    NotifyUrl NOTIFY_URL "notify_url";
    Offset OFFSET "offset";
    OnQuota ON_QUOTA "on_quota";
    Output OUTPUT "output";
    OutputDir OUTPUT_DIR "output_dir";
    OutputFormat OUTPUT_FORMAT "output_format";
    Overwrite OVERWRITE "overwrite";
    Parallel PARALLEL "parallel";
    Passthrough PASSTHROUGH "passthrough";
    Prompt PROMPT "prompt";
    PythonProcesses PYTHON_PROCESSES "python_processes";
    RecordTools RECORD_TOOLS "record_tools";
    RemovedRows REMOVED_ROWS "removed_rows";
    Repairs REPAIRS "repairs";
    Resume RESUME "resume";
    RetryUnknown RETRY_UNKNOWN "retry_unknown";
    RowTimeout ROW_TIMEOUT "row_timeout";
    Rpm RPM "rpm";
    Sample SAMPLE "sample";
    SampleCalls SAMPLE_CALLS "sample_calls";
    SchemaModel SCHEMA_MODEL "schema_model";
    SplitBy SPLIT_BY "split_by";
    Sql SQL "sql";
    SqlEngine SQL_ENGINE "sql_engine";
    Stub STUB "stub";
    SummaryOutput SUMMARY_OUTPUT "summary_output";
    TelemetryOutput TELEMETRY_OUTPUT "telemetry_output";
    Template TEMPLATE "template";
    Timeout TIMEOUT "timeout";
    Tpm TPM "tpm";
    Turns TURNS "turns";
    Types TYPES "types";
    Var VAR "var";
    VarFile VAR_FILE "var_file";
    VarsJson VARS_JSON "vars_json";
    Where WHERE "where";
    WorkDir WORK_DIR "work_dir";
}

impl Setting {
    /// The setting with a value: `` `--on-quota wait` `` on the command line.
    #[must_use]
    pub fn with_value(self, value: impl fmt::Display) -> SettingMention {
        SettingMention { settings: vec![(self, Some(value.to_string()))], is_bare: false }
    }

    /// The setting combined with another one: `` `--resume --accept-changes` `` on the command line.
    #[must_use]
    pub fn and(self, other: impl Into<SettingMention>) -> SettingMention {
        SettingMention::from(self).and(other)
    }

    /// The setting without backticks around it.
    #[must_use]
    pub fn without_backticks(self) -> SettingMention {
        SettingMention { is_bare: true, ..self.into() }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|setting| setting.name() == name)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        SettingMention::from(*self).fmt(out)
    }
}

/// Settings that a message names together, each with a value if it has one.
///
/// ```
/// # use rowmill_types::{Setting, DiagnosticText};
/// let hint = DiagnosticText::from(format!("{} waits for it", Setting::OnQuota.with_value("wait")));
/// assert_eq!(hint, "`on_quota: wait` waits for it");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingMention {
    /// The settings and their values.
    pub settings: Vec<(Setting, Option<String>)>,
    /// Whether it is written without backticks.
    pub is_bare: bool,
}

impl SettingMention {
    /// These settings combined with others.
    #[must_use]
    pub fn and(mut self, other: impl Into<Self>) -> Self {
        self.settings.extend(other.into().settings);
        self
    }

    /// These settings without backticks around them.
    #[must_use]
    pub fn without_backticks(self) -> Self {
        Self { is_bare: true, ..self }
    }

    /// A name as written in the message.
    #[must_use]
    pub fn quote_name(&self, name: &str) -> String {
        if self.is_bare { name.to_owned() } else { format!("`{name}`") }
    }
}

impl From<Setting> for SettingMention {
    fn from(setting: Setting) -> Self {
        Self { settings: vec![(setting, None)], is_bare: false }
    }
}

impl fmt::Display for SettingMention {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.settings.iter().map(|(setting, value)| MarkerPart {
            name: setting.name(),
            value: value.as_deref().map(Into::into),
        });
        TextMarker { parts: parts.collect(), is_bare: self.is_bare }.fmt(out)
    }
}
