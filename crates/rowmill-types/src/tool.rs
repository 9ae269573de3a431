//! Tools: their definitions, their calls and their results.

use serde::{Deserialize, Serialize};

use crate::Attachment;

/// A tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name by which the model calls it: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, an object.
    pub schema: serde_json::Value,
}

impl ToolSpec {
    /// Identifies the tool for a model, as text that does not change in later versions.
    #[must_use]
    pub fn identity(&self) -> String {
        serde_json::json!([self.name, self.description, self.schema]).to_string()
    }
}

/// A call that a model requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call, which the result refers to. Unique within its turn.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, JSON text as the model wrote it. It may be invalid.
    pub arguments: String,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    /// Its text, or its JSON as text.
    pub text: String,
    /// Images and other files.
    pub attachments: Vec<Attachment>,
    /// Whether it reports a failure. The model is notified, and may try something else.
    pub is_error: bool,
    /// Whether its text is the result: the model is not asked again.
    pub is_final: bool,
}

impl ToolOutput {
    /// A text.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A text that is the result of the row.
    pub fn final_result(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_final: true, ..Self::default() }
    }

    /// A failure that is reported to the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true, ..Self::default() }
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::from_text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::from_text(text)
    }
}

/// The call that a message answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredToolCall {
    /// The id of the call.
    pub call: String,
    /// The name of the tool.
    pub tool: String,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// An answer in its provider's own form, to be sent back unchanged: it may contain parts that only that provider
/// understands, such as signed thoughts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeMessage {
    /// Identifies the form; only a model that uses it sends it back.
    #[serde(rename = "form")]
    pub format: String,
    /// JSON text.
    pub content: String,
}

/// Activity of tools that ran at the provider during a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostedToolUse {
    /// The sources of the answer.
    pub citations: Vec<Citation>,
    /// How often each tool was used, by name, such as `web_search`.
    pub uses: Vec<(String, u64)>,
}

/// A source that an answer cites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// Its address.
    pub url: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The cited passage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_tells_tools_apart_is_text_that_no_change_of_the_code_changes() {
        let mut tool = ToolSpec { name: "look".into(), description: None, schema: json!({"type": "object"}) };
        assert_eq!(tool.identity(), r#"["look",null,{"type":"object"}]"#);
        tool.description = Some("Looks \"up\".".into());
        assert_eq!(tool.identity(), r#"["look","Looks \"up\".",{"type":"object"}]"#);
    }
}
