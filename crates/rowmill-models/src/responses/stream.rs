//! Responses that come as events, over HTTP or a WebSocket.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{Response, read_response};
use crate::error_body::ErrorBody;
use crate::reading::{Assembly, Reading, Step, Unread, keep};
use crate::sse::Event;

/// Puts events together.
#[derive(Debug, Default)]
pub(crate) struct ResponsesAssembly {
    wrapped: bool,
    text: String,
    response: Option<Box<RawValue>>,
}

impl ResponsesAssembly {
    pub(crate) fn new(wrapped: bool) -> Self {
        Self { wrapped, ..Self::default() }
    }

    /// Takes the JSON of one event.
    pub(super) fn take_json(&mut self, json: &str) -> Result<Step, Unread> {
        let told: Told<'_> = serde_json::from_str(json)?;
        match &*told.kind {
            "response.output_text.delta" => {
                self.text.push_str(told.delta.as_deref().unwrap_or_default());
                Ok(Step::Content)
            }
            "response.refusal.delta" => Ok(Step::Content),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.response = keep(told.response);
                Ok(Step::Done)
            }
            "error" => Err(Unread::Error(ErrorBody::parse(json.as_bytes()))),
            _ => Ok(Step::Quiet),
        }
    }
}

impl Assembly for ResponsesAssembly {
    fn take(&mut self, event: &Event) -> Result<Step, Unread> {
        // Some servers end the stream as chat completions do, after the last event.
        if event.data.trim() == "[DONE]" {
            return Ok(Step::Quiet);
        }
        self.take_json(&event.data)
    }

    fn finish(self) -> Result<Reading, Unread> {
        let Some(raw) = &self.response else {
            return Err(Unread::Malformed("the last event holds no response".to_owned()));
        };
        let response: Response<'_> = serde_json::from_str(raw.get())?;
        read_response(response, Some(self.text), self.wrapped)
    }
}

#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    delta: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    response: Option<&'a RawValue>,
}
