//! Streamed messages of the Messages API.

use std::borrow::Cow;

use rowmill_types::FinishReason;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{AnswerBlock, AnswerContent, finish_reason, native_message, read_usage};
use super::sources::CitationCollector;
use crate::error_body::ErrorBody;
use crate::tool_calls::{AnswerTerms, object_or_empty, tool_call};
use crate::wire_protocol::{ReadAnswer, StreamAssembly, StreamStep, UnreadableAnswer};

/// Assembles blocks from events.
#[derive(Debug, Default)]
pub(crate) struct AnthropicAssembly {
    terms: AnswerTerms,
    text: String,
    input: String,
    /// The blocks; kept only if there are tools.
    blocks: Vec<PartialBlock>,
    stop_reason: Option<String>,
    usage: Map<String, Value>,
    model: Option<String>,
}

/// A block so far: as it started, and what was appended to its fields.
#[derive(Debug, Default)]
struct PartialBlock {
    index: Option<u64>,
    start: Map<String, Value>,
    text: String,
    input: String,
    thinking: String,
    signature: String,
    citations: Vec<Value>,
}

impl PartialBlock {
    fn new(index: Option<u64>, start: Map<String, Value>) -> Self {
        Self { index, start, ..Self::default() }
    }

    fn take(&mut self, delta: &DeltaEvent<'_>) {
        let string =
            |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        self.text.push_str(delta.text.as_deref().unwrap_or_default());
        self.input.push_str(delta.partial_json.as_deref().unwrap_or_default());
        self.thinking.push_str(&string(delta.thinking).unwrap_or_default());
        self.signature.push_str(&string(delta.signature).unwrap_or_default());
        self.citations.extend(delta.citation.and_then(|raw| serde_json::from_str(raw.get()).ok()));
    }

    /// The block in the form that it would have in a complete response.
    fn whole(mut self) -> String {
        for (name, grown) in [("text", self.text), ("thinking", self.thinking), ("signature", self.signature)]
        {
            if let Some(Value::String(start)) = self.start.get_mut(name) {
                start.push_str(&grown);
            } else if !grown.is_empty() {
                self.start.insert(name.to_owned(), Value::from(grown));
            }
        }
        if !self.citations.is_empty() {
            self.start.insert("citations".to_owned(), Value::from(self.citations));
        }
        if self.input.is_empty() {
            return Value::Object(self.start).to_string();
        }
        // The input stays unparsed text, so that no number changes.
        self.start.shift_remove("input");
        let mut block = Value::Object(self.start).to_string();
        block.pop();
        block.push_str(if block.len() > 1 { r#","input":"# } else { r#""input":"# });
        block.push_str(object_or_empty(&self.input));
        block.push('}');
        block
    }
}

impl AnthropicAssembly {
    pub(crate) fn new(terms: AnswerTerms) -> Self {
        Self { terms, ..Self::default() }
    }

    fn take_delta(&mut self, index: Option<u64>, delta: &DeltaEvent<'_>) -> StreamStep {
        if let Some(reason) = &delta.stop_reason {
            self.stop_reason = Some(reason.clone());
        }
        let text = delta.text.as_deref().unwrap_or_default();
        let input = delta.partial_json.as_deref().unwrap_or_default();
        if !self.terms.has_tools() {
            self.text.push_str(text);
            self.input.push_str(input);
        } else if let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) {
            block.take(delta);
        }
        if text.is_empty() && input.is_empty() { StreamStep::NoContent } else { StreamStep::Content }
    }

    /// The last event repeats some counts of the first one with newer values.
    fn take_usage(&mut self, usage: Option<Map<String, Value>>) {
        let reported = usage.unwrap_or_default().into_iter().filter(|(_, value)| !value.is_null());
        self.usage.extend(reported);
    }
}

impl StreamAssembly for AnthropicAssembly {
    fn push_event(&mut self, data: &str) -> Result<StreamStep, UnreadableAnswer> {
        let event: StreamEvent<'_> = serde_json::from_str(data)?;
        match &*event.kind {
            "error" => Err(UnreadableAnswer::Error(ErrorBody::parse(data.as_bytes()))),
            "message_stop" => Ok(StreamStep::Done),
            "message_start" => {
                let start = event.message.unwrap_or_default();
                self.model = start.model;
                self.take_usage(start.usage);
                Ok(StreamStep::NoContent)
            }
            "content_block_start" if self.terms.has_tools() => {
                let start =
                    event.content_block.map_or(Ok(Map::new()), |raw| serde_json::from_str(raw.get()))?;
                self.blocks.push(PartialBlock::new(event.index, start));
                Ok(StreamStep::NoContent)
            }
            "content_block_delta" | "message_delta" => {
                self.take_usage(event.usage);
                Ok(event.delta.map_or(StreamStep::NoContent, |delta| self.take_delta(event.index, &delta)))
            }
            _ => Ok(StreamStep::NoContent),
        }
    }

    fn finish(self) -> Result<ReadAnswer, UnreadableAnswer> {
        let raw_usage = if self.usage.is_empty() {
            None
        } else {
            RawValue::from_string(Value::Object(self.usage).to_string()).ok()
        };
        let finish = finish_reason(self.stop_reason.as_deref());
        let whole: Vec<String> = self.blocks.into_iter().map(PartialBlock::whole).collect();
        let blocks: Vec<AnswerBlock<'_>> =
            whole.iter().map(|raw| serde_json::from_str(raw)).collect::<Result<_, _>>()?;
        let mut answer = AnswerContent { text: self.text, ..AnswerContent::default() };
        if !self.input.is_empty() {
            answer.calls.push(tool_call(None, None, self.input));
        }
        let mut sources = CitationCollector::default();
        for block in &blocks {
            answer.take(block, &self.terms);
            sources.take(block, &self.terms);
        }
        let settled = self.terms.separate_calls(answer.text, answer.calls, finish);
        let must_return = finish == FinishReason::Paused || (answer.is_more && !settled.calls.is_empty());
        let returned = blocks.iter().zip(whole.iter().map(String::as_str));
        let (usage, service_tier) = read_usage(raw_usage.as_deref()).unzip();
        Ok(ReadAnswer {
            text: settled.text,
            finish,
            calls: settled.calls,
            echo: if must_return { native_message(returned, &self.terms) } else { None },
            hosted: sources.into_hosted_use(raw_usage.as_deref(), &self.terms),
            usage,
            raw_usage,
            model: self.model,
            service_tier: service_tier.flatten(),
        })
    }
}

#[derive(Deserialize)]
struct StreamEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    message: Option<StartEvent>,
    #[serde(default, borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(default, borrow)]
    delta: Option<DeltaEvent<'a>>,
    #[serde(default)]
    usage: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
struct StartEvent {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct DeltaEvent<'a> {
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(default, borrow)]
    signature: Option<&'a RawValue>,
    #[serde(default, borrow)]
    citation: Option<&'a RawValue>,
    #[serde(default)]
    stop_reason: Option<String>,
}
