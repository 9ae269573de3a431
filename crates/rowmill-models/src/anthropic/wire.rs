//! The Messages API: requests out, answers in. No I/O.

use std::borrow::Cow;

use rowmill_types::{Finish, Message, Problem, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::stream::AnthropicAssembly;
use crate::body::{Parts, Template, put};
use crate::build::{Setup, contradiction};
use crate::exchange::Delivery;
use crate::files::{Shape, Uploaded};
use crate::reading::{Reading, Unread, Wire, keep, no_error};
use crate::schema::{self, Prepared};
use crate::settings::{Key, Setting};

/// What `max_tokens` is unless it is set; the API demands one. A budget for
/// thinking is added to it, because thinking counts as output.
const MAX_TOKENS: i64 = 4096;

/// The least budget for thinking that the API takes.
const LEAST_BUDGET: i64 = 1024;

/// Models from before thinking became adaptive, by what their names contain.
const BUDGETED: &[&str] = &["claude-3", "-4-0", "-4-1", "-4-2", "-4-5"];

/// The translation of the Messages API.
#[derive(Debug)]
pub(crate) struct AnthropicWire {
    template: Template,
    wrapped: bool,
}

/// How thinking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thinking {
    Unsaid,
    Disabled,
    Adaptive(Option<&'static str>),
    Budget(i64),
}

impl AnthropicWire {
    /// # Errors
    ///
    /// The settings contradict each other.
    pub(crate) fn new(setup: &Setup, delivery: Delivery) -> Result<Self, Problem> {
        let settings = &setup.model.settings;
        let thinking = thinking(setup.model.settings.value(Key::Reasoning), &setup.model.model);
        let mut before = Map::new();
        before.insert("model".to_owned(), Value::from(setup.model.model.as_str()));
        before.insert("max_tokens".to_owned(), Value::from(max_tokens(setup, thinking)?));
        if let Some(text) = &setup.instruction {
            // All rows share it, so the provider may as well keep it.
            let block = json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
            before.insert("system".to_owned(), json!([block]));
        }
        let mut after = Map::new();
        put(&mut after, "temperature", settings.number(Key::Temperature));
        put(&mut after, "top_p", settings.number(Key::TopP));
        put(&mut after, "top_k", settings.integer(Key::TopK));
        put(&mut after, "stop_sequences", settings.texts(Key::Stop).map(ToOwned::to_owned));
        put(&mut after, "service_tier", settings.word(Key::ServiceTier));
        let mut output = Map::new();
        match thinking {
            Thinking::Unsaid => {}
            Thinking::Disabled => put(&mut after, "thinking", Some(json!({"type": "disabled"}))),
            Thinking::Adaptive(effort) => {
                put(&mut after, "thinking", Some(json!({"type": "adaptive"})));
                put(&mut output, "effort", effort);
            }
            Thinking::Budget(tokens) => {
                put(&mut after, "thinking", Some(json!({"type": "enabled", "budget_tokens": tokens})));
            }
        }
        let prepared = setup.schema.as_ref().map(Prepared::new);
        if let Some(prepared) = &prepared {
            if by_tool(setup, thinking)? {
                force_tool(&mut after, prepared);
            } else {
                let format = json!({"type": "json_schema", "schema": prepared.schema});
                put(&mut output, "format", Some(format));
            }
        }
        if !output.is_empty() {
            after.insert("output_config".to_owned(), Value::Object(output));
        }
        put(&mut after, "stream", (delivery == Delivery::Stream).then_some(true));
        let template =
            Template::new(Parts { before, field: "messages", first: None, after, shape: Shape::Anthropic });
        Ok(Self { template, wrapped: prepared.is_some_and(|prepared| prepared.wrapped) })
    }
}

fn force_tool(fields: &mut Map<String, Value>, prepared: &Prepared) {
    let tool = json!({
        "name": schema::NAME,
        "description": "Gives the answer.",
        "input_schema": prepared.schema,
    });
    put(fields, "tools", Some(json!([tool])));
    put(fields, "tool_choice", Some(json!({"type": "tool", "name": schema::NAME})));
}

/// Whether a schema is enforced by a tool call, which the API refuses while the model thinks.
fn by_tool(setup: &Setup, thinking: Thinking) -> Result<bool, Problem> {
    let thinks = matches!(thinking, Thinking::Adaptive(_) | Thinking::Budget(_));
    match setup.model.settings.word(Key::Structured) {
        Some("tool_use") if thinks => Err(contradiction(
            &setup.model,
            "`structured=tool_use` forces a tool call, which a model that thinks (`reasoning`) cannot be forced to",
        )),
        Some(way) => Ok(way == "tool_use"),
        None => Ok(!thinks),
    }
}

fn thinking(setting: Option<&Setting>, model: &str) -> Thinking {
    let budgeted = BUDGETED.iter().any(|part| model.contains(part));
    match setting {
        Some(Setting::Integer(0) | Setting::Word("none" | "off")) => Thinking::Disabled,
        Some(Setting::Integer(tokens)) => Thinking::Budget(*tokens),
        Some(Setting::Word(level)) if budgeted => Thinking::Budget(match *level {
            "low" => 2048,
            "high" => 16_384,
            "xhigh" | "max" => 32_000,
            _ => 8192,
        }),
        Some(Setting::Word("auto" | "on")) => Thinking::Adaptive(None),
        Some(Setting::Word(level)) => Thinking::Adaptive(Some(level)),
        _ => Thinking::Unsaid,
    }
}

/// The `max_tokens` that requests carry; `None` where the settings contradict each other.
pub(crate) fn most_output(setup: &Setup) -> Option<u64> {
    let thinking = thinking(setup.model.settings.value(Key::Reasoning), &setup.model.model);
    u64::try_from(max_tokens(setup, thinking).ok()?).ok()
}

fn max_tokens(setup: &Setup, thinking: Thinking) -> Result<i64, Problem> {
    let set = setup.model.settings.integer(Key::MaxTokens);
    let Thinking::Budget(budget) = thinking else { return Ok(set.unwrap_or(MAX_TOKENS)) };
    if budget < LEAST_BUDGET {
        let what =
            format!("a budget of {budget} tokens for `reasoning` is below the least of {LEAST_BUDGET}");
        return Err(
            contradiction(&setup.model, &what).hint("use `reasoning=1024` or more, or `reasoning=none`")
        );
    }
    match set {
        Some(most) if most <= budget => Err(contradiction(
            &setup.model,
            &format!("`max_tokens` must be more than the {budget} tokens that `reasoning` may use"),
        )
        .hint(format!("use `max_tokens={}` or more", budget + 1))),
        Some(most) => Ok(most),
        None => Ok(budget.saturating_add(MAX_TOKENS)),
    }
}

impl Wire for AnthropicWire {
    type Assembly = AnthropicAssembly;

    fn body(&self, messages: &[Message], uploaded: &Uploaded) -> Vec<u8> {
        self.template.body(messages, uploaded)
    }

    fn read(&self, body: &[u8]) -> Result<Reading, Unread> {
        let answer: Answer<'_> = serde_json::from_slice(body)?;
        no_error(answer.error)?;
        let Some(blocks) = answer.content else {
            return Err(Unread::Malformed("the answer has no content".to_owned()));
        };
        let mut text = String::new();
        let mut input = None;
        for block in blocks {
            match block.kind.as_deref() {
                Some("text") => text.push_str(block.text.as_deref().unwrap_or_default()),
                Some("tool_use") => input = input.or(block.input),
                _ => {}
            }
        }
        let text = input.map_or(text, |input| input.get().to_owned());
        let usage = usage(answer.usage);
        Ok(reading(Whole {
            text,
            stop_reason: answer.stop_reason.as_deref(),
            wrapped: self.wrapped,
            usage,
            raw_usage: keep(answer.usage),
            model: answer.model.map(Cow::into_owned),
        }))
    }

    fn assembly(&self) -> AnthropicAssembly {
        AnthropicAssembly::new(self.wrapped)
    }
}

/// A complete answer, however it came.
pub(super) struct Whole<'a> {
    pub(super) text: String,
    pub(super) stop_reason: Option<&'a str>,
    pub(super) wrapped: bool,
    pub(super) usage: Option<(Usage, Option<String>)>,
    pub(super) raw_usage: Option<Box<RawValue>>,
    pub(super) model: Option<String>,
}

