//! Parses requests of the Messages API.

use serde_json::Value;

use super::super::content::ContentReader;
use super::super::{ParsedRequest, RequestRefusal, VendorProtocol, model_of, text, text_of, tools};
use crate::conversation::{RecordedToolCall, RecordedToolResult};
use crate::thought;

pub(in crate::protocol) fn read_messages_request(
    body: &Value,
    reader: ContentReader<'_>,
) -> Result<ParsedRequest, RequestRefusal> {
    let mut ask = ParsedRequest::new_for(VendorProtocol::Messages, model_of(body)?);
    ask.max_tokens = body.get("max_tokens").and_then(Value::as_u64);
    if ask.max_tokens.is_none() {
        return Err(RequestRefusal::invalid("max_tokens: Field required"));
    }
    let system = body.get("system");
    ask.say_system(&text_of(system));
    let blocks = system.and_then(Value::as_array).into_iter().flatten();
    ask.marks_cache = blocks.into_iter().any(|block| block.get("cache_control").is_some());
    let messages = body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
    let Some(messages) = messages else {
        return Err(RequestRefusal::invalid("messages: at least one message is required"));
    };
    read_messages(&mut ask, messages, reader)?;
    tools::anthropic(body, &mut ask)?;
    let formats = ["/output_config/format/schema", "/output_format/schema"];
    if let Some(schema) = formats.into_iter().find_map(|place| body.pointer(place)) {
        ask.schema = Some(schema.clone());
    }
    ask.stream = body.get("stream") == Some(&Value::Bool(true));
    Ok(ask)
}

fn read_messages(
    ask: &mut ParsedRequest,
    messages: &[Value],
    reader: ContentReader<'_>,
) -> Result<(), RequestRefusal> {
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let content = message.get("content");
        let is_last = at + 1 == messages.len();
        if is_empty(content) && !(is_last && text(message, "role") == Some("assistant")) {
            return Err(RequestRefusal::invalid(format!(
                "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
            )));
        }
        match text(message, "role") {
            Some("assistant") if at == 0 => {
                return Err(RequestRefusal::invalid("messages: first message must use the \"user\" role"));
            }
            Some("assistant") => {
                check_answered(at, &open)?;
                open = read_answer(ask, at, content, reader)?;
            }
            Some("user") => {
                let after = std::mem::take(&mut open);
                read_user(ask, at, content, after, reader)?;
            }
            Some(other) => {
                return Err(RequestRefusal::invalid(format!(
                    "messages: Unexpected role \"{other}\". Allowed roles are \"user\" or \"assistant\"."
                )));
            }
            None => return Err(RequestRefusal::invalid(format!("messages.{at}.role: Field required"))),
        }
    }
    check_answered(messages.len(), &open)
}

fn is_empty(content: Option<&Value>) -> bool {
    match content {
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(blocks)) => blocks.is_empty(),
        _ => true,
    }
}

/// Every call must have its result in the next message, which is at index `at`.
fn check_answered(at: usize, open: &[String]) -> Result<(), RequestRefusal> {
    if open.is_empty() {
        return Ok(());
    }
    Err(RequestRefusal::invalid(format!(
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        at.saturating_sub(1),
        open.join(", ")
    )))
}

