//! Streamed messages of the Messages API.

use std::borrow::Cow;

use rowmill_types::Finish;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::answer::{Block, Said, echo, finish, usage};
use super::sources::Sources;
use crate::error_body::ErrorBody;
use crate::reading::{Assembly, Reading, Step, Unread};
use crate::tools::{Terms, as_object, call};

/// Assembles blocks from events.
#[derive(Debug, Default)]
pub(crate) struct AnthropicAssembly {
    terms: Terms,
    text: String,
    input: String,
    /// The blocks; kept only if there are tools.
    blocks: Vec<Growing>,
    stop_reason: Option<String>,
    usage: Map<String, Value>,
    model: Option<String>,
}

/// A block so far: as it started, and what was appended to its fields.
#[derive(Debug, Default)]
struct Growing {
    index: Option<u64>,
    start: Map<String, Value>,
    text: String,
    input: String,
    thinking: String,
    signature: String,
    citations: Vec<Value>,
}

impl Growing {
    fn new(index: Option<u64>, start: Map<String, Value>) -> Self {
        Self { index, start, ..Self::default() }
    }

    fn take(&mut self, delta: &Delta<'_>) {
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
        block.push_str(as_object(&self.input));
        block.push('}');
        block
    }
}

impl AnthropicAssembly {
    pub(crate) fn new(terms: Terms) -> Self {
        Self { terms, ..Self::default() }
    }

    fn take_delta(&mut self, index: Option<u64>, delta: &Delta<'_>) -> Step {
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
        if text.is_empty() && input.is_empty() { Step::Quiet } else { Step::Content }
    }

    /// The last event repeats some counts of the first one with newer values.
    fn take_usage(&mut self, usage: Option<Map<String, Value>>) {
        let told = usage.unwrap_or_default().into_iter().filter(|(_, value)| !value.is_null());
        self.usage.extend(told);
    }
}

impl Assembly for AnthropicAssembly {
    fn take(&mut self, data: &str) -> Result<Step, Unread> {
        let told: Told<'_> = serde_json::from_str(data)?;
        match &*told.kind {
            "error" => Err(Unread::Error(ErrorBody::parse(data.as_bytes()))),
            "message_stop" => Ok(Step::Done),
            "message_start" => {
                let start = told.message.unwrap_or_default();
                self.model = start.model;
                self.take_usage(start.usage);
                Ok(Step::Quiet)
            }
            "content_block_start" if self.terms.has_tools() => {
                let start =
                    told.content_block.map_or(Ok(Map::new()), |raw| serde_json::from_str(raw.get()))?;
                self.blocks.push(Growing::new(told.index, start));
                Ok(Step::Quiet)
            }
            "content_block_delta" | "message_delta" => {
                self.take_usage(told.usage);
                Ok(told.delta.map_or(Step::Quiet, |delta| self.take_delta(told.index, &delta)))
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
        let finish = finish(self.stop_reason.as_deref());
        let whole: Vec<String> = self.blocks.into_iter().map(Growing::whole).collect();
        let blocks: Vec<Block<'_>> =
            whole.iter().map(|raw| serde_json::from_str(raw)).collect::<Result<_, _>>()?;
        let mut said = Said { text: self.text, ..Said::default() };
        if !self.input.is_empty() {
            said.calls.push(call(None, None, self.input));
        }
        let mut sources = Sources::default();
        for block in &blocks {
            said.take(block, &self.terms);
            sources.take(block, &self.terms);
        }
        let settled = self.terms.settle(said.text, said.calls, finish);
        let must_return = finish == Finish::Paused || (said.is_more && !settled.calls.is_empty());
        let returned = blocks.iter().zip(whole.iter().map(String::as_str));
        let (usage, service_tier) = usage(raw_usage.as_deref()).unzip();
        Ok(Reading {
            text: settled.text,
            finish,
            calls: settled.calls,
            echo: if must_return { echo(returned, &self.terms) } else { None },
            hosted: sources.done(raw_usage.as_deref(), &self.terms),
            usage,
            raw_usage,
            model: self.model,
            service_tier: service_tier.flatten(),
        })
    }
}

#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    message: Option<Start>,
    #[serde(default, borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(default, borrow)]
    delta: Option<Delta<'a>>,
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
struct Delta<'a> {
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
