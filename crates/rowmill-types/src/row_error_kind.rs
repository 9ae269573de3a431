//! Why a row failed: a closed list, each kind with an explanation for the error index.

use serde::{Deserialize, Serialize};

use crate::{DiagnosticText, SettingVocabulary};

macro_rules! error_kinds {
    ($($variant:ident = $name:literal, $what:literal, $next:literal;)*) => {
        /// The `type` of a failed row's error. Names never change meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum RowErrorKind { $(#[doc = $what] $variant,)* }

        impl RowErrorKind {
            /// Every kind, in the order of the error index.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name used in envelopes.
            #[must_use]
            pub fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* } }

            /// What happened, as a sentence.
            #[must_use]
            pub fn description(self) -> DiagnosticText {
                DiagnosticText::from_template(match self { $(Self::$variant => $what,)* })
            }

            /// What the user can do about it.
            #[must_use]
            pub fn advice(self) -> DiagnosticText {
                DiagnosticText::from_template(match self { $(Self::$variant => $next,)* })
            }
        }
    };
}

error_kinds! {
    InvalidJson = "InvalidJSON", "The line is not valid JSON or not valid UTF-8.",
        "Fix the line in the input and run again with {resume} (and {accept_changes}, unless rows have an {id_field}).";
    InvalidRow = "InvalidRow", "The record was read but is not a row: not an object, a broken header, too many columns or too long.",
        "Fix the record in the input and run again with {resume} (and {accept_changes}, unless rows have an {id_field}).";
    MissingIdField = "MissingIdField", "The row lacks the field named by {id_field}.",
        "Add the field to the row and {do:run_again}, or name another field and run with {overwrite}.";
    InvalidIdField = "InvalidIdField", "The id field is empty, null, an array or an object (on standard input, where ids cannot be checked first).",
        "Give the row a non-empty text or number as its id.";
    DuplicateId = "DuplicateId", "An earlier row of standard input has the same id.",
        "Make ids unique, or omit {id_field}.";
    MissingTemplateField = "MissingTemplateField", "The template names a field that the row does not have; nothing was sent.",
        "Correct the template or the row and {do:run_again_changed}.";
    Attachment = "AttachmentError", "A file that goes with the row is missing, unreadable, empty, too large, or of a type that the model does not accept; nothing was sent.",
        "Fix the file and {do:run_again}; or send its text: {resume accept_changes extract: text}.";
    StructuredOutput = "StructuredOutputError", "The answer does not satisfy the JSON Schema, even after the allowed number of repairs.",
        "Look at `raw_text` in the error; raise {repairs} and {do:run_again}, or relax the schema or choose a stronger model with {resume accept_changes}.";
    Refusal = "Refusal", "The model refused to answer.",
        "Read `raw_text`; change the instruction or the row and {do:run_again_changed}.";
    EmptyAnswer = "EmptyAnswer", "The model returned no text.",
        "Check the prompt; a reasoning model may have used all of `max_tokens` for thinking.";
    OutputTruncated = "OutputTruncated", "The answer was truncated at the token limit; the part that was received is in `raw_text`.",
        "Raise `max_tokens` in the model string, e.g. `?max_tokens=4096`, and {do:run_again_changed}.";
    ContentFilter = "ContentFilter", "The provider stopped the answer with a content filter.",
        "Change the row or the instruction, or use another provider, and {do:run_again_changed}.";
    RateLimited = "RateLimited", "The provider reported that the rate limit is reached (429). This fails calls, not rows: the row waits and is sent again.",
        "No action needed: rowmill slows down automatically. Use {rpm} and {tpm} for limits that the provider does not report.";
    QuotaExhausted = "QuotaExhausted", "The account's quota, credit or daily limit is used up. This fails calls, not rows: they wait or stay unsent.",
        "Raise the quota or wait until it renews; continue a stopped run with {resume}.";
    ServerError = "ServerError", "The provider kept failing (5xx, 408, 409 or 529) until all retries were used.",
        "Run again with {resume} when the provider has recovered.";
    Timeout = "Timeout", "No complete answer arrived within {timeout}, in any attempt. The provider may have billed for it.",
        "Raise {timeout}, or lower {parallel} if the server is overloaded.";
    Connection = "ConnectionError", "The connection failed, or was lost before the answer was complete.",
        "Check the base URL and that the server is up.";
    InvalidResponse = "InvalidResponse", "The provider's answer could not be read: truncated, not JSON, or without required fields.",
        "Run again with {resume}; if it persists, check that the base URL speaks the chosen protocol.";
    BadRequest = "BadRequest", "The provider rejected this request (a 4xx that a retry cannot fix).",
        "Read the message: often the prompt is too long or a parameter is not supported by the model.";
    Unauthorized = "AuthenticationError", "The provider rejected the credential; the run was stopped.",
        "Set the right key (`rowmill models` shows which variable) and {do:run_again}.";
    ModelNotFound = "ModelNotFound", "The provider does not know the model, or has nothing at the path of the base URL; the run was stopped.",
        "Correct {model} or the base URL and {do:run_again_changed}.";
    TurnLimit = "TurnLimit", "The row reached its limit of model calls without a result.",
        "Raise {turns} or the card's `max_iterations`; `raw_text` has the last answer.";
    AnswersDiscarded = "AnswersDiscarded", "Every answer that a `MAKER` agent received was longer than its card's `red_flag_max_length`.",
        "Raise `red_flag_max_length`, or have the instruction ask for shorter answers.";
    RowLimit = "RowLimit", "The next call could have exceeded the row's cost or token limit.",
        "Raise {max_row_cost} or {max_row_tokens}, or limit answers with `?max_tokens=` in the model string.";
    Hook = "HookError", "A hook of the agent card failed.",
        "Read the message, correct the hook and {do:run_again_changed}.";
    Prompt = "PromptError", "The prompt could not be rendered: it would be too large, or the program's own prompt function failed on this item; nothing was sent.",
        "Correct the function or the item and run again.";
    Function = "FunctionError", "The program's own function that processes items failed.",
        "Read the message, correct the function and run again.";
    Output = "OutputError", "The program's own function that turns answers into results failed; the answer is in the ledger, if there is one.",
        "Correct the function; a resume applies it to the saved answer and sends nothing.";
    OutcomeUnknown = "OutcomeUnknown", "The run was interrupted during a call of a tool that must not run twice; whether it took effect is unknown.",
        "Check what the tool did; then use {resume retry_unknown} to process the row again from the start.";
    Interrupted = "Interrupted", "The run was aborted while this row was being worked on; it is unknown whether the call was billed.",
        "Run again with {resume}.";
    RunStopped = "RunStopped", "The run stopped before this row was finished; every call made for it was answered and is counted.",
        "Run again with {resume}.";
    Internal = "InternalError", "rowmill itself failed on this row; other rows are not affected.",
        "Please report it with the message.";
}

