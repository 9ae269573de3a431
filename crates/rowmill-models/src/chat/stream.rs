//! Chat completions that come as a stream of events.

use rowmill_types::Finish;
use serde_json::value::RawValue;

use super::answer::{Answer, Choice, ToolCall};
use super::wire::{finish, usage};
use crate::reading::{Assembly, Reading, Step, Unread, keep, no_error};
use crate::schema;
use crate::sse::Event;

/// Puts chunks together.
#[derive(Debug, Default)]
pub(crate) struct ChatAssembly {
    wrapped: bool,
    content: String,
    refusal: String,
    arguments: String,
    finish: Option<String>,
    usage: Option<Box<RawValue>>,
    model: Option<String>,
    service_tier: Option<String>,
}

impl ChatAssembly {
    pub(crate) fn new(wrapped: bool) -> Self {
        Self { wrapped, ..Self::default() }
    }

    fn take_choice(&mut self, choice: Choice<'_>) -> Result<Step, Unread> {
        no_error(choice.error)?;
        if let Some(reason) = choice.finish_reason {
            self.finish = Some(reason.into_owned());
        }
        let delta = choice.delta.unwrap_or_default();
        let before = self.content.len() + self.refusal.len() + self.arguments.len();
        self.content.push_str(&delta.content.unwrap_or_default().0);
        self.refusal.push_str(&delta.refusal.unwrap_or_default());
        if let Some(text) = delta.tool_calls.unwrap_or_default().into_iter().next().and_then(ToolCall::text) {
            self.arguments.push_str(&text);
        }
        let after = self.content.len() + self.refusal.len() + self.arguments.len();
        Ok(if after > before { Step::Content } else { Step::Quiet })
    }
}

impl Assembly for ChatAssembly {
    fn take(&mut self, event: &Event) -> Result<Step, Unread> {
        if event.data.trim() == "[DONE]" {
            return Ok(Step::Done);
        }
        let chunk: Answer<'_> = serde_json::from_str(&event.data)?;
        no_error(chunk.error)?;
        if let Some(raw) = chunk.usage {
            self.usage = keep(Some(raw));
        }
        if let Some(model) = chunk.model.filter(|_| self.model.is_none()) {
            self.model = Some(model.into_owned());
        }
        if let Some(tier) = chunk.service_tier {
            self.service_tier = Some(tier.into_owned());
        }
        match chunk.choices.unwrap_or_default().into_iter().next() {
            Some(choice) => self.take_choice(choice),
            None => Ok(Step::Quiet),
        }
    }

    fn finish(self) -> Result<Reading, Unread> {
        let ended = finish(self.finish.as_deref())?;
        let (text, finish) = if !self.refusal.is_empty() {
            (self.refusal, Finish::Refused)
        } else if self.arguments.is_empty() {
            (self.content, ended)
        } else {
            (self.arguments, ended)
        };
        Ok(Reading {
            text: if self.wrapped && finish == Finish::Complete { schema::unwrap(text) } else { text },
            finish,
            usage: usage(self.usage.as_deref()),
            raw_usage: self.usage,
            model: self.model,
            service_tier: self.service_tier,
        })
    }
}
