//! Parses requests for chat completions.

use serde_json::Value;

use super::super::content::ContentReader;
use super::super::{
    ParsedRequest, RequestRefusal, VendorProtocol, arguments_of, model_of, text, text_of, tools,
};
use crate::conversation::{RecordedToolCall, RecordedToolResult};

pub(in crate::protocol) fn read_chat_request(
    body: &Value,
    reader: ContentReader<'_>,
) -> Result<ParsedRequest, RequestRefusal> {
    let mut ask = ParsedRequest::new_for(VendorProtocol::Chat, model_of(body)?);
    let messages = body.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
    let Some(messages) = messages else {
        return Err(RequestRefusal::invalid("'messages' must be a non-empty array."));
    };
    let mut open = OpenToolCalls::default();
    for (at, message) in messages.iter().enumerate() {
        read_message(&mut ask, &mut open, at, message, reader)?;
    }
    open.check()?;
    let format = body.get("response_format");
    ask.schema = format.and_then(|format| format.pointer("/json_schema/schema")).cloned();
    ask.wants_json = format.and_then(|format| format.get("type")).is_some_and(|kind| kind == "json_object");
    tools::openai(body, &mut ask, true)?;
    let searches = body.get("web_search_options").is_some()
        || body
            .get("plugins")
            .and_then(Value::as_array)
            .is_some_and(|plugins| plugins.iter().any(|plugin| text(plugin, "id") == Some("web")));
    if searches {
        ask.hosted.push("web_search".to_owned());
    }
    ask.max_tokens =
        ["max_completion_tokens", "max_tokens"].into_iter().find_map(|name| body.get(name)?.as_u64());
    ask.stream = body.get("stream") == Some(&Value::Bool(true));
    ask.usage_in_stream = body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true));
    Ok(ask)
}

/// The calls of the last answer, and those that have no result yet.
#[derive(Debug, Default)]
struct OpenToolCalls {
    made: Vec<String>,
    left: Vec<String>,
}

impl OpenToolCalls {
    /// Only results may follow calls until each call has its own.
    fn check(&self) -> Result<(), RequestRefusal> {
        if self.left.is_empty() {
            return Ok(());
        }
        Err(RequestRefusal::invalid(format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            self.left.join(", ")
        )))
    }

    fn answer(&mut self, id: &str) -> Result<(), RequestRefusal> {
        if self.made.is_empty() {
            return Err(RequestRefusal::invalid(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            ));
        }
        let Some(at) = self.left.iter().position(|left| left == id) else {
            return Err(RequestRefusal::invalid(format!(
                "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message."
            )));
        };
        self.left.remove(at);
        Ok(())
    }
}

fn read_message(
    ask: &mut ParsedRequest,
    open: &mut OpenToolCalls,
    at: usize,
    message: &Value,
    reader: ContentReader<'_>,
) -> Result<(), RequestRefusal> {
    let content = message.get("content");
    let role = text(message, "role").unwrap_or_default();
    if role != "tool" {
        open.check()?;
        open.made.clear();
    }
    match role {
        "system" | "developer" => ask.say_system(&text_of(content)),
        "user" => reader.user(ask, content)?,
        "assistant" => {
            let calls = calls(at, message)?;
            if content.is_none_or(Value::is_null)
                && calls.is_empty()
                && message.get("refusal").is_none_or(Value::is_null)
            {
                return Err(RequestRefusal::invalid(format!(
                    "Invalid value for 'content': expected a string, got null. (messages.[{at}].content)"
                )));
            }
            open.made = calls.iter().map(|call| call.id.clone()).collect();
            open.left.clone_from(&open.made);
            ask.say_assistant(text_of(content), calls);
        }
        "tool" => {
            let Some(id) = text(message, "tool_call_id") else {
                return Err(RequestRefusal::invalid(
                    "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
                ));
            };
            open.answer(id)?;
            let given = result_text(at, content)?;
            let tool = ask.tool_of(id).unwrap_or_default().to_owned();
            ask.add_result(RecordedToolResult { call: id.to_owned(), tool, text: given, is_error: false });
        }
        other => {
            return Err(RequestRefusal::invalid(format!(
                "Invalid value: '{other}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
            )));
        }
    }
    Ok(())
}

/// The text of a tool result: in this protocol tools return only text.
fn result_text(at: usize, content: Option<&Value>) -> Result<String, RequestRefusal> {
    match content {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => match parts.iter().find(|part| text(part, "type") != Some("text")) {
            Some(part) => Err(RequestRefusal::invalid(format!(
                "Invalid 'messages[{at}].content': '{}' is only allowed in messages with role 'user'.",
                text(part, "type").unwrap_or_default()
            ))),
            None => Ok(text_of(content)),
        },
        _ => Err(RequestRefusal::invalid(format!(
            "Invalid value for 'content': expected a string, got null. (messages.[{at}].content)"
        ))),
    }
}

fn calls(at: usize, message: &Value) -> Result<Vec<RecordedToolCall>, RequestRefusal> {
    let Some(given) = message.get("tool_calls").filter(|calls| !calls.is_null()) else {
        return Ok(Vec::new());
    };
    let given = given.as_array().map(Vec::as_slice).unwrap_or_default();
    if given.is_empty() {
        return Err(RequestRefusal::invalid(format!(
            "Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )));
    }
    let mut calls: Vec<RecordedToolCall> = Vec::new();
    for (index, call) in given.iter().enumerate() {
        let place = format!("messages[{at}].tool_calls[{index}]");
        let missing =
            |name: &str| RequestRefusal::invalid(format!("Missing required parameter: '{place}.{name}'."));
        let id = text(call, "id").filter(|id| !id.is_empty()).ok_or_else(|| missing("id"))?;
        if text(call, "type") != Some("function") {
            return Err(missing("type"));
        }
        let function = call.get("function").ok_or_else(|| missing("function"))?;
        let name = text(function, "name").ok_or_else(|| missing("function.name"))?;
        let Some(arguments) = text(function, "arguments") else {
            return Err(RequestRefusal::invalid(format!(
                "Invalid type for '{place}.function.arguments': expected a string."
            )));
        };
        if calls.iter().any(|held| held.id == id) {
            return Err(RequestRefusal::invalid(format!(
                "Duplicate value for 'tool_call_id' of '{id}' in 'messages[{at}]'."
            )));
        }
        calls.push(RecordedToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments_of(arguments),
        });
    }
    Ok(calls)
}
