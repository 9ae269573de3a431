//! The Messages API: builds requests and parses responses. No I/O.

use rowmill_types::{Message, Problem};
use serde_json::{Map, Value, json};

use super::answer::read_message;
use super::stream::AnthropicAssembly;
use super::tools::write_tools;
use crate::body::{BodyParts, BodyTemplate, CapField, insert_if_some};
use crate::build_model::{ModelSetup, contradiction_problem};
use crate::files::{MessageShape, UploadedFiles};
use crate::http_model::AnswerDelivery;
use crate::messages::MessageManner;
use crate::model_settings::{ModelSettingKey, ModelSettingValue};
use crate::schema::PreparedSchema;
use crate::tool_calls::AnswerTerms;
use crate::wire_protocol::{ReadAnswer, UnreadableAnswer, WireProtocol};

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
    template: BodyTemplate,
    terms: AnswerTerms,
}

/// How thinking is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThinkingRequest {
    NotSet,
    Disabled,
    Adaptive(Option<&'static str>),
    Budget(i64),
}

impl AnthropicWire {
    /// # Errors
    ///
    /// The settings contradict each other.
    pub(crate) fn new(setup: &ModelSetup, delivery: AnswerDelivery) -> Result<Self, Problem> {
        let settings = &setup.model.settings;
        let thinking = thinking(setup.model.settings.value(ModelSettingKey::Reasoning), &setup.model.model);
        let mut before = Map::new();
        before.insert("model".to_owned(), Value::from(setup.model.model.as_str()));
        before.insert("max_tokens".to_owned(), Value::from(max_tokens(setup, thinking)?));
        if let Some(text) = &setup.instruction {
            // All rows share it, so it is marked for the provider's cache.
            let block = json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
            before.insert("system".to_owned(), json!([block]));
        }
        let mut after = Map::new();
        insert_if_some(&mut after, "temperature", settings.number(ModelSettingKey::Temperature));
        insert_if_some(&mut after, "top_p", settings.number(ModelSettingKey::TopP));
        insert_if_some(&mut after, "top_k", settings.integer(ModelSettingKey::TopK));
        insert_if_some(
            &mut after,
            "stop_sequences",
            settings.texts(ModelSettingKey::Stop).map(ToOwned::to_owned),
        );
        insert_if_some(&mut after, "service_tier", settings.word(ModelSettingKey::ServiceTier));
        let mut output = Map::new();
        match thinking {
            ThinkingRequest::NotSet => {}
            ThinkingRequest::Disabled => {
                insert_if_some(&mut after, "thinking", Some(json!({"type": "disabled"})))
            }
            ThinkingRequest::Adaptive(effort) => {
                insert_if_some(&mut after, "thinking", Some(json!({"type": "adaptive"})));
                insert_if_some(&mut output, "effort", effort);
            }
            ThinkingRequest::Budget(tokens) => {
                insert_if_some(
                    &mut after,
                    "thinking",
                    Some(json!({"type": "enabled", "budget_tokens": tokens})),
                );
            }
        }
        let prepared = setup.schema.as_ref().map(PreparedSchema::new);
        let by_tool = prepared.is_some() && by_tool(setup, thinking)?;
        write_tools(&mut after, setup, prepared.as_ref().filter(|_| by_tool));
        if let Some(prepared) = prepared.as_ref().filter(|_| !by_tool) {
            let format = json!({"type": "json_schema", "schema": prepared.schema});
            insert_if_some(&mut output, "format", Some(format));
        }
        if !output.is_empty() {
            after.insert("output_config".to_owned(), Value::Object(output));
        }
        insert_if_some(&mut after, "stream", (delivery == AnswerDelivery::Stream).then_some(true));
        let terms = AnswerTerms::new(setup, prepared.as_ref(), by_tool);
        let manner = MessageManner { form: terms.form.clone(), ..MessageManner::default() };
        let shape = MessageShape::Anthropic;
        let cap = CapField { within: None, name: "max_tokens" };
        let parts = BodyParts { before, field: "messages", first: None, after, cap, shape, manner };
        let template = BodyTemplate::new(parts);
        Ok(Self { template, terms })
    }
}

