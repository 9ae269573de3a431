//! What the tests of the wire layers share.

use std::sync::Arc;

use rowmill_types::{Attachment, CallError, Finish, Message, Usage};
use serde_json::Value;

use crate::build::Setup;
use crate::call::from_error;
use crate::connection::Connection;
use crate::files::Uploaded;
use crate::model_string::ModelString;
use crate::provider::Providers;
use crate::reading::{Assembly, Reading, Step, Unread, Wire};
use crate::sse::Event;

/// A model with every key set to `sk-secret` and every address to a local one.
pub(crate) fn setup(model: &str, instruction: Option<&str>, schema: Option<Value>) -> Setup {
    let providers = Providers::default();
    let model = ModelString::parse(model, &providers).unwrap();
    let environment = |name: &str| {
        let value =
            if name.contains("KEY") || name.contains("TOKEN") { "sk-secret" } else { "http://host/v1" };
        Some(value.to_owned())
    };
    let connection = Connection::resolve(&model, &providers, &environment).unwrap();
    Setup {
        model,
        connection,
        instruction: instruction.map(str::to_owned),
        schema,
        tools: Vec::new(),
        parallel_tool_calls: None,
        notice: Arc::new(drop),
    }
}

/// The body for one user message `Hi "there"`.
pub(crate) fn plain_body(wire: &impl Wire) -> String {
    String::from_utf8(wire.body(&[Message::user("Hi \"there\"\n")], &Uploaded::NONE)).unwrap()
}

/// The body for a conversation in which an answer is to be repaired.
pub(crate) fn repair_body(wire: &impl Wire) -> String {
    let messages = [Message::user("q"), Message::assistant("{}"), Message::user("fix it")];
    String::from_utf8(wire.body(&messages, &Uploaded::NONE)).unwrap()
}

/// What an answer came to.
pub(crate) fn outcome(reading: &Reading) -> (&str, Finish) {
    (&reading.text, reading.finish)
}

/// Tokens in the order input, cached, cache_write, output, reasoning.
pub(crate) fn tokens(counts: [u64; 5]) -> Option<Usage> {
    let [input, cached, cache_write, output, reasoning] = counts;
    Some(Usage { input, cached, cache_write, output, reasoning })
}

/// The error that a body which is no answer becomes; malformed ones have their own message.
pub(crate) fn error(unread: Unread) -> CallError {
    match unread {
        Unread::Error(body) => from_error(Some(200), body, jiff::Timestamp::now()),
        Unread::Malformed(what) => CallError::new(rowmill_types::CallFailure::Malformed, what),
    }
}

/// Feeds events and gives their steps with the answer, which is `None` before the end.
pub(crate) fn assemble(wire: &impl Wire, events: &[&str]) -> Result<(Vec<Step>, Option<Reading>), Unread> {
    let mut assembly = wire.assembly();
    let mut steps = Vec::new();
    for data in events {
        steps.push(assembly.take(&Event { name: String::new(), data: (*data).to_owned() })?);
    }
    let complete = steps.last() == Some(&Step::Done) || assembly.ended();
    Ok((steps, if complete { Some(assembly.finish()?) } else { None }))
}

/// A file of these bytes.
pub(crate) fn file(name: &str, media_type: &str, bytes: &'static [u8]) -> Attachment {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    Attachment {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        bytes: bytes.into(),
        digest: digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// A user's message with files.
pub(crate) fn with_files(text: &str, attachments: Vec<Attachment>) -> Message {
    Message { attachments, ..Message::user(text) }
}
