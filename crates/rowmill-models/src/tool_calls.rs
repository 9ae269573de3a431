//! Tools: what all protocols share for offering tools and reading calls.

use std::collections::HashSet;
use std::sync::Arc;

use rowmill_types::{FinishReason, NativeMessage, ToolCall, ToolSpec};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::build_model::ModelSetup;
use crate::model_settings::{ModelSettingKey, ModelSettings};
use crate::schema::{self, PreparedSchema};

/// The description of the answer tool.
pub(crate) const ANSWERS: &str = "Gives the answer.";

/// The keys of tools that run at the provider.
pub(crate) const HOSTED: &[ModelSettingKey] =
    &[ModelSettingKey::WebSearch, ModelSettingKey::WebFetch, ModelSettingKey::XSearch];

/// What the model may call, which decides how its calls are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OfferedCalls {
    /// Nothing: if the model calls something anyway, that is not an answer.
    #[default]
    Nothing,
    /// A tool whose arguments are the answer, because the answer has a schema.
    Answer,
    /// Tools that the caller runs.
    Tools,
    /// The same, and one tool with this name whose arguments are the answer.
    ToolsAndAnswer(&'static str),
}

/// How answers are expected from the provider.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerTerms {
    /// Whether answers hold the value inside an object.
    pub(crate) wrapped: bool,
    /// What may be called.
    pub(crate) offer: OfferedCalls,
    /// Whether tools run at the provider.
    pub(crate) hosts: bool,
    /// The form of answers that are sent back unchanged.
    pub(crate) form: Arc<str>,
}

/// An answer whose text is separated from its calls.
#[derive(Debug)]
pub(crate) struct SeparatedAnswer {
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
}

impl AnswerTerms {
    /// The terms of a setup; `by_tool` means that a tool enforces its schema.
    pub(crate) fn new(setup: &ModelSetup, prepared: Option<&PreparedSchema>, by_tool: bool) -> Self {
        let offer = match (setup.tools.is_empty(), by_tool) {
            // Some servers enforce a schema by a call, whatever was requested.
            (true, _) if by_tool || prepared.is_some() => OfferedCalls::Answer,
            (true, _) => OfferedCalls::Nothing,
            (false, true) => OfferedCalls::ToolsAndAnswer(answer_tool_name(&setup.tools)),
            (false, false) => OfferedCalls::Tools,
        };
        let connection = &setup.connection;
        Self {
            wrapped: prepared.is_some_and(|prepared| prepared.wrapped),
            offer,
            hosts: HOSTED.iter().any(|key| hosts_tool(&setup.model.settings, *key)),
            // Signed thinking is useful only to the provider that signed it.
            form: format!("{}.{}", connection.protocol.name(), connection.provider).into(),
        }
    }

    /// Whether there are tools that the caller runs.
    pub(crate) fn offers_tools(&self) -> bool {
        matches!(self.offer, OfferedCalls::Tools | OfferedCalls::ToolsAndAnswer(_))
    }

    /// Whether an answer can contain calls or must be sent back unchanged.
    pub(crate) fn has_tools(&self) -> bool {
        self.offers_tools() || self.hosts
    }

    /// Arguments that were received as JSON, not as a string that contains it.
    pub(crate) fn arguments(&self, json: &RawValue) -> String {
        match self.offer {
            OfferedCalls::Nothing | OfferedCalls::Answer => json.get().to_owned(),
            OfferedCalls::Tools | OfferedCalls::ToolsAndAnswer(_) => compact(json.get()),
        }
    }

    /// Whether a call with this name is the answer, next to calls of tools.
    pub(crate) fn is_answer(&self, name: &str) -> bool {
        matches!(self.offer, OfferedCalls::ToolsAndAnswer(answer) if answer == name)
    }

    /// Separates the answer from the calls. Other calls take precedence over the answer tool, because its
    /// answer was written before they ran. A truncated response has no calls: the last of them may be
    /// truncated too.
    pub(crate) fn separate_calls(
        &self,
        text: String,
        mut calls: Vec<ToolCall>,
        finish: FinishReason,
    ) -> SeparatedAnswer {
        let answer = match self.offer {
            OfferedCalls::Nothing => {
                calls.clear();
                None
            }
            OfferedCalls::Answer => calls.drain(..).find(|call| !call.arguments.is_empty()),
            OfferedCalls::Tools => None,
            OfferedCalls::ToolsAndAnswer(answer) => {
                let (mut answers, others): (Vec<_>, Vec<_>) =
                    calls.into_iter().partition(|call| call.name == answer);
                calls = others;
                if calls.is_empty() && !answers.is_empty() { Some(answers.swap_remove(0)) } else { None }
            }
        };
        let text = answer.map_or(text, |call| call.arguments);
        if finish != FinishReason::Complete {
            calls.clear();
        }
        name_calls(&mut calls);
        let unwraps = self.wrapped && calls.is_empty() && finish == FinishReason::Complete;
        SeparatedAnswer { text: if unwraps { schema::unwrap_value(text) } else { text }, calls }
    }

