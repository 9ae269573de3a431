//! Chat completions: builds requests and parses responses. No I/O.

use std::borrow::Cow;

use rowmill_types::{Message, ToolSpec};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::answer::{Answer, finish, usage};
use super::calls::{Pieces, Whole};
use super::stream::ChatAssembly;
use super::toggle::put_thinking;
use crate::body::{CapField, Parts, Template, put};
use crate::build::Setup;
use crate::exchange::Delivery;
use crate::files::{Shape, Uploaded};
use crate::hosted::{Gathered, annotations, uses};
use crate::messages::Manner;
use crate::quirks::{Quirks, Reasoning, Structured};
use crate::reading::{Reading, Unread, Wire, keep, no_error};
use crate::schema::{self, Prepared};
use crate::settings::{Key, Setting, Settings};
use crate::tools::{ANSWERS, HOSTED, Terms, answer_name, hosts, parameters};

/// Translates requests and responses of chat completions.
#[derive(Debug)]
pub(crate) struct ChatWire {
    template: Template,
    terms: Terms,
}

impl ChatWire {
    pub(crate) fn new(setup: &Setup, delivery: Delivery) -> Self {
        let quirks = setup.connection.quirks;
        let settings = &setup.model.settings;
        let prepared = setup.schema.as_ref().map(Prepared::new);
        let way = match settings.word(Key::Structured) {
            Some("tool_use") => Structured::Tool,
            None if !quirks.schema_beside_tools && !setup.tools.is_empty() => Structured::Tool,
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
        sampling(&mut after, settings, quirks);
        reasoning(&mut after, settings.value(Key::Reasoning), quirks.reasoning, &setup.model.model);
        let by_tool = prepared.as_ref().filter(|_| way == Structured::Tool);
        if let Some(prepared) = &prepared {
            structured(&mut after, prepared, way);
        }
        tools(&mut after, setup, by_tool);
        let terms = Terms::new(setup, prepared.as_ref(), by_tool.is_some());
        if delivery == Delivery::Stream {
            put(&mut after, "stream", Some(true));
            put(&mut after, "stream_options", Some(json!({"include_usage": true})));
        }
        let template = Template::new(Parts {
            before,
            field: "messages",
            first: instruction.map(|text| json!({"role": "system", "content": text})),
            after,
            cap: CapField { within: None, name: quirks.max_tokens },
            shape: Shape::Chat,
            manner: Manner { form: terms.form.clone(), ..Manner::default() },
        });
        Self { template, terms }
    }
}

impl Wire for ChatWire {
    type Assembly = ChatAssembly;

    fn body(&self, messages: &[Message], uploaded: &Uploaded, cap: Option<u64>) -> Vec<u8> {
        self.template.body(messages, uploaded, cap)
    }

    fn read(&self, body: &[u8]) -> Result<Reading, Unread> {
        let answer: Answer<'_> = serde_json::from_slice(body)?;
        no_error(answer.error)?;
        let Some(choice) = answer.choices.unwrap_or_default().into_iter().next() else {
            return Err(Unread::Malformed("the answer has no choices".to_owned()));
        };
        let message = choice.message.unwrap_or_default();
        no_error(choice.error)?;
        let mut hosted = Gathered::default();
        annotations(&mut hosted, message.annotations);
        if self.terms.hosts {
            uses(&mut hosted, answer.usage);
        }
        let mut pieces = Pieces::default();
        for call in message.tool_calls.unwrap_or_default() {
            pieces.push(call);
        }
        // Reasoning is sent back only together with calls.
        let keeps = self.terms.offers_tools();
        let thought = |raw: Option<&RawValue>| raw.filter(|_| keeps).map(|raw| raw.get().to_owned());
        let whole = Whole {
            content: message.content.unwrap_or_default().0.into_owned(),
            refusal: message.refusal.filter(|text| !text.is_empty()).map(Cow::into_owned),
            pieces,
            finish: finish(choice.finish_reason.as_deref())?,
            reasoning: thought(message.reasoning_content),
            details: thought(message.reasoning_details),
        };
        let outcome = whole.settle(&self.terms);
        Ok(Reading {
            text: outcome.text,
            finish: outcome.finish,
            calls: outcome.calls,
            echo: outcome.echo,
            hosted: hosted.done(),
            usage: usage(answer.usage),
            raw_usage: keep(answer.usage),
            model: answer.model.map(Cow::into_owned),
            service_tier: answer.service_tier.map(Cow::into_owned),
        })
    }

    fn assembly(&self) -> ChatAssembly {
        ChatAssembly::new(self.terms.clone())
    }
}

fn sampling(fields: &mut Map<String, Value>, settings: &Settings, quirks: Quirks) {
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

/// The provider's name of a service tier.
pub(crate) fn tier(word: &'static str) -> &'static str {
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

fn reasoning(fields: &mut Map<String, Value>, setting: Option<&Setting>, style: Reasoning, model: &str) {
    let word = if let Some(Setting::Word(word)) = setting { Some(*word) } else { None };
    let budget = if let Some(Setting::Integer(tokens)) = setting { Some(*tokens) } else { None };
    let enabled = match (word, budget) {
        (Some("none" | "off"), _) | (_, Some(0)) => Some(false),
        (Some("on"), _) | (_, Some(_)) => Some(true),
        _ => None,
    };
    match style {
        Reasoning::Effort => put(fields, "reasoning_effort", word.and_then(effort)),
        Reasoning::ByModel => put_thinking(fields, model, word),
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
        // The answer tool is among the other tools.
        Structured::Tool => {}
    }
}

/// Writes the tools: the caller's, the answer tool, and those that run at the server.
fn tools(fields: &mut Map<String, Value>, setup: &Setup, by_tool: Option<&Prepared>) {
    let mut all: Vec<Value> = setup.tools.iter().map(|tool| function(tool, &parameters(tool))).collect();
    let mut choice = None;
    if let Some(prepared) = by_tool {
        let name = answer_name(&setup.tools);
        let about = json!({"name": name, "description": ANSWERS, "parameters": prepared.schema});
        all.push(json!({"type": "function", "function": about}));
        choice = Some(if setup.tools.is_empty() {
            json!({"type": "function", "function": {"name": name}})
        } else {
            json!("required")
        });
    }
    for key in HOSTED.iter().filter(|key| hosts(&setup.model.settings, **key)) {
        all.push(json!({"type": format!("{}{}", setup.connection.quirks.hosted, key.name())}));
    }
    put(fields, "tools", (!all.is_empty()).then_some(all));
    put(fields, "tool_choice", choice);
    put(fields, "parallel_tool_calls", setup.parallel_tool_calls.filter(|_| !setup.tools.is_empty()));
}

fn function(tool: &ToolSpec, parameters: &Value) -> Value {
    let mut function = Map::new();
    put(&mut function, "name", Some(tool.name.as_str()));
    put(&mut function, "description", tool.description.as_deref());
    put(&mut function, "parameters", Some(parameters.clone()));
    json!({"type": "function", "function": function})
}
