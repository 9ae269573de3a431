//! What Python says of a pydantic model.

use std::process::ExitStatus;
use std::time::Duration;

/// The description of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaModelDescription {
    /// Its JSON Schema.
    pub schema: String,
    /// A digest of the code that checks answers, if the model can check any.
    pub code: Option<String>,
}

/// Why a model could not be described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaModelDescriptionFailure {
    /// The name cannot be used.
    Unusable {
        /// What is wrong with it.
        message: String,
        /// What the user may have meant.
        hint: Option<String>,
    },
    /// The process ended without a result.
    ProcessEnded {
        /// How it ended.
        status: ExitStatus,
        /// The last line on its standard error, if any.
        last_words: Option<String>,
    },
    /// Its imports took longer than this timeout.
    TooSlow(Duration),
}
