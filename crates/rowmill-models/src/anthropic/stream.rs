//! Messages that come as a stream of events.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::wire::{Whole, reading, usage};
use crate::error_body::ErrorBody;
use crate::reading::{Assembly, Reading, Step, Unread};
use crate::sse::Event;

/// Puts blocks together.
#[derive(Debug, Default)]
pub(crate) struct AnthropicAssembly {
    wrapped: bool,
    text: String,
    input: String,
    stop_reason: Option<String>,
    usage: Map<String, Value>,
    model: Option<String>,
}

impl AnthropicAssembly {
    pub(crate) fn new(wrapped: bool) -> Self {
        Self { wrapped, ..Self::default() }
    }

    fn take_delta(&mut self, delta: Delta) -> Step {
        if let Some(reason) = delta.stop_reason {
            self.stop_reason = Some(reason);
        }
        let text = delta.text.unwrap_or_default();
        let input = delta.partial_json.unwrap_or_default();
        self.text.push_str(&text);
        self.input.push_str(&input);
        if text.is_empty() && input.is_empty() { Step::Quiet } else { Step::Content }
    }

    /// The last event repeats some counts of the first with later values.
    fn take_usage(&mut self, usage: Option<Map<String, Value>>) {
        let told = usage.unwrap_or_default().into_iter().filter(|(_, value)| !value.is_null());
        self.usage.extend(told);
    }
}

impl Assembly for AnthropicAssembly {
    fn take(&mut self, event: &Event) -> Result<Step, Unread> {
        let told: Told = serde_json::from_str(&event.data)?;
        match told.kind.as_str() {
            "error" => Err(Unread::Error(ErrorBody::parse(event.data.as_bytes()))),
            "message_stop" => Ok(Step::Done),
            "message_start" => {
                let start = told.message.unwrap_or_default();
                self.model = start.model;
                self.take_usage(start.usage);
                Ok(Step::Quiet)
            }
            "content_block_delta" | "message_delta" => {
                self.take_usage(told.usage);
                Ok(told.delta.map_or(Step::Quiet, |delta| self.take_delta(delta)))
            }
            _ => Ok(Step::Quiet),
        }
    }

    fn finish(self) -> Result<Reading, Unread> {
        let raw_usage = if self.usage.is_empty() {
            None
        } else {
            RawValue::from_string(Value::Object(self.usage).to_string()).ok()
        };
        Ok(reading(Whole {
            text: if self.input.is_empty() { self.text } else { self.input },
            stop_reason: self.stop_reason.as_deref(),
            wrapped: self.wrapped,
            usage: usage(raw_usage.as_deref()),
            raw_usage,
            model: self.model,
        }))
    }
}

#[derive(Deserialize)]
struct Told {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    message: Option<Start>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    usage: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
struct Start {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
}
