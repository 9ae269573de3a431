//! What chat completions send, whole or in chunks.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::reading::Text;

/// An answer, or a chunk of one.
#[derive(Deserialize)]
pub(super) struct Answer<'a> {
    #[serde(default, borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default, borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) service_tier: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// One answer of several that could be asked for.
#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    /// What was said, in a whole answer.
    #[serde(default, borrow)]
    pub(super) message: Option<Said<'a>>,
    /// A piece of it, in a stream.
    #[serde(default, borrow)]
    pub(super) delta: Option<Said<'a>>,
    #[serde(default, borrow)]
    pub(super) finish_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// What the model said, whole or a piece of it.
#[derive(Default, Deserialize)]
pub(super) struct Said<'a> {
    #[serde(default, borrow)]
    pub(super) content: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) refusal: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) tool_calls: Option<Vec<ToolCall<'a>>>,
}

/// A tool call, whole or a piece of one.
#[derive(Deserialize)]
pub(super) struct ToolCall<'a> {
    #[serde(default, borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

impl ToolCall<'_> {
    /// The arguments as JSON text. They are a string that holds JSON, but some
    /// servers send the JSON itself.
    pub(super) fn text(self) -> Option<String> {
        let arguments = self.function?.arguments?.get();
        if arguments.starts_with('"') {
            serde_json::from_str(arguments).ok()
        } else {
            Some(arguments.to_owned())
        }
    }
}
