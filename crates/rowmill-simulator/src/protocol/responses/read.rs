//! Parses requests of the Responses API.

use serde_json::Value;

use super::super::content::ContentReader;
use super::super::{
    ParsedRequest, RequestRefusal, VendorProtocol, arguments_of, model_of, text, text_of, tools,
};
use crate::conversation::{RecordedToolCall, RecordedToolResult};
use crate::thought;

pub(in crate::protocol) fn read_responses_request(
    body: &Value,
    reader: ContentReader<'_>,
) -> Result<ParsedRequest, RequestRefusal> {
    let mut ask = ParsedRequest::new_for(VendorProtocol::Responses, model_of(body)?);
    if let Some(id) = text(body, "previous_response_id") {
        // Conversations are not stored here, so that every call shows what the model knows.
        let message = format!("Previous response with id '{id}' not found.");
        return Err(RequestRefusal {
            code: Some("previous_response_not_found"),
            ..RequestRefusal::invalid(message)
        });
    }
    if let Some(instructions) = text(body, "instructions") {
        ask.say_system(instructions);
    }
    match body.get("input") {
        Some(Value::String(reported)) => ask.say_user(reported.clone()),
        Some(Value::Array(items)) if !items.is_empty() => {
            let is_stored = body.get("store") != Some(&Value::Bool(false));
            let mut items_read =
                InputItemReader { ask: &mut ask, reader, is_stored, open: Vec::new(), reasoning: None };
            for (at, item) in items.iter().enumerate() {
                items_read.read(at, item)?;
            }
            items_read.finish()?;
        }
        _ => return Err(RequestRefusal::invalid("Missing required parameter: 'input'.")),
    }
    let format = body.pointer("/text/format");
    ask.schema = format.and_then(|format| format.get("schema")).cloned();
    ask.wants_json = format.and_then(|format| format.get("type")).is_some_and(|kind| kind == "json_object");
    tools::openai(body, &mut ask, false)?;
    let included = body.get("include").and_then(Value::as_array).into_iter().flatten();
    ask.gives_thoughts = included.into_iter().any(|name| name == "reasoning.encrypted_content");
    ask.max_tokens = body.get("max_output_tokens").and_then(Value::as_u64);
    ask.stream = body.get("stream") == Some(&Value::Bool(true));
    Ok(ask)
}

/// Parses the items of an input one after the other.
struct InputItemReader<'a> {
    ask: &'a mut ParsedRequest,
    reader: ContentReader<'a>,
    /// Whether this vendor stores the response.
    is_stored: bool,
    /// The calls that have no output yet.
    open: Vec<String>,
    /// The last reasoning item, which may or may not have been followed by another item.
    reasoning: Option<OpenReasoning>,
}

struct OpenReasoning {
    id: String,
    is_followed: bool,
}

