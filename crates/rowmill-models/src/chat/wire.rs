//! Chat completions: builds requests and parses responses. No I/O.

use std::borrow::Cow;

use rowmill_types::{Message, ToolSpec};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::answer::{ChatAnswer, finish_reason, read_usage};
use super::calls::{CompleteAnswer, ToolCallPieces};
use super::stream::ChatAssembly;
use super::thinking_switch::write_thinking_switch;
use crate::body::{BodyParts, BodyTemplate, CapField, insert_if_some};
use crate::build_model::ModelSetup;
use crate::files::{MessageShape, UploadedFiles};
use crate::hosted_use::{HostedUseCollector, collect_annotations, collect_uses};
use crate::http_model::AnswerDelivery;
use crate::messages::MessageManner;
use crate::model_settings::{ModelSettingKey, ModelSettingValue, ModelSettings};
use crate::quirks::{ProviderQuirks, ReasoningStyle, SchemaStyle};
use crate::schema::{self, PreparedSchema};
use crate::tool_calls::{ANSWERS, AnswerTerms, HOSTED, answer_tool_name, hosts_tool, tool_parameters};
use crate::wire_protocol::{ReadAnswer, UnreadableAnswer, WireProtocol, reject_error, to_owned_raw};

/// Translates requests and responses of chat completions.
#[derive(Debug)]
pub(crate) struct ChatWire {
    template: BodyTemplate,
    terms: AnswerTerms,
}

impl ChatWire {
    pub(crate) fn new(setup: &ModelSetup, delivery: AnswerDelivery) -> Self {
        let quirks = setup.connection.quirks;
        let settings = &setup.model.settings;
        let prepared = setup.schema.as_ref().map(PreparedSchema::new);
        let way = match settings.word(ModelSettingKey::Structured) {
            Some("tool_use") => SchemaStyle::Tool,
            None if !quirks.schema_beside_tools && !setup.tools.is_empty() => SchemaStyle::Tool,
            _ => quirks.structured,
        };
        let mut before = Map::new();
        before.insert("model".to_owned(), Value::from(setup.model.model.as_str()));
        let instruction = match &prepared {
            Some(prepared) if way == SchemaStyle::JsonObject => {
                Some(prepared.as_instruction(setup.instruction.as_deref()))
            }
            _ => setup.instruction.clone(),
        };
        let mut after = Map::new();
        sampling(&mut after, settings, quirks);
        reasoning(
            &mut after,
            settings.value(ModelSettingKey::Reasoning),
            quirks.reasoning,
            &setup.model.model,
        );
        let by_tool = prepared.as_ref().filter(|_| way == SchemaStyle::Tool);
        if let Some(prepared) = &prepared {
            structured(&mut after, prepared, way);
        }
        tools(&mut after, setup, by_tool);
        let terms = AnswerTerms::new(setup, prepared.as_ref(), by_tool.is_some());
        if delivery == AnswerDelivery::Stream {
            insert_if_some(&mut after, "stream", Some(true));
            insert_if_some(&mut after, "stream_options", Some(json!({"include_usage": true})));
        }
        let template = BodyTemplate::new(BodyParts {
            before,
            field: "messages",
            first: instruction.map(|text| json!({"role": "system", "content": text})),
            after,
            cap: CapField { within: None, name: quirks.max_tokens },
            shape: MessageShape::Chat,
            manner: MessageManner { form: terms.form.clone(), ..MessageManner::default() },
        });
        Self { template, terms }
    }
}

impl WireProtocol for ChatWire {
    type StreamAssembly = ChatAssembly;

    fn body(&self, messages: &[Message], uploaded: &UploadedFiles, cap: Option<u64>) -> Vec<u8> {
        self.template.body(messages, uploaded, cap)
    }

    fn read(&self, body: &[u8]) -> Result<ReadAnswer, UnreadableAnswer> {
        let answer: ChatAnswer<'_> = serde_json::from_slice(body)?;
        reject_error(answer.error)?;
        let Some(choice) = answer.choices.unwrap_or_default().into_iter().next() else {
            return Err(UnreadableAnswer::Malformed("the answer has no choices".to_owned()));
        };
        let message = choice.message.unwrap_or_default();
        reject_error(choice.error)?;
        let mut hosted = HostedUseCollector::default();
        collect_annotations(&mut hosted, message.annotations);
        if self.terms.hosts {
            collect_uses(&mut hosted, answer.usage);
        }
        let mut pieces = ToolCallPieces::default();
        for call in message.tool_calls.unwrap_or_default() {
            pieces.push(call);
        }
        // Reasoning is sent back only together with calls.
        let keeps = self.terms.offers_tools();
        let thought = |raw: Option<&RawValue>| raw.filter(|_| keeps).map(|raw| raw.get().to_owned());
        let whole = CompleteAnswer {
            content: message.content.unwrap_or_default().0.into_owned(),
            refusal: message.refusal.filter(|text| !text.is_empty()).map(Cow::into_owned),
            pieces,
            finish: finish_reason(choice.finish_reason.as_deref())?,
            reasoning: thought(message.reasoning_content),
            details: thought(message.reasoning_details),
        };
        let outcome = whole.separate_calls(&self.terms);
        Ok(ReadAnswer {
            text: outcome.text,
            finish: outcome.finish,
            calls: outcome.calls,
            echo: outcome.echo,
            hosted: hosted.into_hosted_use(),
            usage: read_usage(answer.usage),
            raw_usage: to_owned_raw(answer.usage),
            model: answer.model.map(Cow::into_owned),
            service_tier: answer.service_tier.map(Cow::into_owned),
        })
    }

    fn assembly(&self) -> ChatAssembly {
        ChatAssembly::new(self.terms.clone())
    }
}

