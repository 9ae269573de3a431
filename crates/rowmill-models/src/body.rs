//! Request bodies: what every row shares is written once, a call adds its messages.

use rowmill_types::Message;
use serde_json::{Map, Value};

use crate::files::{Shape, Uploaded, room};
use crate::messages::{Manner, group, is_plain, more_room, write_group, write_plain};

/// A request body with a gap for the messages.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    prefix: Vec<u8>,
    suffix: Vec<u8>,
    shape: Shape,
    manner: Manner,
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
    /// How the model is spoken to.
    pub(crate) manner: Manner,
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
        let (prefix, suffix) = (prefix.into_bytes(), suffix.into_bytes());
        Self { prefix, suffix, shape: parts.shape, manner: parts.manner }
    }

    /// The body of one call, with its files except those that are uploaded.
    pub(crate) fn body(&self, messages: &[Message], uploaded: &Uploaded) -> Vec<u8> {
        // An eighth more than the text leaves room for the usual escapes.
        let size = |message: &Message| {
            message.text.len() * 9 / 8 + 64 + room(message, uploaded) + more_room(message)
        };
        let text: usize = messages.iter().map(size).sum();
        let mut body = Vec::with_capacity(self.prefix.len() + text + self.suffix.len());
        body.extend_from_slice(&self.prefix);
        let mut rest = messages;
        while let Some(message) = rest.first() {
            if rest.len() < messages.len() {
                body.push(b',');
            }
            let (together, after) = rest.split_at(group(rest));
            rest = after;
            if is_plain(message) {
                write_plain(&mut body, self.shape, message);
            } else {
                write_group(&mut body, self.shape, &self.manner, together, uploaded);
            }
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
