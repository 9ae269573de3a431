//! Types that the wire layers of all protocols return.

use std::borrow::Cow;
use std::fmt;

use rowmill_types::{Echo, Finish, Hosted, Message, ToolCall, Usage};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error_body::ErrorBody;
use crate::files::Uploaded;

/// A response, before its timing is known.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) text: String,
    pub(crate) finish: Finish,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) echo: Option<Box<Echo>>,
    pub(crate) hosted: Option<Box<Hosted>>,
    pub(crate) usage: Option<Usage>,
    pub(crate) raw_usage: Option<Box<RawValue>>,
    pub(crate) model: Option<String>,
    pub(crate) service_tier: Option<String>,
}

/// Why a body or an event is not an answer.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It violates the protocol; the text says how.
    Malformed(String),
    /// It is an error with a success status.
    Error(ErrorBody),
}

impl From<serde_json::Error> for Unread {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(if error.is_eof() {
            "the answer is truncated".to_owned()
        } else {
            format!("the answer does not follow the protocol: {error}")
        })
    }
}

/// What an event of a stream contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// No part of the answer.
    Quiet,
    /// A part of the answer.
    Content,
    /// The answer is complete.
    Done,
}

/// Assembles an answer from the events of a stream.
pub(crate) trait Assembly: Send {
    /// Takes the data of an event.
    fn take(&mut self, data: &str) -> Result<Step, Unread>;

    /// Whether the answer is complete if the body ends without a terminal event.
    fn ended(&self) -> bool {
        false
    }

    /// The complete answer.
    fn finish(self) -> Result<Reading, Unread>;
}

/// The translation of one protocol: builds request bodies and parses responses.
pub(crate) trait Wire: Send + Sync + fmt::Debug {
    /// Assembles streamed answers.
    type Assembly: Assembly;

    /// The body of a call, with references to uploaded files. `cap` is the maximum tokens of its answer and
    /// replaces the default limit.
    fn body(&self, messages: &[Message], uploaded: &Uploaded, cap: Option<u64>) -> Vec<u8>;

    /// Reads a complete response.
    fn read(&self, body: &[u8]) -> Result<Reading, Unread>;

    /// Starts to assemble a streamed answer.
    fn assembly(&self) -> Self::Assembly;
}

/// Text that may be a string, null, or an array of parts, of which only those of type `text` count.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

#[derive(serde::Deserialize)]
struct Part<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text or its parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut whole = String::new();
        while let Some(part) = parts.next_element::<Part<'de>>()? {
            if part.kind.is_none_or(|kind| kind == "text" || kind == "output_text") {
                whole.push_str(part.text.as_deref().unwrap_or_default());
            }
        }
        Ok(Text(Cow::Owned(whole)))
    }
}

/// Copies a raw value, so that it can outlive its body.
pub(crate) fn keep(raw: Option<&RawValue>) -> Option<Box<RawValue>> {
    raw.map(ToOwned::to_owned)
}

/// Rejects a response that contains an error instead of an answer.
pub(crate) fn no_error(error: Option<&RawValue>) -> Result<(), Unread> {
    match error {
        Some(error) if !matches!(error.get(), "null" | "{}" | "\"\"" | "false") => {
            Err(Unread::Error(ErrorBody::of(error.get())))
        }
        _ => Ok(()),
    }
}