/// Turns a complete answer into a reading.
pub(super) fn reading(whole: Whole<'_>) -> Reading {
    let finish = match whole.stop_reason {
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::Refused,
        _ => Finish::Complete,
    };
    let (usage, service_tier) = whole.usage.unzip();
    let unwraps = whole.wrapped && finish == Finish::Complete;
    Reading {
        text: if unwraps { schema::unwrap(whole.text) } else { whole.text },
        finish,
        usage,
        raw_usage: whole.raw_usage,
        model: whole.model,
        service_tier: service_tier.flatten(),
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(default, borrow)]
    content: Option<Vec<Block<'a>>>,
    #[serde(default, borrow)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    output_tokens_details: Option<Details>,
    #[serde(default)]
    service_tier: Option<String>,
}

#[derive(Default, Deserialize)]
struct Details {
    #[serde(default)]
    thinking_tokens: Option<u64>,
}

/// The tokens and the tier. Anthropic counts cached tokens apart; here they are a part of the input.
pub(super) fn usage(raw: Option<&RawValue>) -> Option<(Usage, Option<String>)> {
    let tokens: Tokens = serde_json::from_str(raw?.get()).ok()?;
    let cached = tokens.cache_read_input_tokens.unwrap_or(0);
    let cache_write = tokens.cache_creation_input_tokens.unwrap_or(0);
    let usage = Usage {
        input: tokens.input_tokens?.saturating_add(cached).saturating_add(cache_write),
        cached,
        cache_write,
        output: tokens.output_tokens.unwrap_or(0),
        reasoning: tokens.output_tokens_details.unwrap_or_default().thinking_tokens.unwrap_or(0),
    };
    Some((usage, tokens.service_tier))
}
