//! Streamed chat completions.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{Answer, Choice, Said, finish, usage};
use super::calls::{Pieces, Whole, add_details};
use crate::hosted::{Gathered, annotations, uses};
use crate::reading::{Assembly, Reading, Step, Unread, keep, no_error};
use crate::tools::Terms;

/// Assembles chunks.
#[derive(Debug, Default)]
pub(crate) struct ChatAssembly {
    terms: Terms,
    content: String,
    refusal: String,
    pieces: Pieces,
    reasoning: String,
    details: Vec<Map<String, Value>>,
    hosted: Gathered,
    finish: Option<String>,
    usage: Option<Box<RawValue>>,
    model: Option<String>,
    service_tier: Option<String>,
}

impl ChatAssembly {
    pub(crate) fn new(terms: Terms) -> Self {
        Self { terms, ..Self::default() }
    }

    fn take_choice(&mut self, choice: Choice<'_>) -> Result<Step, Unread> {
        no_error(choice.error)?;
        if let Some(reason) = choice.finish_reason {
            self.finish = Some(reason.into_owned());
        }
        let delta = choice.delta.unwrap_or_default();
        self.take_thoughts(&delta);
        annotations(&mut self.hosted, delta.annotations);
        let before = self.content.len() + self.refusal.len();
        self.content.push_str(&delta.content.unwrap_or_default().0);
        self.refusal.push_str(&delta.refusal.unwrap_or_default());
        let mut grows = self.content.len() + self.refusal.len() > before;
        for piece in delta.tool_calls.unwrap_or_default() {
            grows |= self.pieces.add(piece);
        }
        Ok(if grows { Step::Content } else { Step::Quiet })
    }

    /// Keeps reasoning if calls may follow it: only then is it sent back.
    fn take_thoughts(&mut self, delta: &Said<'_>) {
        if !self.terms.offers_tools() {
            return;
        }
        if let Some(text) =
            delta.reasoning_content.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
        {
            self.reasoning.push_str(&text);
        }
        if let Some(raw) = delta.reasoning_details {
            add_details(&mut self.details, raw.get());
        }
    }
}

impl Assembly for ChatAssembly {
    fn take(&mut self, data: &str) -> Result<Step, Unread> {
        if data.trim() == "[DONE]" {
            return Ok(Step::Done);
        }
        let chunk: Answer<'_> = serde_json::from_str(data)?;
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

    fn finish(mut self) -> Result<Reading, Unread> {
        if self.terms.hosts {
            uses(&mut self.hosted, self.usage.as_deref());
        }
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        let details: Vec<Value> = self.details.into_iter().map(Value::Object).collect();
        let whole = Whole {
            content: self.content,
            refusal: said(self.refusal),
            pieces: self.pieces,
            finish: finish(self.finish.as_deref())?,
            reasoning: said(self.reasoning).map(|text| Value::from(text).to_string()),
            details: (!details.is_empty()).then(|| Value::from(details).to_string()),
        };
        let outcome = whole.settle(&self.terms);
        Ok(Reading {
            text: outcome.text,
            finish: outcome.finish,
            calls: outcome.calls,
            echo: outcome.echo,
            hosted: self.hosted.done(),
            usage: usage(self.usage.as_deref()),
            raw_usage: self.usage,
            model: self.model,
            service_tier: self.service_tier,
        })
    }
}
