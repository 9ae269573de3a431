//! The Responses API: requests out, answers in. No I/O.

use std::borrow::Cow;

use rowmill_types::{Finish, Message, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::stream::ResponsesAssembly;
use crate::body::{Parts, Template, put};
use crate::build::Setup;
use crate::chat::wire::{InputDetails, OutputDetails, effort, tier};
use crate::error_body::ErrorBody;
use crate::files::{Shape, Uploaded};
use crate::reading::{Reading, Unread, Wire, keep, no_error};
use crate::schema::{self, Prepared};
use crate::settings::Key;

/// How a request is carried, which changes what stands round its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// The body of a POST whose answer is one document.
    Whole,
    /// The body of a POST whose answer is a stream.
    Stream,
    /// A message on a WebSocket.
    Socket,
}

/// The translation of the Responses API.
#[derive(Debug)]
pub(crate) struct ResponsesWire {
    template: Template,
    wrapped: bool,
}

impl ResponsesWire {
    pub(crate) fn new(setup: &Setup, carrier: Carrier) -> Self {
        let settings = &setup.model.settings;
        let prepared = setup.schema.as_ref().map(Prepared::new);
        let mut before = Map::new();
        put(&mut before, "type", (carrier == Carrier::Socket).then_some("response.create"));
        put(&mut before, "model", Some(setup.model.model.as_str()));
        put(&mut before, "instructions", setup.instruction.as_deref());
        let mut after = Map::new();
        // Rows are not kept at the provider for a conversation that never goes on.
        put(&mut after, "store", Some(false));
        put(&mut after, "temperature", settings.number(Key::Temperature));
        put(&mut after, "top_p", settings.number(Key::TopP));
        put(&mut after, "max_output_tokens", settings.integer(Key::MaxTokens));
        put(&mut after, "service_tier", settings.word(Key::ServiceTier).map(tier));
        let effort = settings.word(Key::Reasoning).and_then(effort);
        put(&mut after, "reasoning", effort.map(|effort| json!({"effort": effort})));
        let mut text = Map::new();
        put(&mut text, "verbosity", settings.word(Key::Verbosity));
        let format = prepared.as_ref().map(|prepared| {
            json!({
                "type": "json_schema",
                "name": schema::NAME,
                "strict": prepared.strict,
                "schema": prepared.schema,
            })
        });
        put(&mut text, "format", format);
        put(&mut after, "text", (!text.is_empty()).then_some(Value::Object(text)));
        put(&mut after, "stream", (carrier == Carrier::Stream).then_some(true));
        let parts = Parts { before, field: "input", first: None, after, shape: Shape::Responses };
        Self { template: Template::new(parts), wrapped: prepared.is_some_and(|prepared| prepared.wrapped) }
    }
}

impl Wire for ResponsesWire {
    type Assembly = ResponsesAssembly;

    fn body(&self, messages: &[Message], uploaded: &Uploaded) -> Vec<u8> {
        self.template.body(messages, uploaded)
    }

    fn read(&self, body: &[u8]) -> Result<Reading, Unread> {
        read_response(serde_json::from_slice(body)?, None, self.wrapped)
    }

    fn assembly(&self) -> ResponsesAssembly {
        ResponsesAssembly::new(self.wrapped)
    }
}

/// Reads a response. `streamed` is the text that came in pieces, for servers
/// that leave it out of the response that ends the stream.
pub(super) fn read_response(
    response: Response<'_>,
    streamed: Option<String>,
    wrapped: bool,
) -> Result<Reading, Unread> {
    no_error(response.error)?;
    let status = response.status.as_deref().unwrap_or("completed");
    if matches!(status, "failed" | "cancelled") {
        let what = format!("the provider ended the answer with `{status}`");
        return Err(Unread::Error(ErrorBody::known("server_error", &what)));
    }
    let Some(output) = response.output.or_else(|| streamed.as_ref().map(|_| Vec::new())) else {
        return Err(Unread::Malformed("the answer has no output".to_owned()));
    };
    let (mut text, mut refusal) = (String::new(), String::new());
    for content in output.into_iter().filter_map(|item| item.content).flatten() {
        match content.kind.as_deref() {
            Some("output_text") => text.push_str(content.text.as_deref().unwrap_or_default()),
            Some("refusal") => refusal.push_str(content.refusal.as_deref().unwrap_or_default()),
            _ => {}
        }
    }
    let reason = response.incomplete_details.and_then(|details| details.reason);
    let finish = match (status, reason.as_deref()) {
        _ if !refusal.is_empty() => Finish::Refused,
        ("incomplete", Some("content_filter")) => Finish::Filtered,
        ("incomplete", _) => Finish::Length,
        _ => Finish::Complete,
    };
    let text = match streamed {
        _ if finish == Finish::Refused => refusal,
        Some(streamed) if text.is_empty() => streamed,
        _ => text,
    };
    Ok(Reading {
        text: if wrapped && finish == Finish::Complete { schema::unwrap(text) } else { text },
        finish,
        usage: usage(response.usage),
        raw_usage: keep(response.usage),
        model: response.model.map(Cow::into_owned),
        service_tier: response.service_tier.map(Cow::into_owned),
    })
}

/// A response, whole.
#[derive(Deserialize)]
pub(super) struct Response<'a> {
    #[serde(default, borrow)]
    status: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default, borrow)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(default, borrow)]
    output: Option<Vec<Item<'a>>>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    service_tier: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(default, borrow)]
    reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(default, borrow)]
    content: Option<Vec<Content<'a>>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    refusal: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

fn usage(raw: Option<&RawValue>) -> Option<Usage> {
    let tokens: Tokens = serde_json::from_str(raw?.get()).ok()?;
    let details = tokens.input_tokens_details.unwrap_or_default();
    Some(Usage {
        input: tokens.input_tokens?,
        cached: details.cached_tokens.unwrap_or(0),
        cache_write: details.cache_write_tokens.unwrap_or(0),
        output: tokens.output_tokens.unwrap_or(0),
        reasoning: tokens.output_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0),
    })
}
