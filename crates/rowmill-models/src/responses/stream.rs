//! Streamed responses of the Responses API, over HTTP or a WebSocket.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::{StreamedContent, read_response};
use crate::error_body::ErrorBody;
use crate::tool_calls::AnswerTerms;
use crate::wire_protocol::{ReadAnswer, StreamAssembly, StreamStep, UnreadableAnswer, to_owned_raw};

/// Assembles events.
#[derive(Debug, Default)]
pub(crate) struct ResponsesAssembly {
    terms: AnswerTerms,
    streamed: StreamedContent,
    response: Option<Box<RawValue>>,
}

impl ResponsesAssembly {
    pub(crate) fn new(terms: AnswerTerms) -> Self {
        Self { terms, ..Self::default() }
    }

    /// Processes the JSON of one event.
    pub(super) fn take_json(&mut self, json: &str) -> Result<StreamStep, UnreadableAnswer> {
        let event: ResponseEvent<'_> = serde_json::from_str(json)?;
        match &*event.kind {
            "response.output_text.delta" => {
                self.streamed.text.push_str(event.delta.as_deref().unwrap_or_default());
                Ok(StreamStep::Content)
            }
            "response.refusal.delta" | "response.function_call_arguments.delta" => Ok(StreamStep::Content),
            "response.output_item.done" if self.terms.has_tools() => {
                self.streamed.items.extend(to_owned_raw(event.item));
                Ok(StreamStep::NoContent)
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.response = to_owned_raw(event.response);
                Ok(StreamStep::Done)
            }
            "error" => Err(UnreadableAnswer::Error(ErrorBody::parse(json.as_bytes()))),
            _ => Ok(StreamStep::NoContent),
        }
    }
}

impl StreamAssembly for ResponsesAssembly {
    fn push_event(&mut self, data: &str) -> Result<StreamStep, UnreadableAnswer> {
        // Some servers end the stream as chat completions do, after the last event.
        if data.trim() == "[DONE]" {
            return Ok(StreamStep::NoContent);
        }
        self.take_json(data)
    }

    fn finish(self) -> Result<ReadAnswer, UnreadableAnswer> {
        let Some(raw) = &self.response else {
            return Err(UnreadableAnswer::Malformed("the last event contains no response".to_owned()));
        };
        read_response(raw.get().as_bytes(), Some(self.streamed), &self.terms)
    }
}

#[derive(Deserialize)]
struct ResponseEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    delta: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    item: Option<&'a RawValue>,
    #[serde(default, borrow)]
    response: Option<&'a RawValue>,
}
