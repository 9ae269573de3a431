//! Messages in JSON: the formats of MCP prompts, of fast-agent's histories, and of OpenAI's chat
//! protocol.

use rowmill_types::{Message, ToolCall, ToolOutput};
use serde_json::{Map, Value};

use crate::mistake::CardMistake;

/// Parses a list of messages, or an object with one.
pub(crate) fn read_json_messages(text: &str) -> Result<Vec<Message>, CardMistake> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        CardMistake::at(error.line() as u64, "cannot be read as JSON")
            .cause(error.to_string())
            .hint("correct it there")
    })?;
    let list = match &value {
        Value::Object(object) => object.get("messages"),
        list => Some(list),
    };
    let list = list.and_then(Value::as_array).ok_or_else(|| {
        CardMistake::in_card("there is no list of messages")
            .hint("write `{\"messages\": [{\"role\": …, \"content\": …}]}`")
    })?;
    let mut reader = MessageReader::default();
    for (index, message) in list.iter().enumerate() {
        reader.number = index + 1;
        reader.add(message)?;
    }
    reader.end()
}

/// The text of a resource in JSON: a block of an MCP message, or the resource in it.
pub(crate) fn resource_text(json: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    let resource = value.get("resource").unwrap_or(&value);
    resource.get("text").and_then(Value::as_str).map(str::to_owned)
}

#[derive(Default)]
struct MessageReader {
    messages: Vec<Message>,
    /// Calls without a result so far: the id in the file, the call, and the number of its message.
    open: Vec<(String, ToolCall, usize)>,
    calls: usize,
    /// The number of the current message, counted from 1.
    number: usize,
}

impl MessageReader {
    fn wrong(&self, what: &str) -> CardMistake {
        CardMistake::in_card(format!("message {} {what}", self.number))
    }

    fn add(&mut self, message: &Value) -> Result<(), CardMistake> {
        match message.get("role").and_then(Value::as_str).unwrap_or_default() {
            "user" => self.add_user(message),
            "assistant" => self.add_assistant(message),
            "tool" => {
                let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
                let text = self.text(message)?.unwrap_or_default();
                self.answer(id, ToolOutput::from_text(text))
            }
            "system" => Err(self.wrong("has the role `system`").hint("move it to the card's instruction")),
            _ => Err(self
                .wrong("has no `role` of `user` or `assistant`")
                .hint("set the role; `tool` is for tool results")),
        }
    }

    fn add_user(&mut self, message: &Value) -> Result<(), CardMistake> {
        let results = message.get("tool_results").and_then(Value::as_object);
        for (id, result) in results.into_iter().flatten() {
            let text = result.get("content").and_then(text_of).unwrap_or_default();
            let is_error = ["isError", "is_error"].iter().any(|name| result[*name] == Value::Bool(true));
            self.answer(id, ToolOutput { is_error, ..ToolOutput::from_text(text) })?;
        }
        let has_results = results.is_some_and(|results| !results.is_empty());
        match self.text(message)? {
            Some(text) => {
                self.check_answered()?;
                self.messages.push(Message::user(text));
            }
            None if has_results => {}
            None => return Err(self.no_text()),
        }
        Ok(())
    }

    fn add_assistant(&mut self, message: &Value) -> Result<(), CardMistake> {
        self.check_answered()?;
        let text = self.text(message)?;
        let mut answer = Message::assistant(text.clone().unwrap_or_default());
        let written: Vec<(Option<&str>, &Value)> = match message.get("tool_calls") {
            Some(Value::Object(calls)) => calls.iter().map(|(id, call)| (Some(id.as_str()), call)).collect(),
            Some(Value::Array(calls)) => {
                calls.iter().map(|call| (call.get("id").and_then(Value::as_str), call)).collect()
            }
            _ => Vec::new(),
        };
        for (id, call) in written {
            let (name, arguments) = called(call).ok_or_else(|| {
                self.wrong("has a call without a tool's name, or with arguments that are not an object")
                    .hint("write `{\"params\": {\"name\": …, \"arguments\": {…}}}`")
            })?;
            self.calls += 1;
            // Some providers reject ids of other providers. All of them accept nine letters and digits.
            let call = ToolCall { id: format!("ex{:07}", self.calls), name, arguments };
            self.open.push((id.unwrap_or_default().to_owned(), call.clone(), self.number));
            answer.calls.push(call);
        }
        if text.is_none() && answer.calls.is_empty() {
            return Err(self.no_text());
        }
        self.messages.push(answer);
        Ok(())
    }

    /// Adds the output of a tool.
    fn answer(&mut self, id: &str, output: ToolOutput) -> Result<(), CardMistake> {
        let Some(place) = self.open.iter().position(|(known, ..)| known == id) else {
            return Err(self
                .wrong(&format!("has the result of a call that was not made before: `{id}`"))
                .hint("a result must follow its call and have its id, once"));
        };
        let (_, call, _) = self.open.remove(place);
        self.messages.push(Message::tool(&call, output));
        Ok(())
    }

    /// Every provider rejects a conversation that continues while a call has no result.
    fn check_answered(&self) -> Result<(), CardMistake> {
        let Some((_, call, number)) = self.open.first() else { return Ok(()) };
        Err(CardMistake::in_card(format!("message {number} calls `{}` but no result follows", call.name))
            .hint("add the tool's result, or remove the call"))
    }

    fn end(self) -> Result<Vec<Message>, CardMistake> {
        self.check_answered()?;
        Ok(self.messages)
    }

    /// The text of a message, if it has one.
    fn text(&self, message: &Value) -> Result<Option<String>, CardMistake> {
        match message.get("content") {
            None | Some(Value::Null) => Ok(None),
            Some(content) => match text_of(content) {
                Some(text) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
                None => Err(self.no_text()),
            },
        }
    }

    fn no_text(&self) -> CardMistake {
        self.wrong("has a `content` that is not text")
            .hint("write a text, or a list of `{\"type\": \"text\", \"text\": …}`")
    }
}

/// The tool and the arguments of a call, in the format of MCP or of OpenAI's chat protocol.
fn called(call: &Value) -> Option<(String, String)> {
    let inner = call.get("params").or_else(|| call.get("function")).unwrap_or(call);
    let name = inner.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?;
    let arguments = match inner.get("arguments") {
        Some(Value::String(text)) => {
            serde_json::from_str::<Map<String, Value>>(text).ok()?;
            text.clone()
        }
        Some(Value::Object(arguments)) => Value::Object(arguments.clone()).to_string(),
        None | Some(Value::Null) => Value::Object(Map::new()).to_string(),
        Some(_) => return None,
    };
    Some((name.to_owned(), arguments))
}

/// A text, or blocks of text as paragraphs. Text resources count as such.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Object(block) => {
            let holder = match block.get("type").and_then(Value::as_str) {
                Some("text") => Some(block),
                Some("resource") => block.get("resource").and_then(Value::as_object),
                _ => None,
            };
            holder?.get("text").and_then(Value::as_str).map(str::to_owned)
        }
        Value::Array(blocks) => {
            let texts: Option<Vec<String>> = blocks.iter().map(text_of).collect();
            texts.map(|texts| texts.join("\n\n"))
        }
        _ => None,
    }
}
