//! The Responses API: builds requests and parses responses. No I/O.

use rowmill_types::{Message, Problem};
use serde_json::{Map, Value, json};

use super::answer::read_response;
use super::stream::ResponsesAssembly;
use crate::body::{BodyParts, BodyTemplate, CapField, insert_if_some};
use crate::build_model::{ModelSetup, contradiction_problem};
use crate::chat::wire::{effort, service_tier_name};
use crate::files::{MessageShape, UploadedFiles};
use crate::messages::MessageManner;
use crate::model_settings::ModelSettingKey;
use crate::schema::{self, PreparedSchema};
use crate::tool_calls::{AnswerTerms, HOSTED, hosts_tool, tool_parameters};
use crate::wire_protocol::{ReadAnswer, UnreadableAnswer, WireProtocol};

/// Models without reasoning, by the start of their names; they reject requests for it.
const THOUGHTLESS: &[&str] = &["gpt-4", "gpt-3", "chatgpt-", "gpt-5-chat", "ft:gpt-4", "ft:gpt-3"];

/// How a request is sent, which changes the fields around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestCarrier {
    /// The body of a POST whose response is one document.
    Whole,
    /// The body of a POST whose response is a stream.
    Stream,
    /// A message on a WebSocket.
    Socket,
}

/// Translates requests and responses of the Responses API.
#[derive(Debug)]
pub(crate) struct ResponsesWire {
    template: BodyTemplate,
    terms: AnswerTerms,
}

impl ResponsesWire {
    pub(crate) fn new(setup: &ModelSetup, carrier: RequestCarrier) -> Self {
        let settings = &setup.model.settings;
        let prepared = setup.schema.as_ref().map(PreparedSchema::new);
        let mut before = Map::new();
        insert_if_some(&mut before, "type", (carrier == RequestCarrier::Socket).then_some("response.create"));
        insert_if_some(&mut before, "model", Some(setup.model.model.as_str()));
        insert_if_some(&mut before, "instructions", setup.instruction.as_deref());
        let mut after = Map::new();
        // Rows are not stored at the provider for a conversation that never continues.
        insert_if_some(&mut after, "store", Some(false));
        insert_if_some(&mut after, "temperature", settings.number(ModelSettingKey::Temperature));
        insert_if_some(&mut after, "top_p", settings.number(ModelSettingKey::TopP));
        insert_if_some(&mut after, "max_output_tokens", settings.integer(ModelSettingKey::MaxTokens));
        insert_if_some(
            &mut after,
            "service_tier",
            settings.word(ModelSettingKey::ServiceTier).map(service_tier_name),
        );
        let effort = settings.word(ModelSettingKey::Reasoning).and_then(effort);
        insert_if_some(&mut after, "reasoning", effort.map(|effort| json!({"effort": effort})));
        let mut text = Map::new();
        insert_if_some(&mut text, "verbosity", settings.word(ModelSettingKey::Verbosity));
        let format = prepared.as_ref().map(|prepared| {
            json!({
                "type": "json_schema",
                "name": schema::SCHEMA_NAME,
                "strict": prepared.strict,
                "schema": prepared.schema,
            })
        });
        insert_if_some(&mut text, "format", format);
        insert_if_some(&mut after, "text", (!text.is_empty()).then_some(Value::Object(text)));
        tools(&mut after, setup);
        insert_if_some(&mut after, "stream", (carrier == RequestCarrier::Stream).then_some(true));
        let terms = AnswerTerms::new(setup, prepared.as_ref(), false);
        let manner = MessageManner { form: terms.form.clone(), ..MessageManner::default() };
        let cap = CapField { within: None, name: "max_output_tokens" };
        let shape = MessageShape::Responses;
        let parts = BodyParts { before, field: "input", first: None, after, cap, shape, manner };
        Self { template: BodyTemplate::new(parts), terms }
    }
}

/// Writes the tools, and requests reasoning that can be sent back: nothing is stored at the provider, and a
/// model that thinks between calls must see its earlier reasoning.
fn tools(fields: &mut Map<String, Value>, setup: &ModelSetup) {
    let mut all: Vec<Value> = setup
        .tools
        .iter()
        .map(|tool| {
            let mut function = Map::new();
            insert_if_some(&mut function, "type", Some("function"));
            insert_if_some(&mut function, "name", Some(tool.name.as_str()));
            insert_if_some(&mut function, "description", tool.description.as_deref());
            insert_if_some(&mut function, "parameters", Some(tool_parameters(tool)));
            // Without it, the provider treats every schema as strict.
            insert_if_some(&mut function, "strict", Some(false));
            Value::Object(function)
        })
        .collect();
    let hosted = HOSTED.iter().filter(|key| hosts_tool(&setup.model.settings, **key));
    all.extend(hosted.map(|key| json!({"type": key.name()})));
    insert_if_some(fields, "tools", (!all.is_empty()).then_some(all));
    if setup.tools.is_empty() {
        return;
    }
    insert_if_some(fields, "parallel_tool_calls", setup.parallel_tool_calls);
    let thinks = !THOUGHTLESS.iter().any(|start| setup.model.model.starts_with(start));
    insert_if_some(fields, "include", thinks.then(|| json!(["reasoning.encrypted_content"])));
}

/// Rejects settings of a chat provider that its Responses API, which alone offers its tools, does not accept.
///
/// # Errors
///
/// There is such a setting.
pub(super) fn check_settings(setup: &ModelSetup) -> Result<(), Problem> {
    if !setup.connection.quirks.hosts_by_responses {
        return Ok(());
    }
    let foreign = [
        ModelSettingKey::Structured,
        ModelSettingKey::PresencePenalty,
        ModelSettingKey::FrequencyPenalty,
        ModelSettingKey::Seed,
        ModelSettingKey::Stop,
    ];
    let settings = &setup.model.settings;
    let Some(key) = foreign.into_iter().find(|key| settings.value(*key).is_some()) else { return Ok(()) };
    let tools: Vec<&str> =
        HOSTED.iter().filter(|key| hosts_tool(settings, **key)).map(|key| key.name()).collect();
    let what = format!("`{}` cannot be set together with `{}`", key.name(), tools.join("`, `"));
    Err(contradiction_problem(&setup.model, &what))
}

impl WireProtocol for ResponsesWire {
    type StreamAssembly = ResponsesAssembly;

    fn body(&self, messages: &[Message], uploaded: &UploadedFiles, cap: Option<u64>) -> Vec<u8> {
        self.template.body(messages, uploaded, cap)
    }

    fn read(&self, body: &[u8]) -> Result<ReadAnswer, UnreadableAnswer> {
        read_response(body, None, &self.terms)
    }

    fn assembly(&self) -> ResponsesAssembly {
        ResponsesAssembly::new(self.terms.clone())
    }
}