/// Parses an earlier message of the model; returns the ids of its calls.
fn read_answer(
    ask: &mut ParsedRequest,
    at: usize,
    content: Option<&Value>,
    reader: ContentReader<'_>,
) -> Result<Vec<String>, RequestRefusal> {
    let Some(Value::Array(blocks)) = content else {
        ask.say_assistant(text_of(content), Vec::new());
        return Ok(Vec::new());
    };
    let mut texts = Vec::new();
    let mut calls: Vec<RecordedToolCall> = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let place = format!("messages.{at}.content.{index}");
        match text(block, "type").unwrap_or_default() {
            "text" => match text(block, "text").filter(|message| !message.is_empty()) {
                Some(message) => texts.push(message),
                None => {
                    return Err(RequestRefusal::invalid("messages: text content blocks must be non-empty"));
                }
            },
            "tool_use" => {
                let call = read_call(&place, block)?;
                if ask.has_call(&call.id) || calls.iter().any(|held| held.id == call.id) {
                    return Err(RequestRefusal::invalid(format!("{place}: `tool_use` ids must be unique")));
                }
                calls.push(call);
            }
            "thinking" => check_thinking(&place, block)?,
            "web_search_tool_result" => check_results(&place, block)?,
            "redacted_thinking" | "server_tool_use" | "web_fetch_tool_result" => {}
            other => return Err(tag(&place, other)),
        }
    }
    let first = blocks.first().and_then(|block| text(block, "type")).unwrap_or_default();
    let thought = calls.iter().any(|call| reader.thoughts.belongs(&call.id));
    if thought && !matches!(first, "thinking" | "redacted_thinking") {
        return Err(RequestRefusal::invalid(format!(
            "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )));
    }
    let ids = calls.iter().map(|call| call.id.clone()).collect();
    ask.say_assistant(texts.join("\n"), calls);
    Ok(ids)
}

fn read_call(place: &str, block: &Value) -> Result<RecordedToolCall, RequestRefusal> {
    let id = text(block, "id").unwrap_or_default();
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if id.is_empty() || !id.chars().all(fits) {
        return Err(RequestRefusal::invalid(format!(
            "{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        )));
    }
    let Some(name) = text(block, "name").filter(|name| !name.is_empty()) else {
        return Err(RequestRefusal::invalid(format!("{place}.tool_use.name: Field required")));
    };
    match block.get("input") {
        Some(input @ Value::Object(_)) => {
            Ok(RecordedToolCall { id: id.to_owned(), name: name.to_owned(), arguments: input.clone() })
        }
        Some(_) => Err(RequestRefusal::invalid(format!(
            "{place}.tool_use.input: Input should be a valid dictionary"
        ))),
        None => Err(RequestRefusal::invalid(format!("{place}.tool_use.input: Field required"))),
    }
}

/// Thoughts must be returned with their original signature.
fn check_thinking(place: &str, block: &Value) -> Result<(), RequestRefusal> {
    let Some(thinking) = text(block, "thinking") else {
        return Err(RequestRefusal::invalid(format!("{place}.thinking.thinking: Field required")));
    };
    match text(block, "signature") {
        None => Err(RequestRefusal::invalid(format!("{place}.thinking.signature: Field required"))),
        Some(signature) if thought::is_signed(signature, thinking) => Ok(()),
        Some(_) => Err(RequestRefusal::invalid(format!("{place}: Invalid `signature` in `thinking` block"))),
    }
}

/// Search results must be returned with content that only this vendor can read.
fn check_results(place: &str, block: &Value) -> Result<(), RequestRefusal> {
    let found = block.get("content").and_then(Value::as_array).into_iter().flatten();
    for (index, result) in found.enumerate() {
        let content = text(result, "encrypted_content").unwrap_or_default();
        if !thought::is_signed(content, text(result, "url").unwrap_or_default()) {
            return Err(RequestRefusal::invalid(format!(
                "{place}.content.{index}: Invalid `encrypted_content` in `web_search_result` block"
            )));
        }
    }
    Ok(())
}

/// Parses a user message: the results of the `open` calls first, and then anything else.
fn read_user(
    ask: &mut ParsedRequest,
    at: usize,
    content: Option<&Value>,
    mut open: Vec<String>,
    reader: ContentReader<'_>,
) -> Result<(), RequestRefusal> {
    let Some(Value::Array(blocks)) = content else {
        check_answered(at, &open)?;
        return reader.user(ask, content);
    };
    let made = open.clone();
    let is_result = |block: &&Value| text(block, "type") == Some("tool_result");
    let first = blocks.iter().take_while(is_result).count();
    let (results, rest) = blocks.split_at(first);
    for (index, block) in results.iter().enumerate() {
        let id = text(block, "tool_use_id").unwrap_or_default();
        let place = format!("messages.{at}.content.{index}");
        if !made.iter().any(|held| held == id) {
            return Err(unexpected(&place, id));
        }
        let Some(found) = open.iter().position(|held| held == id) else {
            return Err(RequestRefusal::invalid(format!(
                "{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            )));
        };
        open.remove(found);
        read_result(ask, &place, id, block, reader)?;
    }
    check_answered(at, &open)?;
    if let Some(late) = rest.iter().position(|block| is_result(&block)) {
        let id = rest.get(late).and_then(|block| text(block, "tool_use_id")).unwrap_or_default();
        return Err(unexpected(&format!("messages.{at}.content.{}", first + late), id));
    }
    if rest.is_empty() { Ok(()) } else { reader.parts_of_user(ask, rest) }
}

fn unexpected(place: &str, id: &str) -> RequestRefusal {
    RequestRefusal::invalid(format!(
        "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
    ))
}

fn read_result(
    ask: &mut ParsedRequest,
    place: &str,
    id: &str,
    block: &Value,
    reader: ContentReader<'_>,
) -> Result<(), RequestRefusal> {
    let is_error = block.get("is_error") == Some(&Value::Bool(true));
    let content = block.get("content");
    if is_error && is_empty(content) {
        return Err(RequestRefusal::invalid(format!(
            "{place}.tool_result: content cannot be empty if `is_error` is true"
        )));
    }
    let message = match content {
        Some(Value::Array(blocks)) => {
            let plain = ["text", "image", "document", "search_result"];
            let odd =
                blocks.iter().filter_map(|block| text(block, "type")).find(|kind| !plain.contains(kind));
            if let Some(odd) = odd {
                return Err(tag(&format!("{place}.tool_result.content"), odd));
            }
            reader.content(ask, blocks)?
        }
        content => text_of(content),
    };
    let tool = ask.tool_of(id).unwrap_or_default().to_owned();
    ask.add_result(RecordedToolResult { call: id.to_owned(), tool, text: message, is_error });
    Ok(())
}

fn tag(place: &str, kind: &str) -> RequestRefusal {
    RequestRefusal::invalid(format!(
        "{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
    ))
}