impl RowErrorKind {
    /// Whether the row itself or the template must be corrected before another attempt can help.
    #[must_use]
    pub fn needs_correction(self) -> bool {
        matches!(
            self,
            Self::InvalidJson
                | Self::InvalidRow
                | Self::MissingIdField
                | Self::InvalidIdField
                | Self::DuplicateId
                | Self::MissingTemplateField
        )
    }
}

impl std::str::FromStr for RowErrorKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|kind| kind.name() == name);
        found.copied().ok_or_else(|| format!("there is no error kind `{name}`"))
    }
}

impl std::fmt::Display for RowErrorKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

impl Serialize for RowErrorKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for RowErrorKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<str>::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

/// The `error` field of an envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowError {
    /// The kind of failure.
    #[serde(rename = "type")]
    pub kind: RowErrorKind,
    /// What happened, for users.
    pub message: DiagnosticText,
    /// The HTTP status, if one was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's own error code, if it sent one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How many calls were made for the row, if any were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The text of the model's answer, kept so that users can see why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_text: Option<String>,
}

impl RowError {
    /// An error without any call.
    #[must_use]
    pub fn new(kind: RowErrorKind, message: impl Into<DiagnosticText>) -> Self {
        Self { kind, message: message.into(), status: None, code: None, attempts: None, raw_text: None }
    }

    /// The error worded for an entry point.
    #[must_use]
    pub fn with_vocabulary(self, vocabulary: SettingVocabulary) -> Self {
        Self { message: self.message.with_vocabulary(vocabulary), ..self }
    }
}
