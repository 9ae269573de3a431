//! The content of one answer.

use rowmill_types::Citation;
use serde_json::Value;

/// One answer in full, for [`crate::SimulatedAnswer::Turn`].
///
/// ```
/// # use rowmill_simulator::ScriptedTurn;
/// # use serde_json::json;
/// let turn = ScriptedTurn::new().text("Let me look.").call("search", json!({"query": "otters"})).think();
/// assert_eq!(turn.calls.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ScriptedTurn {
    /// The text. Without one, an answer that calls tools has none; any other answer gets a generated text.
    pub text: Option<String>,
    /// The tool calls, each with its arguments.
    pub calls: Vec<(String, Value)>,
    /// Whether the model thinks first. If the vendor signs thoughts, the next request of the conversation
    /// must return them.
    pub thinks: bool,
    /// Whether the turn is paused, for the vendor that supports this (Anthropic).
    pub pauses: bool,
    /// The citations of the answer, if a tool that runs at the provider is offered.
    pub cites: Vec<Citation>,
}

impl ScriptedTurn {
    /// An answer with generated text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the text.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn call(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.calls.push((name.into(), arguments));
        self
    }

    /// Adds a thought before the answer.
    #[must_use]
    pub fn think(mut self) -> Self {
        self.thinks = true;
        self
    }

    /// Pauses the turn.
    #[must_use]
    pub fn pause(mut self) -> Self {
        self.pauses = true;
        self
    }

    /// Adds a citation.
    #[must_use]
    pub fn cite(mut self, citation: Citation) -> Self {
        self.cites.push(citation);
        self
    }
}
