//! Chat completions: requests out, answers in. No I/O.

use std::borrow::Cow;

use rowmill_types::{Finish, Message, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::answer::{Answer, ToolCall};
use super::stream::ChatAssembly;
use crate::body::{Parts, Template, put};
use crate::build::Setup;
use crate::error_body::ErrorBody;
use crate::exchange::Delivery;
use crate::files::{Shape, Uploaded};
use crate::quirks::{Quirks, Reasoning, Structured};
use crate::reading::{Reading, Unread, Wire, keep, no_error};
use crate::schema::{self, Prepared};
use crate::settings::{Key, Setting, Settings};

/// The translation of chat completions.
#[derive(Debug)]
pub(crate) struct ChatWire {
    template: Template,
    wrapped: bool,
}

impl ChatWire {
    pub(crate) fn new(setup: &Setup, delivery: Delivery) -> Self {
        let quirks = setup.connection.quirks;
        let settings = &setup.model.settings;
        let prepared = setup.schema.as_ref().map(Prepared::new);
        let way = match settings.word(Key::Structured) {
            Some("tool_use") => Structured::Tool,
            _ => quirks.structured,
        };
        let mut before = Map::new();
        before.insert("model".to_owned(), Value::from(setup.model.model.as_str()));
        let instruction = match &prepared {
            Some(prepared) if way == Structured::JsonObject => {
                Some(prepared.in_words(setup.instruction.as_deref()))
            }
            _ => setup.instruction.clone(),
        };
        let mut after = Map::new();
        parameters(&mut after, settings, quirks);
        reasoning(&mut after, settings.value(Key::Reasoning), quirks.reasoning);
        if let Some(prepared) = &prepared {
            structured(&mut after, prepared, way);
        }
        if delivery == Delivery::Stream {
            put(&mut after, "stream", Some(true));
            put(&mut after, "stream_options", Some(json!({"include_usage": true})));
        }
        let template = Template::new(Parts {
            before,
            field: "messages",
            first: instruction.map(|text| json!({"role": "system", "content": text})),
            after,
            shape: Shape::Chat,
        });
        Self { template, wrapped: prepared.is_some_and(|prepared| prepared.wrapped) }
    }
}

impl Wire for ChatWire {
    type Assembly = ChatAssembly;

    fn body(&self, messages: &[Message], uploaded: &Uploaded) -> Vec<u8> {
        self.template.body(messages, uploaded)
    }

    fn read(&self, body: &[u8]) -> Result<Reading, Unread> {
        let answer: Answer<'_> = serde_json::from_slice(body)?;
        no_error(answer.error)?;
        let Some(choice) = answer.choices.unwrap_or_default().into_iter().next() else {
            return Err(Unread::Malformed("the answer has no choices".to_owned()));
        };
        let message = choice.message.unwrap_or_default();
        no_error(choice.error)?;
        let refusal = message.refusal.filter(|text| !text.is_empty());
        let arguments = message.tool_calls.unwrap_or_default().into_iter().next().and_then(ToolCall::text);
        let finish = finish(choice.finish_reason.as_deref())?;
        let (text, finish) = match (refusal, arguments) {
            (Some(refusal), _) => (refusal.into_owned(), Finish::Refused),
            (None, Some(arguments)) => (arguments, finish),
            (None, None) => (message.content.unwrap_or_default().0.into_owned(), finish),
        };
        Ok(Reading {
            text: if self.wrapped && finish == Finish::Complete { schema::unwrap(text) } else { text },
            finish,
            usage: usage(answer.usage),
            raw_usage: keep(answer.usage),
            model: answer.model.map(Cow::into_owned),
            service_tier: answer.service_tier.map(Cow::into_owned),
        })
    }

    fn assembly(&self) -> ChatAssembly {
        ChatAssembly::new(self.wrapped)
    }
}

fn parameters(fields: &mut Map<String, Value>, settings: &Settings, quirks: Quirks) {
    put(fields, "temperature", settings.number(Key::Temperature));
    put(fields, "top_p", settings.number(Key::TopP));
    put(fields, "top_k", settings.integer(Key::TopK));
    put(fields, "min_p", settings.number(Key::MinP));
    put(fields, "presence_penalty", settings.number(Key::PresencePenalty));
    put(fields, "frequency_penalty", settings.number(Key::FrequencyPenalty));
    put(fields, quirks.repetition, settings.number(Key::RepetitionPenalty));
    put(fields, quirks.max_tokens, settings.integer(Key::MaxTokens));
    put(fields, quirks.seed, settings.integer(Key::Seed));
    put(fields, "stop", settings.texts(Key::Stop).map(ToOwned::to_owned));
    put(fields, "verbosity", settings.word(Key::Verbosity));
    put(fields, "service_tier", settings.word(Key::ServiceTier).map(tier));
}

/// The provider's word for a tier.
pub(crate) fn tier(word: &'static str) -> &'static str {
    if word == "fast" { "priority" } else { word }
}

/// The provider's word for a level of thinking; `None` leaves it to the model.
pub(crate) fn effort(word: &'static str) -> Option<&'static str> {
    match word {
        "auto" => None,
        "off" => Some("none"),
        word => Some(word),
    }
}

fn reasoning(fields: &mut Map<String, Value>, setting: Option<&Setting>, style: Reasoning) {
    let word = if let Some(Setting::Word(word)) = setting { Some(*word) } else { None };
    let budget = if let Some(Setting::Integer(tokens)) = setting { Some(*tokens) } else { None };
    let enabled = match (word, budget) {
        (Some("none" | "off"), _) | (_, Some(0)) => Some(false),
        (Some("on"), _) | (_, Some(_)) => Some(true),
        _ => None,
    };
    match style {
        Reasoning::Effort => put(fields, "reasoning_effort", word.and_then(effort)),
        Reasoning::Object => {
            let value = match (word, budget) {
                (Some("on"), _) => Some(json!({"enabled": true})),
                (_, Some(0)) => Some(json!({"enabled": false})),
                (_, Some(tokens)) => Some(json!({"max_tokens": tokens})),
                (word, _) => word.and_then(effort).map(|effort| json!({"effort": effort})),
            };
            put(fields, "reasoning", value);
        }
        Reasoning::Toggle => {
            let kind = enabled.map(|on| if on { "enabled" } else { "disabled" });
            put(fields, "thinking", kind.map(|kind| json!({"type": kind})));
        }
        Reasoning::Enable => {
            put(fields, "enable_thinking", enabled);
            put(fields, "thinking_budget", budget.filter(|tokens| *tokens > 0));
        }
        Reasoning::Anthropic | Reasoning::Google => {}
    }
}

fn structured(fields: &mut Map<String, Value>, prepared: &Prepared, way: Structured) {
    match way {
        Structured::Schema => put(
            fields,
            "response_format",
            Some(json!({
                "type": "json_schema",
                "json_schema": {"name": schema::NAME, "strict": prepared.strict, "schema": prepared.schema},
            })),
        ),
        Structured::JsonObject => put(fields, "response_format", Some(json!({"type": "json_object"}))),
        Structured::Tool => {
            let function = json!({
                "name": schema::NAME,
                "description": "Gives the answer.",
                "parameters": prepared.schema,
            });
            put(fields, "tools", Some(json!([{"type": "function", "function": function}])));
            let choice = json!({"type": "function", "function": {"name": schema::NAME}});
            put(fields, "tool_choice", Some(choice));
        }
    }
}

/// How an answer ended, by the provider's word.
pub(super) fn finish(reason: Option<&str>) -> Result<Finish, Unread> {
    match reason {
        Some("length" | "max_tokens" | "model_length") => Ok(Finish::Length),
        Some("content_filter") => Ok(Finish::Filtered),
        Some("refusal") => Ok(Finish::Refused),
        Some(reason @ ("error" | "insufficient_system_resource")) => Err(Unread::Error(ErrorBody::known(
            "server_error",
            &format!("the provider ended the answer with `{reason}`"),
        ))),
        _ => Ok(Finish::Complete),
    }
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<InputDetails>,
    #[serde(default)]
    completion_tokens_details: Option<OutputDetails>,
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u64>,
}

/// What OpenAI tells of prompt tokens.
#[derive(Default, Deserialize)]
pub(crate) struct InputDetails {
    /// Read from the cache.
    #[serde(default)]
    pub(crate) cached_tokens: Option<u64>,
    /// Written to the cache.
    #[serde(default)]
    pub(crate) cache_write_tokens: Option<u64>,
}

/// What OpenAI tells of generated tokens.
#[derive(Default, Deserialize)]
pub(crate) struct OutputDetails {
    /// Spent on reasoning.
    #[serde(default)]
    pub(crate) reasoning_tokens: Option<u64>,
}

/// The tokens, where the provider tells them in a way that can be read.
pub(super) fn usage(raw: Option<&RawValue>) -> Option<Usage> {
    let tokens: Tokens = serde_json::from_str(raw?.get()).ok()?;
    let details = tokens.prompt_tokens_details.unwrap_or_default();
    Some(Usage {
        input: tokens.prompt_tokens?,
        cached: details.cached_tokens.or(tokens.prompt_cache_hit_tokens).unwrap_or(0),
        cache_write: details.cache_write_tokens.unwrap_or(0),
        output: tokens.completion_tokens.unwrap_or(0),
        reasoning: tokens.completion_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0),
    })
}