    /// The native message for `content`.
    pub(crate) fn native_message(&self, content: String) -> Option<Box<NativeMessage>> {
        Some(Box::new(NativeMessage { format: self.form.as_ref().to_owned(), content }))
    }

    /// The native message for the parts of a response, as a JSON array.
    pub(crate) fn native_message_of<'a>(
        &self,
        parts: impl IntoIterator<Item = &'a str>,
    ) -> Option<Box<NativeMessage>> {
        let mut content = String::from("[");
        for part in parts {
            if content.len() > 1 {
                content.push(',');
            }
            content.push_str(part);
        }
        content.push(']');
        if content.len() > 2 { self.native_message(content) } else { None }
    }
}

/// The name of the answer tool: the default one, unless a tool already has it.
pub(crate) fn answer_tool_name(tools: &[ToolSpec]) -> &'static str {
    const OTHER: &str = "final_structured_output";
    if tools.iter().any(|tool| tool.name == schema::SCHEMA_NAME) { OTHER } else { schema::SCHEMA_NAME }
}

/// Whether a tool that runs at the provider is requested.
pub(crate) fn hosts_tool(settings: &ModelSettings, key: ModelSettingKey) -> bool {
    settings.switch(key) == Some(true)
}

/// The schema of a tool's arguments. Providers require an object with a list of properties, even for a tool
/// without arguments.
pub(crate) fn tool_parameters(tool: &ToolSpec) -> Value {
    let mut schema = tool.schema.as_object().cloned().unwrap_or_default();
    schema.shift_remove("$schema");
    if !schema.contains_key("type") {
        schema.insert("type".to_owned(), Value::from("object"));
    }
    if !["properties", "$ref", "anyOf", "oneOf", "allOf"].iter().any(|name| schema.contains_key(*name)) {
        schema.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    Value::Object(schema)
}

/// A call as reported by its provider.
pub(crate) fn tool_call(id: Option<&str>, name: Option<&str>, arguments: String) -> ToolCall {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    ToolCall { id: text(id), name: text(name), arguments }
}

/// Arguments as JSON text. They are normally a string that contains JSON, but some servers send the JSON
/// itself.
pub(crate) fn arguments_text(arguments: &RawValue) -> String {
    match arguments.get() {
        "null" => String::new(),
        text if text.starts_with('"') => serde_json::from_str(text).unwrap_or_default(),
        json => json.to_owned(),
    }
}

/// Gives every call an id that is unique in its turn, and arguments if it has none.
fn name_calls(calls: &mut [ToolCall]) {
    if calls.is_empty() {
        return;
    }
    let given: HashSet<String> = calls.iter().map(|call| call.id.clone()).collect();
    let mut used = HashSet::with_capacity(calls.len());
    let mut number = 0;
    for call in calls {
        if call.arguments.trim().is_empty() {
            "{}".clone_into(&mut call.arguments);
        }
        while call.id.is_empty() || used.contains(&call.id) {
            number += 1;
            let id = format!("call_{number}");
            if !given.contains(&id) {
                call.id = id;
            }
        }
        used.insert(call.id.clone());
    }
}

/// Whether an id was generated here because the provider sent none.
pub(crate) fn is_generated_id(id: &str) -> bool {
    let number = id.strip_prefix("call_");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// JSON without whitespace between its parts. Text that is not JSON stays unchanged.
fn compact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in json.chars() {
        if !quoted && matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        text.push(c);
        if escaped {
            escaped = false;
        } else if quoted && c == '\\' {
            escaped = true;
        } else if c == '"' {
            quoted = !quoted;
        }
    }
    text
}

/// Arguments for protocols that require an object. Invalid ones become an empty object: the call's result
/// already says what was wrong with them.
pub(crate) fn object_or_empty(arguments: &str) -> &str {
    let text = arguments.trim();
    let is_object = text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok();
    if is_object { text } else { "{}" }
}

#[cfg(test)]
#[path = "tool_calls_tests.rs"]
mod tests;
