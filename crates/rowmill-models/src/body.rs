//! Request bodies: what every row shares is written once, a call adds its messages.

use rowmill_types::{Message, Role};
use serde_json::{Map, Value};

use crate::files::{Shape, Uploaded, room, write_message};

/// A request body with a gap for the messages.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
    shape: Shape,
}

/// What a [`Template`] is made of.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    /// The fields before the messages.
    pub(crate) before: Map<String, Value>,
    /// The name of the field that holds the messages.
    pub(crate) field: &'a str,
    /// A message that every call starts with.
    pub(crate) first: Option<Value>,
    /// The fields after the messages.
    pub(crate) after: Map<String, Value>,
    /// How messages are written.
    pub(crate) shape: Shape,
}

impl Template {
    pub(crate) fn new(parts: Parts<'_>) -> Self {
        let mut prefix = String::from("{");
        for (name, value) in &parts.before {
            prefix.push_str(&format!("{}:{value},", Value::from(name.as_str())));
        }
        prefix.push_str(&format!("{}:[", Value::from(parts.field)));
        if let Some(first) = parts.first {
            prefix.push_str(&format!("{first},"));
        }
        let mut suffix = String::from("]");
        for (name, value) in &parts.after {
            suffix.push_str(&format!(",{}:{value}", Value::from(name.as_str())));
        }
        suffix.push('}');
        Self { prefix: prefix.into_bytes(), suffix: suffix.into_bytes(), shape: parts.shape }
    }

    /// The body of one call, with its files except those that are uploaded.
    pub(crate) fn body(&self, messages: &[Message], uploaded: &Uploaded) -> Vec<u8> {
        // An eighth more than the text leaves room for the usual escapes.
        let size = |message: &Message| message.text.len() * 9 / 8 + 64 + room(message, uploaded);
        let text: usize = messages.iter().map(size).sum();
        let mut body = Vec::with_capacity(self.prefix.len() + text + self.suffix.len());
        body.extend_from_slice(&self.prefix);
        for (index, message) in messages.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            if !message.attachments.is_empty() {
                write_message(&mut body, self.shape, message, uploaded);
                continue;
            }
            let (before, after): (&[u8], &[u8]) = match (self.shape, message.role) {
                (Shape::Google, Role::User | Role::Tool) => (br#"{"role":"user","parts":[{"text":"#, b"}]}"),
                (Shape::Google, Role::Assistant) => (br#"{"role":"model","parts":[{"text":"#, b"}]}"),
                (_, Role::User | Role::Tool) => (br#"{"role":"user","content":"#, b"}"),
                (_, Role::Assistant) => (br#"{"role":"assistant","content":"#, b"}"),
            };
            body.extend_from_slice(before);
            write_text(&mut body, &message.text);
            body.extend_from_slice(after);
        }
        body.extend_from_slice(&self.suffix);
        body
    }
}

/// Writes `text` as a JSON string.
pub(crate) fn write_text(body: &mut Vec<u8>, text: &str) {
    let written = serde_json::to_writer(body, text);
    debug_assert!(written.is_ok(), "a string is always JSON, and a vector takes it");
}

/// Adds a field unless there is no value for it.
pub(crate) fn put(fields: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value.into());
    }
}
