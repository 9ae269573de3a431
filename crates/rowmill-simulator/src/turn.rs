//! What a model says and does in one answer.

use rowmill_types::Citation;
use serde_json::Value;

/// One answer in full, for [`crate::Answer::Turn`].
///
/// ```
/// # use rowmill_simulator::Turn;
/// # use serde_json::json;
/// let turn = Turn::new().text("Let me look.").call("search", json!({"query": "otters"})).think();
/// assert_eq!(turn.calls.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// The text. Without one, an answer that calls tools has none and any other is made up.
    pub text: Option<String>,
    /// The tools to call, each with its arguments.
    pub calls: Vec<(String, Value)>,
    /// Whether the model thinks first. Where the vendor signs thoughts, the next request of the
    /// conversation must bring them back.
    pub thinks: bool,
    /// Whether the turn is paused, at the vendor that does so (Anthropic).
    pub pauses: bool,
    /// What the answer cites, when a tool is offered that runs at the provider.
    pub cites: Vec<Citation>,
}

impl Turn {
    /// An answer that is made up.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says this.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Calls this tool too.
    #[must_use]
    pub fn call(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.calls.push((name.into(), arguments));
        self
    }

    /// Thinks before it answers.
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

    /// Cites this too.
    #[must_use]
    pub fn cite(mut self, citation: Citation) -> Self {
        self.cites.push(citation);
        self
    }
}
