//! Models that answer with the prompt, or with nothing.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rowmill_core::ports::Model;
use rowmill_types::{Attachment, CallError, Completion, Message, MessageRole, Request, ToolCall};
use tokio::time::Instant;

use super::build::{estimated_completion, last_files, last_text};

/// Makes the text after it the answer to this and every later row.
const FIXED: &str = "***FIXED_RESPONSE";
/// Calls the tool named after it, with the arguments that follow the name.
const CALL: &str = "***CALL_TOOL";

/// Answers with the prompt, or with the result of a tool.
#[derive(Debug, Default)]
pub(super) struct PassthroughModel {
    fixed: RwLock<Option<String>>,
    has_tools: bool,
}

impl PassthroughModel {
    /// Without tools, prompts that ask for a call are treated like any other.
    pub(super) fn new(has_tools: bool) -> Self {
        Self { has_tools, ..Self::default() }
    }

    fn text(&self, request: &Request) -> String {
        let message = last_text(request);
        if let Some(fixed) = message.strip_prefix(FIXED) {
            let fixed = fixed.trim().to_owned();
            *self.fixed.write().unwrap_or_else(PoisonError::into_inner) = Some(fixed.clone());
            return fixed;
        }
        let fixed = self.fixed.read().unwrap_or_else(PoisonError::into_inner);
        match fixed.as_deref() {
            Some(fixed) => fixed.to_owned(),
            None => with_files(message, last_files(request)),
        }
    }

    fn answer(&self, request: &Request) -> Completion {
        let started = Instant::now();
        if !self.has_tools {
            return estimated_completion(request, self.text(request), started, "passthrough");
        }
        let given = results(request);
        if !given.is_empty() {
            let texts: Vec<String> =
                given.iter().map(|message| with_files(&message.text, &message.attachments)).collect();
            return estimated_completion(request, texts.join("\n"), started, "passthrough");
        }
        let calls = calls(last_text(request));
        let text = if calls.is_empty() { self.text(request) } else { String::new() };
        Completion { calls, ..estimated_completion(request, text, started, "passthrough") }
    }
}

/// The tool results at the end of a conversation.
fn results(request: &Request) -> &[Message] {
    let before = request.messages.iter().rposition(|message| message.role != MessageRole::Tool);
    request.messages.get(before.map_or(0, |at| at + 1)..).unwrap_or_default()
}

/// The calls that a prompt asks for: one, or several if each is on a line of its own.
fn calls(prompt: &str) -> Vec<ToolCall> {
    let Some(rest) = prompt.strip_prefix(CALL) else { return Vec::new() };
    let commands = rest.split("\n***CALL_TOOL");
    let call = |(index, command): (usize, &str)| {
        let command = command.trim();
        let (name, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let arguments = Some(arguments.trim()).filter(|text| !text.is_empty()).unwrap_or("{}");
        let id = format!("call_{}", index + 1);
        ToolCall { id, name: name.to_owned(), arguments: arguments.to_owned() }
    };
    commands.enumerate().map(call).collect()
}

/// A text followed by one line per attached file.
fn with_files(prompt: &str, files: &[Attachment]) -> String {
    let mut text = prompt.to_owned();
    for file in files {
        if !text.is_empty() {
            text.push('\n');
        }
        let Attachment { name, media_type, bytes, digest } = file;
        text.push_str(&format!("[file {name} {media_type} {} bytes sha256:{digest}]", bytes.len()));
    }
    text
}

impl Model for PassthroughModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        ready(Ok(self.answer(request))).boxed()
    }
}

/// Answers with the prompt after a delay.
#[derive(Debug)]
pub(super) struct SlowModel {
    echo: PassthroughModel,
    delay: Duration,
}

impl SlowModel {
    pub(super) fn new(delay: Duration) -> Self {
        Self { echo: PassthroughModel::default(), delay }
    }
}

impl Model for SlowModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        async move {
            let started = Instant::now();
            tokio::time::sleep(self.delay).await;
            Ok(estimated_completion(request, self.echo.text(request), started, "slow"))
        }
        .boxed()
    }
}

/// Answers with an empty text.
#[derive(Debug)]
pub(super) struct SilentModel;

impl Model for SilentModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        ready(Ok(estimated_completion(request, String::new(), Instant::now(), "silent"))).boxed()
    }
}
