//! How documents are told apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How documents are identified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DocumentIds")]
pub enum DocumentIdRule {
    /// By path: every file is a row.
    #[default]
    Path,
    /// By content: of files with the same content, only the first is a row.
    Content,
}

impl DocumentIdRule {
    /// The field of a document's row that holds its id.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Content => "digest",
        }
    }
}
