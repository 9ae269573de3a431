//! Helpers shared by the tests of the wire layers.

use std::sync::Arc;

use rowmill_http::EventParser;
use rowmill_types::{
    Attachment, CallError, FinishReason, Message, NativeMessage, TokenUsage, ToolCall, ToolOutput, ToolSpec,
};
use serde_json::{Value, json};

use crate::build_model::ModelSetup;
use crate::call_error::from_error_body;
use crate::connection::ProviderConnection;
use crate::files::UploadedFiles;
use crate::model_string::ModelString;
use crate::provider::ProviderRegistry;
use crate::wire_protocol::{ReadAnswer, StreamAssembly, StreamStep, UnreadableAnswer, WireProtocol};

/// A setup with every key set to `sk-secret` and every address set to a local one.
pub(crate) fn setup(model: &str, instruction: Option<&str>, schema: Option<Value>) -> ModelSetup {
    let providers = ProviderRegistry::default();
    let model = ModelString::parse(model, &providers).unwrap();
    let environment = |name: &str| {
        let value =
            if name.contains("KEY") || name.contains("TOKEN") { "sk-secret" } else { "http://host/v1" };
        Some(value.to_owned())
    };
    let connection = ProviderConnection::resolve(&model, &providers, &environment).unwrap();
    ModelSetup {
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
pub(crate) fn plain_body(wire: &impl WireProtocol) -> String {
    String::from_utf8(wire.body(&[Message::user("Hi \"there\"\n")], &UploadedFiles::NONE, None)).unwrap()
}

/// The body for a conversation in which an answer is to be repaired.
pub(crate) fn repair_body(wire: &impl WireProtocol) -> String {
    let messages = [Message::user("q"), Message::assistant("{}"), Message::user("fix it")];
    String::from_utf8(wire.body(&messages, &UploadedFiles::NONE, None)).unwrap()
}

/// The result of a response.
pub(crate) fn text_and_finish(reading: &ReadAnswer) -> (&str, FinishReason) {
    (&reading.text, reading.finish)
}

/// Tokens in the order input, cached, cache_write, output, reasoning.
pub(crate) fn tokens(counts: [u64; 5]) -> Option<TokenUsage> {
    let [input, cached, cache_write, output, reasoning] = counts;
    Some(TokenUsage { input, cached, cache_write, output, reasoning })
}

/// The error for a body that is not an answer; malformed ones have their own message.
pub(crate) fn error(unread: UnreadableAnswer) -> CallError {
    match unread {
        UnreadableAnswer::Error(body) => from_error_body(Some(200), body, jiff::Timestamp::now()),
        UnreadableAnswer::Malformed(what) => CallError::new(rowmill_types::CallFailure::Malformed, what),
    }
}

/// Feeds events; returns their steps with the answer, which is `None` before the end.
pub(crate) fn assemble(
    wire: &impl WireProtocol,
    events: &[&str],
) -> Result<(Vec<StreamStep>, Option<ReadAnswer>), UnreadableAnswer> {
    let mut assembly = wire.assembly();
    let mut steps = Vec::new();
    for data in events {
        steps.push(assembly.push_event(data)?);
    }
    let complete = steps.last() == Some(&StreamStep::Done) || assembly.is_complete_at_end();
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

/// A model that is offered two tools, one of which has no arguments.
pub(crate) fn with_tools(model: &str, schema: Option<Value>) -> ModelSetup {
    let weather = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    });
    let tools = vec![
        ToolSpec { name: "weather".to_owned(), description: Some("Tells it.".to_owned()), schema: weather },
        ToolSpec { name: "now".to_owned(), description: None, schema: json!({"type": "object"}) },
    ];
    ModelSetup { tools, ..setup(model, None, schema) }
}

/// A call with the id `id`.
pub(crate) fn tool_call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

/// A conversation in which the model calls two tools at once; the second call fails.
pub(crate) fn conversation() -> Vec<Message> {
    let calls = vec![tool_call("a1", "weather", r#"{"city":"Ü\"x\""}"#), tool_call("b2", "now", "{}")];
    vec![
        Message::user("q"),
        Message { calls: calls.clone(), ..Message::assistant("Let me see.") },
        Message::tool(&calls[0], ToolOutput::from_text("12 \"C\"")),
        Message::tool(&calls[1], ToolOutput::error("broken")),
    ]
}

/// The same after another turn, with the provider's own form of that message.
pub(crate) fn conversation_with_native(form: &str, content: &str) -> Vec<Message> {
    let mut messages = conversation();
    let echo = NativeMessage { format: form.to_owned(), content: content.to_owned() };
    messages[1].native = Some(Box::new(echo));
    messages.truncate(3);
    messages
}

/// The part of the body of a conversation that holds its messages.
pub(crate) fn body_of(wire: &impl WireProtocol, messages: &[Message]) -> Value {
    serde_json::from_slice(&wire.body(messages, &UploadedFiles::NONE, None)).unwrap()
}

/// The text, finish reason and calls of a response.
pub(crate) fn text_finish_and_calls(reading: &ReadAnswer) -> (&str, FinishReason, Vec<(&str, &str, &str)>) {
    let calls = reading.calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments));
    (&reading.text, reading.finish, calls.collect())
}

/// Sources with their titles and passages, and tools with their uses.
pub(crate) type HostedUseView<'a> = (Vec<(&'a str, &'a str, &'a str)>, Vec<(&'a str, u64)>);

/// What tools at the provider did: the sources with their passages, and the uses.
pub(crate) fn hosted_use(reading: &ReadAnswer) -> HostedUseView<'_> {
    let Some(hosted) = &reading.hosted else { return Default::default() };
    let citations = hosted
        .citations
        .iter()
        .map(|one| (&*one.url, one.title.as_deref().unwrap_or("-"), one.text.as_deref().unwrap_or("-")));
    (citations.collect(), hosted.uses.iter().map(|(name, count)| (&**name, *count)).collect())
}

/// Assembles a stream from bytes that are split at the given positions.
pub(crate) fn assemble_bytes(wire: &impl WireProtocol, stream: &str, cuts: &[usize]) -> ReadAnswer {
    let bytes = stream.as_bytes();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let (mut parser, mut events) = (EventParser::new(usize::MAX), Vec::new());
    for pair in cuts.windows(2) {
        parser.push(&bytes[pair[0]..pair[1]], |event| events.extend(event.data)).unwrap();
    }
    let mut assembly = wire.assembly();
    for event in &events {
        if assembly.push_event(event).unwrap() == StreamStep::Done {
            break;
        }
    }
    assembly.finish().unwrap()
}

/// The parts of a text, split after these numbers of characters in turn.
pub(crate) fn pieces(text: &str, sizes: &[usize]) -> Vec<String> {
    let mut rest: Vec<char> = text.chars().collect();
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let size = (*size).clamp(1, rest.len());
        pieces.push(rest.drain(..size).collect());
    }
    pieces
}
