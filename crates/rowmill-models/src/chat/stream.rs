//! Streamed chat completions.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{ChatAnswer, ChatChoice, ChatMessage, finish_reason, read_usage};
use super::calls::{CompleteAnswer, ToolCallPieces, merge_reasoning_details};
use crate::hosted_use::{HostedUseCollector, collect_annotations, collect_uses};
use crate::tool_calls::AnswerTerms;
use crate::wire_protocol::{
    ReadAnswer, StreamAssembly, StreamStep, UnreadableAnswer, reject_error, to_owned_raw,
};

/// Assembles chunks.
#[derive(Debug, Default)]
pub(crate) struct ChatAssembly {
    terms: AnswerTerms,
    content: String,
    refusal: String,
    pieces: ToolCallPieces,
    reasoning: String,
    details: Vec<Map<String, Value>>,
    hosted: HostedUseCollector,
    finish: Option<String>,
    usage: Option<Box<RawValue>>,
    model: Option<String>,
    service_tier: Option<String>,
}

impl ChatAssembly {
    pub(crate) fn new(terms: AnswerTerms) -> Self {
        Self { terms, ..Self::default() }
    }

    fn take_choice(&mut self, choice: ChatChoice<'_>) -> Result<StreamStep, UnreadableAnswer> {
        reject_error(choice.error)?;
        if let Some(reason) = choice.finish_reason {
            self.finish = Some(reason.into_owned());
        }
        let delta = choice.delta.unwrap_or_default();
        self.take_thoughts(&delta);
        collect_annotations(&mut self.hosted, delta.annotations);
        let before = self.content.len() + self.refusal.len();
        self.content.push_str(&delta.content.unwrap_or_default().0);
        self.refusal.push_str(&delta.refusal.unwrap_or_default());
        let mut grows = self.content.len() + self.refusal.len() > before;
        for piece in delta.tool_calls.unwrap_or_default() {
            grows |= self.pieces.add(piece);
        }
        Ok(if grows { StreamStep::Content } else { StreamStep::NoContent })
    }

    /// Keeps reasoning if calls may follow it: only then is it sent back.
    fn take_thoughts(&mut self, delta: &ChatMessage<'_>) {
        if !self.terms.offers_tools() {
            return;
        }
        if let Some(text) =
            delta.reasoning_content.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
        {
            self.reasoning.push_str(&text);
        }
        if let Some(raw) = delta.reasoning_details {
            merge_reasoning_details(&mut self.details, raw.get());
        }
    }
}

impl StreamAssembly for ChatAssembly {
    fn push_event(&mut self, data: &str) -> Result<StreamStep, UnreadableAnswer> {
        if data.trim() == "[DONE]" {
            return Ok(StreamStep::Done);
        }
        let chunk: ChatAnswer<'_> = serde_json::from_str(data)?;
        reject_error(chunk.error)?;
        if let Some(raw) = chunk.usage {
            self.usage = to_owned_raw(Some(raw));
        }
        if let Some(model) = chunk.model.filter(|_| self.model.is_none()) {
            self.model = Some(model.into_owned());
        }
        if let Some(tier) = chunk.service_tier {
            self.service_tier = Some(tier.into_owned());
        }
        match chunk.choices.unwrap_or_default().into_iter().next() {
            Some(choice) => self.take_choice(choice),
            None => Ok(StreamStep::NoContent),
        }
    }

    fn finish(mut self) -> Result<ReadAnswer, UnreadableAnswer> {
        if self.terms.hosts {
            collect_uses(&mut self.hosted, self.usage.as_deref());
        }
        let non_empty = |text: String| Some(text).filter(|text| !text.is_empty());
        let details: Vec<Value> = self.details.into_iter().map(Value::Object).collect();
        let whole = CompleteAnswer {
            content: self.content,
            refusal: non_empty(self.refusal),
            pieces: self.pieces,
            finish: finish_reason(self.finish.as_deref())?,
            reasoning: non_empty(self.reasoning).map(|text| Value::from(text).to_string()),
            details: (!details.is_empty()).then(|| Value::from(details).to_string()),
        };
        let outcome = whole.separate_calls(&self.terms);
        Ok(ReadAnswer {
            text: outcome.text,
            finish: outcome.finish,
            calls: outcome.calls,
            echo: outcome.echo,
            hosted: self.hosted.into_hosted_use(),
            usage: read_usage(self.usage.as_deref()),
            raw_usage: self.usage,
            model: self.model,
            service_tier: self.service_tier,
        })
    }
}
