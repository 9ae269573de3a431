//! The fingerprint of a run, which determines whether two runs are the same.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::ports::InputIdentity;

/// Everything that shapes the results of a run. A resume with a different fingerprint would mix two runs in one output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFingerprint {
    /// The input; with an id field only its path, because rows may then be added or removed.
    pub input: InputIdentity,
    /// The id field, if any.
    pub id_field: Option<String>,
    /// The model string.
    pub model: String,
    /// Digest of the row template.
    pub prompt: String,
    /// Digest of the instruction, if any.
    pub instruction: Option<String>,
    /// Digest of the schema, if any.
    pub schema: Option<String>,
    /// Digest of the agents that work on rows, if any.
    #[serde(default)]
    pub agents: Option<String>,
    /// The query that numbers the rows, if any.
    #[serde(default)]
    pub query: Option<String>,
    /// The delimiter of the input, if it differs from what the header suggests.
    #[serde(default)]
    pub delimiter: Option<String>,
    /// The fields that rows keep, unless they keep all.
    #[serde(default)]
    pub columns: Option<String>,
    /// The files that belong to rows, and how they are sent.
    #[serde(default)]
    pub files: Option<String>,
}

/// A digest of a text, short enough to show.
#[must_use]
pub fn text_digest(text: &str) -> String {
    format!("{:032x}", xxh3_128(text.as_bytes()))
}

impl RunFingerprint {
    /// Whether both send the same requests to a model, whatever the input.
    #[must_use]
    pub fn asks_the_same_as(&self, other: &Self) -> bool {
        (&self.model, &self.prompt, &self.instruction) == (&other.model, &other.prompt, &other.instruction)
            && (&self.schema, &self.columns, &self.files) == (&other.schema, &other.columns, &other.files)
            && self.agents == other.agents
    }

    /// Whether both read the same rows from the same input.
    #[must_use]
    pub fn reads_same_rows_as(&self, other: &Self) -> bool {
        (&self.input, &self.id_field, &self.query) == (&other.input, &other.id_field, &other.query)
            && self.delimiter == other.delimiter
    }
}
