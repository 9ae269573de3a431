//! Streamed responses of the Responses API, over HTTP or a WebSocket.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::{Streamed, read_response};
use crate::error_body::ErrorBody;
use crate::reading::{Assembly, Reading, Step, Unread, keep};
use crate::tools::Terms;

/// Assembles events.
#[derive(Debug, Default)]
pub(crate) struct ResponsesAssembly {
    terms: Terms,
    streamed: Streamed,
    response: Option<Box<RawValue>>,
}

impl ResponsesAssembly {
    pub(crate) fn new(terms: Terms) -> Self {
        Self { terms, ..Self::default() }
    }

    /// Processes the JSON of one event.
    pub(super) fn take_json(&mut self, json: &str) -> Result<Step, Unread> {
        let told: Told<'_> = serde_json::from_str(json)?;
        match &*told.kind {
            "response.output_text.delta" => {
                self.streamed.text.push_str(told.delta.as_deref().unwrap_or_default());
                Ok(Step::Content)
            }
            "response.refusal.delta" | "response.function_call_arguments.delta" => Ok(Step::Content),
            "response.output_item.done" if self.terms.has_tools() => {
                self.streamed.items.extend(keep(told.item));
                Ok(Step::Quiet)
            }
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
    fn take(&mut self, data: &str) -> Result<Step, Unread> {
        // Some servers end the stream as chat completions do, after the last event.
        if data.trim() == "[DONE]" {
            return Ok(Step::Quiet);
        }
        self.take_json(data)
    }

    fn finish(self) -> Result<Reading, Unread> {
        let Some(raw) = &self.response else {
            return Err(Unread::Malformed("the last event contains no response".to_owned()));
        };
        read_response(raw.get().as_bytes(), Some(self.streamed), &self.terms)
    }
}

#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    delta: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    item: Option<&'a RawValue>,
    #[serde(default, borrow)]
    response: Option<&'a RawValue>,
}
