//! Types that the wire layers of all protocols return.

use std::borrow::Cow;
use std::fmt;

use rowmill_types::{FinishReason, HostedToolUse, Message, NativeMessage, TokenUsage, ToolCall};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error_body::ErrorBody;
use crate::files::UploadedFiles;
use crate::surrogate::replace_half_surrogates;

/// A response, before its timing is known.
#[derive(Debug)]
pub(crate) struct ReadAnswer {
    pub(crate) text: String,
    pub(crate) finish: FinishReason,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) echo: Option<Box<NativeMessage>>,
    pub(crate) hosted: Option<Box<HostedToolUse>>,
    pub(crate) usage: Option<TokenUsage>,
    pub(crate) raw_usage: Option<Box<RawValue>>,
    pub(crate) model: Option<String>,
    pub(crate) service_tier: Option<String>,
}

/// Why a body or an event is not an answer.
#[derive(Debug)]
pub(crate) enum UnreadableAnswer {
    /// It violates the protocol; the text says how.
    Malformed(String),
    /// It is an error with a success status.
    Error(ErrorBody),
}

impl From<serde_json::Error> for UnreadableAnswer {
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
pub(crate) enum StreamStep {
    /// No part of the answer.
    NoContent,
    /// A part of the answer.
    Content,
    /// The answer is complete.
    Done,
}

/// Assembles an answer from the events of a stream.
pub(crate) trait StreamAssembly: Send {
    /// Takes the data of an event.
    fn push_event(&mut self, data: &str) -> Result<StreamStep, UnreadableAnswer>;

    /// Whether the answer is complete if the body ends without a terminal event.
    fn is_complete_at_end(&self) -> bool {
        false
    }

    /// The complete answer.
    fn finish(self) -> Result<ReadAnswer, UnreadableAnswer>;
}

/// The translation of one protocol: builds request bodies and parses responses.
pub(crate) trait WireProtocol: Send + Sync + fmt::Debug {
    /// Assembles streamed answers.
    type StreamAssembly: StreamAssembly;

    /// The body of a call, with references to uploaded files. `cap` is the maximum tokens of its answer and
    /// replaces the default limit.
    fn body(&self, messages: &[Message], uploaded: &UploadedFiles, cap: Option<u64>) -> Vec<u8>;

    /// Reads a complete response.
    fn read(&self, body: &[u8]) -> Result<ReadAnswer, UnreadableAnswer>;

    /// Reads a complete response, also one with letters that Rust text cannot contain.
    fn read_repaired(&self, body: &[u8]) -> Result<ReadAnswer, UnreadableAnswer> {
        self.read(body).or_else(|unread| match replace_half_surrogates(body) {
            Some(mended) => self.read(&mended),
            None => Err(unread),
        })
    }

    /// Starts to assemble a streamed answer.
    fn assembly(&self) -> Self::StreamAssembly;
}

/// Text that may be a string, null, or an array of parts, of which only those of type `text` count.
#[derive(Debug, Default)]
pub(crate) struct TextOrParts<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for TextOrParts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

#[derive(serde::Deserialize)]
struct TextPart<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = TextOrParts<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text or its parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(TextOrParts(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(TextOrParts(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(TextOrParts(Cow::Owned(text)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(TextOrParts::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut whole = String::new();
        while let Some(part) = parts.next_element::<TextPart<'de>>()? {
            if part.kind.is_none_or(|kind| kind == "text" || kind == "output_text") {
                whole.push_str(part.text.as_deref().unwrap_or_default());
            }
        }
        Ok(TextOrParts(Cow::Owned(whole)))
    }
}

/// Copies a raw value, so that it can outlive its body.
pub(crate) fn to_owned_raw(raw: Option<&RawValue>) -> Option<Box<RawValue>> {
    raw.map(ToOwned::to_owned)
}

/// Rejects a response that contains an error instead of an answer.
pub(crate) fn reject_error(error: Option<&RawValue>) -> Result<(), UnreadableAnswer> {
    match error {
        Some(error) if !matches!(error.get(), "null" | "{}" | "\"\"" | "false") => {
            Err(UnreadableAnswer::Error(ErrorBody::from_error_field(error.get())))
        }
        _ => Ok(()),
    }
}
