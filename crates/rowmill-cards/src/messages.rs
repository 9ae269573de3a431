//! Messages that go before the row's: examples of how to answer.

use rowmill_types::{Message, Problem};
use serde_json::Value;

use crate::mistake::Mistake;

/// How messages are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageForm {
    /// Text with lines of `---USER` and `---ASSISTANT`; without such a line it is one message of
    /// the user.
    Delimited,
    /// `{"messages": [{"role": …, "content": …}]}` in a file that ends with `.json`.
    Json,
}

impl MessageForm {
    /// The form that a file's name tells.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let extension = std::path::Path::new(name).extension();
        let json = extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        if json { Self::Json } else { Self::Delimited }
    }
}

/// Reads the messages of a file.
///
/// ```
/// # use rowmill_cards::{MessageForm, parse_messages};
/// let text = "---USER\ncat\n---ASSISTANT\nanimal";
/// let messages = parse_messages(text, MessageForm::Delimited, "examples.txt").unwrap();
/// assert_eq!(messages[1].text, "animal");
/// ```
///
/// # Errors
///
/// There is no message, or one that is not a text of the user or of the model.
pub fn parse_messages(text: &str, form: MessageForm, source: &str) -> Result<Vec<Message>, Problem> {
    let messages = match form {
        MessageForm::Delimited => delimited(text),
        MessageForm::Json => json(text),
    };
    let messages = messages.map_err(|mistake| mistake.of(source))?;
    if messages.is_empty() {
        let mistake = Mistake::whole("there is no message").hint("write one after a line of `---USER`");
        return Err(mistake.of(source));
    }
    Ok(messages)
}

fn delimited(text: &str) -> Result<Vec<Message>, Mistake> {
    // What stands before the first line that says who speaks is the user's.
    let mut messages = Vec::new();
    let mut speaker: fn(String) -> Message = Message::user;
    let mut lines: Vec<&str> = Vec::new();
    let mut finish = |lines: &mut Vec<&str>, speaker: fn(String) -> Message| {
        let text = lines.join("\n").trim().to_owned();
        lines.clear();
        if !text.is_empty() {
            messages.push(speaker(text));
        }
    };
    for (index, line) in text.lines().enumerate() {
        let next: fn(String) -> Message = match line.trim() {
            "---USER" => Message::user,
            "---ASSISTANT" => Message::assistant,
            "---RESOURCE" => {
                return Err(Mistake::at(index as u64 + 1, "files in messages are not supported")
                    .hint("put the text of the file into the message"));
            }
            _ => {
                lines.push(line);
                continue;
            }
        };
        finish(&mut lines, speaker);
        speaker = next;
    }
    finish(&mut lines, speaker);
    Ok(messages)
}

fn json(text: &str) -> Result<Vec<Message>, Mistake> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        Mistake::at(error.line() as u64, "cannot be read as JSON")
            .cause(error.to_string())
            .hint("correct it there")
    })?;
    let list = match &value {
        Value::Object(object) => object.get("messages"),
        list => Some(list),
    };
    let list = list.and_then(Value::as_array).ok_or_else(|| {
        Mistake::whole("there is no list of messages")
            .hint("write `{\"messages\": [{\"role\": …, \"content\": …}]}`")
    })?;
    list.iter().enumerate().map(|(index, message)| one(message, index + 1)).collect()
}

fn one(message: &Value, number: usize) -> Result<Message, Mistake> {
    let wrong = |what: &str| Mistake::whole(format!("message {number} {what}"));
    for field in ["tool_calls", "tool_results"] {
        if message.get(field).is_some_and(|value| !value.is_null()) {
            return Err(wrong("holds tool calls").hint("keep only texts of the user and the model"));
        }
    }
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    let speaker: fn(String) -> Message = match role {
        "user" => Message::user,
        "assistant" => Message::assistant,
        _ => return Err(wrong("has no `role` of `user` or `assistant`").hint("say who speaks")),
    };
    let text = message.get("content").and_then(text_of).filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| {
        wrong("has a `content` that is no text")
            .hint("write a text, or a list of `{\"type\": \"text\", \"text\": …}`")
    })?;
    Ok(speaker(text))
}

/// A text, or blocks of text as paragraphs.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Object(block) => {
            let is_text = block.get("type").and_then(Value::as_str) == Some("text");
            is_text.then(|| block.get("text").and_then(Value::as_str).map(str::to_owned)).flatten()
        }
        Value::Array(blocks) => {
            let texts: Option<Vec<String>> = blocks.iter().map(text_of).collect();
            texts.map(|texts| texts.join("\n\n"))
        }
        _ => None,
    }
}