impl InputItemReader<'_> {
    fn read(&mut self, at: usize, item: &Value) -> Result<(), RequestRefusal> {
        match text(item, "type").unwrap_or("message") {
            "message" => self.message(at, item),
            "function_call" => self.call(at, item),
            "function_call_output" => self.output(at, item),
            "reasoning" => self.think(item),
            "web_search_call"
            | "x_search_call"
            | "custom_tool_call"
            | "file_search_call"
            | "code_interpreter_call" => {
                self.follow();
                Ok(())
            }
            "item_reference" => Err(RequestRefusal::new(
                404,
                format!("Item with id '{}' not found.", text(item, "id").unwrap_or_default()),
            )),
            other => Err(RequestRefusal::invalid(format!("Invalid value: '{other}'. (input[{at}].type)"))),
        }
    }

    fn message(&mut self, at: usize, item: &Value) -> Result<(), RequestRefusal> {
        let content = item.get("content");
        let role = text(item, "role").unwrap_or_default();
        if role == "assistant" {
            self.follow();
            self.ask.add_text(text_of(content));
            return Ok(());
        }
        self.end_thought()?;
        match role {
            "system" | "developer" => self.ask.say_system(&text_of(content)),
            "user" => self.reader.user(self.ask, content)?,
            other => {
                return Err(RequestRefusal::invalid(format!(
                    "Invalid value: '{other}'. Supported values are: 'assistant', 'system', 'developer', and 'user'. (input[{at}].role)"
                )));
            }
        }
        Ok(())
    }

    fn call(&mut self, at: usize, item: &Value) -> Result<(), RequestRefusal> {
        let missing = |name: &str| {
            RequestRefusal::invalid(format!("Missing required parameter: 'input[{at}].{name}'."))
        };
        let id = text(item, "call_id").filter(|id| !id.is_empty()).ok_or_else(|| missing("call_id"))?;
        let name = text(item, "name").filter(|name| !name.is_empty()).ok_or_else(|| missing("name"))?;
        let Some(arguments) = text(item, "arguments") else {
            return Err(RequestRefusal::invalid(format!(
                "Invalid type for 'input[{at}].arguments': expected a string."
            )));
        };
        if self.ask.has_call(id) {
            return Err(RequestRefusal::invalid(format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            )));
        }
        if self.reasoning.is_none() && self.reader.thoughts.belongs(id) {
            let item = text(item, "id").unwrap_or(id);
            return Err(RequestRefusal::invalid(format!(
                "Item '{item}' of type 'function_call' was provided without its required 'reasoning' item."
            )));
        }
        self.follow();
        self.open.push(id.to_owned());
        self.ask.add_call(RecordedToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments_of(arguments),
        });
        Ok(())
    }

    fn output(&mut self, at: usize, item: &Value) -> Result<(), RequestRefusal> {
        self.end_thought()?;
        let Some(id) = text(item, "call_id") else {
            return Err(RequestRefusal::invalid(format!(
                "Missing required parameter: 'input[{at}].call_id'."
            )));
        };
        let Some(found) = self.open.iter().position(|open| open == id) else {
            return Err(RequestRefusal::invalid(format!(
                "No tool call found for function call output with call_id {id}."
            )));
        };
        self.open.remove(found);
        let given = match item.get("output") {
            Some(Value::String(given)) => given.clone(),
            Some(Value::Array(parts)) => self.reader.content(self.ask, parts)?,
            _ => {
                return Err(RequestRefusal::invalid(format!(
                    "Invalid type for 'input[{at}].output': expected one of a string or array of objects."
                )));
            }
        };
        let tool = self.ask.tool_of(id).unwrap_or_default().to_owned();
        self.ask.add_result(RecordedToolResult { call: id.to_owned(), tool, text: given, is_error: false });
        Ok(())
    }

    /// Reasoning is returned either in full, or by the id under which it was stored.
    fn think(&mut self, item: &Value) -> Result<(), RequestRefusal> {
        let id = text(item, "id").unwrap_or_default();
        match text(item, "encrypted_content") {
            Some(content) if thought::is_signed(content, "") => {}
            Some(content) => {
                let start: String = content.chars().take(4).collect();
                let message = format!(
                    "The encrypted content {start}... could not be verified. Reason: Encrypted content could not be decrypted or parsed."
                );
                return Err(RequestRefusal {
                    code: Some("invalid_encrypted_content"),
                    ..RequestRefusal::invalid(message)
                });
            }
            None if self.is_stored && thought::is_checked(id.trim_start_matches("rs_"), "") => {}
            None => {
                let hint = if self.is_stored {
                    ""
                } else {
                    " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
                };
                return Err(RequestRefusal::new(404, format!("Item with id '{id}' not found.{hint}")));
            }
        }
        self.reasoning = Some(OpenReasoning { id: id.to_owned(), is_followed: false });
        Ok(())
    }

    fn follow(&mut self) {
        if let Some(reasoning) = &mut self.reasoning {
            reasoning.is_followed = true;
        }
    }

    /// Ends the model's output; reasoning must not be its last item.
    fn end_thought(&mut self) -> Result<(), RequestRefusal> {
        match self.reasoning.take() {
            Some(OpenReasoning { id, is_followed: false }) => Err(RequestRefusal::invalid(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            ))),
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<(), RequestRefusal> {
        self.end_thought()?;
        match self.open.first() {
            Some(id) => Err(RequestRefusal::invalid(format!("No tool output found for function call {id}."))),
            None => Ok(()),
        }
    }
}