/// Whether a schema is enforced by a tool call, which the API rejects while the model thinks.
fn by_tool(setup: &ModelSetup, thinking: ThinkingRequest) -> Result<bool, Problem> {
    let thinks = matches!(thinking, ThinkingRequest::Adaptive(_) | ThinkingRequest::Budget(_));
    match setup.model.settings.word(ModelSettingKey::Structured) {
        Some("tool_use") if thinks => Err(contradiction_problem(
            &setup.model,
            "`structured=tool_use` forces a tool call, which is not possible with `reasoning`",
        )),
        Some(way) => Ok(way == "tool_use"),
        None => Ok(!thinks),
    }
}

fn thinking(setting: Option<&ModelSettingValue>, model: &str) -> ThinkingRequest {
    let budgeted = BUDGETED.iter().any(|part| model.contains(part));
    match setting {
        Some(ModelSettingValue::Integer(0) | ModelSettingValue::Word("none" | "off")) => {
            ThinkingRequest::Disabled
        }
        Some(ModelSettingValue::Integer(tokens)) => ThinkingRequest::Budget(*tokens),
        Some(ModelSettingValue::Word(level)) if budgeted => ThinkingRequest::Budget(match *level {
            "low" => 2048,
            "high" => 16_384,
            "xhigh" | "max" => 32_000,
            _ => 8192,
        }),
        Some(ModelSettingValue::Word("auto" | "on")) => ThinkingRequest::Adaptive(None),
        Some(ModelSettingValue::Word(level)) => ThinkingRequest::Adaptive(Some(level)),
        _ => ThinkingRequest::NotSet,
    }
}

/// The tokens that the model may spend on thinking before its answer; `max_tokens` must be larger.
pub(crate) fn thinking_budget(setup: &ModelSetup) -> u64 {
    match thinking(setup.model.settings.value(ModelSettingKey::Reasoning), &setup.model.model) {
        ThinkingRequest::Budget(tokens) => u64::try_from(tokens).unwrap_or_default(),
        _ => 0,
    }
}

/// The `max_tokens` of requests; `None` if the settings contradict each other.
pub(crate) fn max_output_tokens(setup: &ModelSetup) -> Option<u64> {
    let thinking = thinking(setup.model.settings.value(ModelSettingKey::Reasoning), &setup.model.model);
    u64::try_from(max_tokens(setup, thinking).ok()?).ok()
}

fn max_tokens(setup: &ModelSetup, thinking: ThinkingRequest) -> Result<i64, Problem> {
    let set = setup.model.settings.integer(ModelSettingKey::MaxTokens);
    let ThinkingRequest::Budget(budget) = thinking else { return Ok(set.unwrap_or(MAX_TOKENS)) };
    if budget < LEAST_BUDGET {
        let what =
            format!("a budget of {budget} tokens for `reasoning` is below the minimum of {LEAST_BUDGET}");
        return Err(contradiction_problem(&setup.model, &what)
            .hint("use `reasoning=1024` or more, or `reasoning=none`"));
    }
    match set {
        Some(most) if most <= budget => Err(contradiction_problem(
            &setup.model,
            &format!("`max_tokens` must be more than the {budget} tokens that `reasoning` may use"),
        )
        .hint(format!("use `max_tokens={}` or more", budget + 1))),
        Some(most) => Ok(most),
        None => Ok(budget.saturating_add(MAX_TOKENS)),
    }
}

impl WireProtocol for AnthropicWire {
    type StreamAssembly = AnthropicAssembly;

    fn body(&self, messages: &[Message], uploaded: &UploadedFiles, cap: Option<u64>) -> Vec<u8> {
        self.template.body(messages, uploaded, cap)
    }

    fn read(&self, body: &[u8]) -> Result<ReadAnswer, UnreadableAnswer> {
        read_message(body, &self.terms)
    }

    fn assembly(&self) -> AnthropicAssembly {
        AnthropicAssembly::new(self.terms.clone())
    }
}
