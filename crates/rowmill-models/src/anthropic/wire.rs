//! The Messages API: builds requests and parses responses. No I/O.

use rowmill_types::{Message, Problem};
use serde_json::{Map, Value, json};

use super::answer::read_message;
use super::stream::AnthropicAssembly;
use super::tools::tools;
use crate::body::{CapField, Parts, Template, put};
use crate::build::{Setup, contradiction};
use crate::exchange::Delivery;
use crate::files::{Shape, Uploaded};
use crate::messages::Manner;
use crate::reading::{Reading, Unread, Wire};
use crate::schema::Prepared;
use crate::settings::{Key, Setting};
use crate::tools::Terms;

/// The default of `max_tokens`, which the API requires. A thinking budget is added to it, because thinking
/// counts as output.
const MAX_TOKENS: i64 = 4096;

/// The smallest thinking budget that the API accepts.
const LEAST_BUDGET: i64 = 1024;

/// Models from before adaptive thinking, identified by a part of their names.
const BUDGETED: &[&str] = &["claude-3", "-4-0", "-4-1", "-4-2", "-4-5"];

/// Translates requests and responses of the Messages API.
#[derive(Debug)]
pub(crate) struct AnthropicWire {
    template: Template,
    terms: Terms,
}

/// How thinking is requested.
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
            // All rows share it, so it is marked for the provider's cache.
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
        let by_tool = prepared.is_some() && by_tool(setup, thinking)?;
        tools(&mut after, setup, prepared.as_ref().filter(|_| by_tool));
        if let Some(prepared) = prepared.as_ref().filter(|_| !by_tool) {
            let format = json!({"type": "json_schema", "schema": prepared.schema});
            put(&mut output, "format", Some(format));
        }
        if !output.is_empty() {
            after.insert("output_config".to_owned(), Value::Object(output));
        }
        put(&mut after, "stream", (delivery == Delivery::Stream).then_some(true));
        let terms = Terms::new(setup, prepared.as_ref(), by_tool);
        let manner = Manner { form: terms.form.clone(), ..Manner::default() };
        let shape = Shape::Anthropic;
        let cap = CapField { within: None, name: "max_tokens" };
        let parts = Parts { before, field: "messages", first: None, after, cap, shape, manner };
        let template = Template::new(parts);
        Ok(Self { template, terms })
    }
}

/// Whether a schema is enforced by a tool call, which the API rejects while the model thinks.
fn by_tool(setup: &Setup, thinking: Thinking) -> Result<bool, Problem> {
    let thinks = matches!(thinking, Thinking::Adaptive(_) | Thinking::Budget(_));
    match setup.model.settings.word(Key::Structured) {
        Some("tool_use") if thinks => Err(contradiction(
            &setup.model,
            "`structured=tool_use` forces a tool call, which is not possible with `reasoning`",
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

/// The tokens that the model may spend on thinking before its answer; `max_tokens` must be larger.
pub(crate) fn thinking_budget(setup: &Setup) -> u64 {
    match thinking(setup.model.settings.value(Key::Reasoning), &setup.model.model) {
        Thinking::Budget(tokens) => u64::try_from(tokens).unwrap_or_default(),
        _ => 0,
    }
}

/// The `max_tokens` of requests; `None` if the settings contradict each other.
pub(crate) fn most_output(setup: &Setup) -> Option<u64> {
    let thinking = thinking(setup.model.settings.value(Key::Reasoning), &setup.model.model);
    u64::try_from(max_tokens(setup, thinking).ok()?).ok()
}

fn max_tokens(setup: &Setup, thinking: Thinking) -> Result<i64, Problem> {
    let set = setup.model.settings.integer(Key::MaxTokens);
    let Thinking::Budget(budget) = thinking else { return Ok(set.unwrap_or(MAX_TOKENS)) };
    if budget < LEAST_BUDGET {
        let what =
            format!("a budget of {budget} tokens for `reasoning` is below the minimum of {LEAST_BUDGET}");
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

    fn body(&self, messages: &[Message], uploaded: &Uploaded, cap: Option<u64>) -> Vec<u8> {
        self.template.body(messages, uploaded, cap)
    }

    fn read(&self, body: &[u8]) -> Result<Reading, Unread> {
        read_message(body, &self.terms)
    }

    fn assembly(&self) -> AnthropicAssembly {
        AnthropicAssembly::new(self.terms.clone())
    }
}
