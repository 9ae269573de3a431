//! Calls as they reached the simulator.

use serde::Serialize;

use crate::conversation::{SeenCall, SeenMessage, SeenResult, SeenRole};
use crate::file_seen::FileSeen;
use crate::protocol::Ask;

/// A model call and what came with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallSeen {
    /// Its number among all calls, from 1.
    pub call: u64,
    /// The path with its query.
    pub path: String,
    /// The model that it names.
    pub model: String,
    /// The system text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The first user message, without its files.
    pub prompt: String,
    /// Which turn of the model it asks for: 1 and the messages of the model so far.
    pub turn: u64,
    /// The names of the tools that are offered, those of the provider after the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// What the model called at the turn before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<SeenCall>,
    /// What the tools gave for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<SeenResult>,
    /// The whole conversation; in a log only where it is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<SeenMessage>,
    /// The files of all its messages, in order.
    pub files: Vec<FileSeen>,
}

impl CallSeen {
    /// What a call brought, without the conversation.
    pub(crate) fn of(call: u64, path: &str, ask: &Ask) -> Self {
        let last = ask.messages.iter().rposition(|message| message.role == SeenRole::Assistant);
        let since = last.and_then(|at| ask.messages.get(at..)).unwrap_or_default();
        let names = ask.tools.iter().map(|tool| &tool.name).chain(&ask.hosted);
        Self {
            call,
            path: path.to_owned(),
            model: ask.model.clone(),
            system: ask.system.clone(),
            prompt: ask.prompt.clone(),
            turn: ask.turn(),
            tools: names.cloned().collect(),
            calls: since.iter().flat_map(|message| message.calls.clone()).collect(),
            results: since.iter().flat_map(|message| message.answers.clone()).collect(),
            messages: Vec::new(),
            files: ask.files.clone(),
        }
    }
}
