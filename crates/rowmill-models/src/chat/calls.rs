//! Tool calls in chat completions: assembled from parts, and separated from the answer.

use rowmill_types::{FinishReason, NativeMessage, ToolCall};
use serde_json::{Map, Value};

use super::answer::ChatToolCall;
use crate::tool_calls::{AnswerTerms, arguments_text, tool_call};

/// The calls of a response so far.
#[derive(Debug, Default)]
pub(super) struct ToolCallPieces(Vec<ToolCallPiece>);

#[derive(Debug)]
struct ToolCallPiece {
    index: Option<u64>,
    call: ToolCall,
    /// The signature of the call, as JSON text.
    extra: Option<String>,
}

impl ToolCallPiece {
    fn new(index: Option<u64>) -> Self {
        Self { index, call: tool_call(None, None, String::new()), extra: None }
    }
}

impl ToolCallPieces {
    /// Adds a complete call.
    pub(super) fn push(&mut self, call: ChatToolCall<'_>) {
        self.0.push(ToolCallPiece::new(None));
        self.fill(self.0.len() - 1, &call);
    }

    /// Adds a part from a stream; returns whether it starts a new call.
    pub(super) fn add(&mut self, piece: ChatToolCall<'_>) -> bool {
        let name = piece.function.as_ref().and_then(|function| function.name.as_deref());
        let at = self.place(piece.index, piece.id.as_deref().unwrap_or_default(), name.unwrap_or_default());
        self.fill(at, &piece)
    }

    /// The index of the call that a part belongs to. Normally the part's index says so, but some servers give
    /// all calls the same index, or none: then a different id starts a new call.
    fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let last = self.0.iter().rposition(|held| index.is_none() || held.index == index);
        let belongs = |held: &ToolCallPiece| {
            let same = !id.is_empty() && held.call.id == id;
            let other = !id.is_empty() && !name.is_empty() && !held.call.id.is_empty() && !same;
            if index.is_some() { !other } else { same || name.is_empty() }
        };
        let found = last.filter(|at| self.0.get(*at).is_some_and(belongs));
        found.unwrap_or_else(|| {
            self.0.push(ToolCallPiece::new(index));
            self.0.len() - 1
        })
    }

    fn fill(&mut self, at: usize, piece: &ChatToolCall<'_>) -> bool {
        let Some(held) = self.0.get_mut(at) else { return false };
        let (name, arguments) = match &piece.function {
            Some(function) => {
                (function.name.as_deref().unwrap_or_default(), function.arguments.map(arguments_text))
            }
            None => ("", None),
        };
        let (call, arguments) = (&mut held.call, arguments.unwrap_or_default());
        let grows = (call.name.is_empty() && !name.is_empty()) || !arguments.is_empty();
        if call.id.is_empty() {
            piece.id.as_deref().unwrap_or_default().clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        call.arguments.push_str(&arguments);
        if let Some(extra) = piece.extra_content {
            held.extra = Some(extra.get().to_owned());
        }
        grows
    }
}

/// A response, streamed or not.
#[derive(Debug)]
pub(super) struct CompleteAnswer {
    pub(super) content: String,
    pub(super) refusal: Option<String>,
    pub(super) pieces: ToolCallPieces,
    pub(super) finish: FinishReason,
    /// The reasoning, as JSON text.
    pub(super) reasoning: Option<String>,
    /// The same in OpenRouter's format.
    pub(super) details: Option<String>,
}

/// The result of a response.
#[derive(Debug)]
pub(super) struct AnswerOutcome {
    pub(super) text: String,
    pub(super) finish: FinishReason,
    pub(super) calls: Vec<ToolCall>,
    pub(super) echo: Option<Box<NativeMessage>>,
}

impl CompleteAnswer {
    pub(super) fn separate_calls(self, terms: &AnswerTerms) -> AnswerOutcome {
        let finish = if self.refusal.is_some() { FinishReason::Refused } else { self.finish };
        let (mut calls, mut extras) = (Vec::new(), Vec::new());
        if self.refusal.is_none() {
            for piece in self.pieces.0 {
                if !terms.is_answer(&piece.call.name) {
                    extras.push(piece.extra);
                }
                calls.push(piece.call);
            }
        }
        let settled = terms.separate_calls(self.refusal.unwrap_or(self.content), calls, finish);
        let says =
            |raw: &Option<String>| raw.as_deref().is_some_and(|raw| !matches!(raw, "null" | "\"\"" | "[]"));
        let is_signed = says(&self.reasoning) || says(&self.details) || extras.iter().any(Option::is_some);
        let echo = if settled.calls.is_empty() || !is_signed {
            None
        } else {
            let thoughts = [("reasoning_content", self.reasoning), ("reasoning_details", self.details)];
            terms.native_message(message(&settled.text, &settled.calls, &extras, thoughts))
        };
        AnswerOutcome { text: settled.text, finish, calls: settled.calls, echo }
    }
}

/// The message to send back: the fields that every server accepts, and those that this server signed.
fn message(
    text: &str,
    calls: &[ToolCall],
    extras: &[Option<String>],
    thoughts: [(&str, Option<String>); 2],
) -> String {
    let mut message = String::from(r#"{"role":"assistant","content":"#);
    message.push_str(&if text.is_empty() { Value::Null } else { Value::from(text) }.to_string());
    for (name, raw) in thoughts {
        if let Some(raw) = raw.filter(|raw| raw != "null") {
            message.push_str(&format!(r#","{name}":{raw}"#));
        }
    }
    message.push_str(r#","tool_calls":["#);
    for (index, call) in calls.iter().enumerate() {
        if index > 0 {
            message.push(',');
        }
        let (id, name) = (Value::from(call.id.as_str()), Value::from(call.name.as_str()));
        let arguments = Value::from(call.arguments.as_str());
        message.push_str(&format!(
            r#"{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}"#
        ));
        if let Some(extra) = extras.get(index).and_then(Option::as_ref) {
            message.push_str(&format!(r#","extra_content":{extra}"#));
        }
        message.push('}');
    }
    message.push_str("]}");
    message
}

/// Assembles streamed reasoning in OpenRouter's format: parts of one item follow each other.
pub(super) fn merge_reasoning_details(all: &mut Vec<Map<String, Value>>, raw: &str) {
    let Ok(pieces) = serde_json::from_str::<Vec<Map<String, Value>>>(raw) else { return };
    for piece in pieces {
        let same = |last: &&mut Map<String, Value>| {
            ["type", "index"].iter().all(|name| last.get(*name) == piece.get(*name))
        };
        let Some(last) = all.last_mut().filter(same) else {
            all.push(piece);
            continue;
        };
        for (name, value) in piece {
            let grows = matches!(name.as_str(), "text" | "summary" | "data");
            match (last.get_mut(&name), value) {
                (Some(Value::String(held)), Value::String(more)) if grows => held.push_str(&more),
                (Some(_), Value::Null) => {}
                (_, value) => drop(last.insert(name, value)),
            }
        }
    }
}