fn sampling(fields: &mut Map<String, Value>, settings: &ModelSettings, quirks: ProviderQuirks) {
    insert_if_some(fields, "temperature", settings.number(ModelSettingKey::Temperature));
    insert_if_some(fields, "top_p", settings.number(ModelSettingKey::TopP));
    insert_if_some(fields, "top_k", settings.integer(ModelSettingKey::TopK));
    insert_if_some(fields, "min_p", settings.number(ModelSettingKey::MinP));
    insert_if_some(fields, "presence_penalty", settings.number(ModelSettingKey::PresencePenalty));
    insert_if_some(fields, "frequency_penalty", settings.number(ModelSettingKey::FrequencyPenalty));
    insert_if_some(fields, quirks.repetition, settings.number(ModelSettingKey::RepetitionPenalty));
    insert_if_some(fields, quirks.max_tokens, settings.integer(ModelSettingKey::MaxTokens));
    insert_if_some(fields, quirks.seed, settings.integer(ModelSettingKey::Seed));
    insert_if_some(fields, "stop", settings.texts(ModelSettingKey::Stop).map(ToOwned::to_owned));
    insert_if_some(fields, "verbosity", settings.word(ModelSettingKey::Verbosity));
    insert_if_some(
        fields,
        "service_tier",
        settings.word(ModelSettingKey::ServiceTier).map(service_tier_name),
    );
}

/// The provider's name of a service tier.
pub(crate) fn service_tier_name(word: &'static str) -> &'static str {
    if word == "fast" { "priority" } else { word }
}

/// The provider's name of a reasoning level; `None` leaves it to the model.
pub(crate) fn effort(word: &'static str) -> Option<&'static str> {
    match word {
        "auto" => None,
        "off" => Some("none"),
        word => Some(word),
    }
}

fn reasoning(
    fields: &mut Map<String, Value>,
    setting: Option<&ModelSettingValue>,
    style: ReasoningStyle,
    model: &str,
) {
    let word = if let Some(ModelSettingValue::Word(word)) = setting { Some(*word) } else { None };
    let budget = if let Some(ModelSettingValue::Integer(tokens)) = setting { Some(*tokens) } else { None };
    let enabled = match (word, budget) {
        (Some("none" | "off"), _) | (_, Some(0)) => Some(false),
        (Some("on"), _) | (_, Some(_)) => Some(true),
        _ => None,
    };
    match style {
        ReasoningStyle::Effort => insert_if_some(fields, "reasoning_effort", word.and_then(effort)),
        ReasoningStyle::ByModel => write_thinking_switch(fields, model, word),
        ReasoningStyle::Object => {
            let value = match (word, budget) {
                (Some("on"), _) => Some(json!({"enabled": true})),
                (_, Some(0)) => Some(json!({"enabled": false})),
                (_, Some(tokens)) => Some(json!({"max_tokens": tokens})),
                (word, _) => word.and_then(effort).map(|effort| json!({"effort": effort})),
            };
            insert_if_some(fields, "reasoning", value);
        }
        ReasoningStyle::Toggle => {
            let kind = enabled.map(|on| if on { "enabled" } else { "disabled" });
            insert_if_some(fields, "thinking", kind.map(|kind| json!({"type": kind})));
        }
        ReasoningStyle::Enable => {
            insert_if_some(fields, "enable_thinking", enabled);
            insert_if_some(fields, "thinking_budget", budget.filter(|tokens| *tokens > 0));
        }
        ReasoningStyle::Anthropic | ReasoningStyle::Google => {}
    }
}

fn structured(fields: &mut Map<String, Value>, prepared: &PreparedSchema, way: SchemaStyle) {
    match way {
        SchemaStyle::Schema => insert_if_some(
            fields,
            "response_format",
            Some(json!({
                "type": "json_schema",
                "json_schema": {"name": schema::SCHEMA_NAME, "strict": prepared.strict, "schema": prepared.schema},
            })),
        ),
        SchemaStyle::JsonObject => {
            insert_if_some(fields, "response_format", Some(json!({"type": "json_object"})))
        }
        // The answer tool is among the other tools.
        SchemaStyle::Tool => {}
    }
}

/// Writes the tools: the caller's, the answer tool, and those that run at the server.
fn tools(fields: &mut Map<String, Value>, setup: &ModelSetup, by_tool: Option<&PreparedSchema>) {
    let mut all: Vec<Value> = setup.tools.iter().map(|tool| function(tool, &tool_parameters(tool))).collect();
    let mut choice = None;
    if let Some(prepared) = by_tool {
        let name = answer_tool_name(&setup.tools);
        let about = json!({"name": name, "description": ANSWERS, "parameters": prepared.schema});
        all.push(json!({"type": "function", "function": about}));
        choice = Some(if setup.tools.is_empty() {
            json!({"type": "function", "function": {"name": name}})
        } else {
            json!("required")
        });
    }
    for key in HOSTED.iter().filter(|key| hosts_tool(&setup.model.settings, **key)) {
        all.push(json!({"type": format!("{}{}", setup.connection.quirks.hosted, key.name())}));
    }
    insert_if_some(fields, "tools", (!all.is_empty()).then_some(all));
    insert_if_some(fields, "tool_choice", choice);
    insert_if_some(
        fields,
        "parallel_tool_calls",
        setup.parallel_tool_calls.filter(|_| !setup.tools.is_empty()),
    );
}

fn function(tool: &ToolSpec, tool_parameters: &Value) -> Value {
    let mut function = Map::new();
    insert_if_some(&mut function, "name", Some(tool.name.as_str()));
    insert_if_some(&mut function, "description", tool.description.as_deref());
    insert_if_some(&mut function, "parameters", Some(tool_parameters.clone()));
    json!({"type": "function", "function": function})
}
