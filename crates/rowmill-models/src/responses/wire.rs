//! The Responses API: builds requests and parses responses. No I/O.

use rowmill_types::{Message, Problem};
use serde_json::{Map, Value, json};

use super::answer::read_response;
use super::stream::ResponsesAssembly;
use crate::body::{CapField, Parts, Template, put};
use crate::build::{Setup, contradiction};
use crate::chat::wire::{effort, tier};
use crate::files::{Shape, Uploaded};
use crate::messages::Manner;
use crate::reading::{Reading, Unread, Wire};
use crate::schema::{self, Prepared};
use crate::settings::Key;
use crate::tools::{HOSTED, Terms, hosts, parameters};

/// Models without reasoning, by the start of their names; they reject requests for it.
const THOUGHTLESS: &[&str] = &["gpt-4", "gpt-3", "chatgpt-", "gpt-5-chat", "ft:gpt-4", "ft:gpt-3"];

/// How a request is sent, which changes the fields around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
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
    template: Template,
    terms: Terms,
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
        // Rows are not stored at the provider for a conversation that never continues.
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
        tools(&mut after, setup);
        put(&mut after, "stream", (carrier == Carrier::Stream).then_some(true));
        let terms = Terms::new(setup, prepared.as_ref(), false);
        let manner = Manner { form: terms.form.clone(), ..Manner::default() };
        let cap = CapField { within: None, name: "max_output_tokens" };
        let shape = Shape::Responses;
        let parts = Parts { before, field: "input", first: None, after, cap, shape, manner };
        Self { template: Template::new(parts), terms }
    }
}

/// Writes the tools, and requests reasoning that can be sent back: nothing is stored at the provider, and a
/// model that thinks between calls must see its earlier reasoning.
fn tools(fields: &mut Map<String, Value>, setup: &Setup) {
    let mut all: Vec<Value> = setup
        .tools
        .iter()
        .map(|tool| {
            let mut function = Map::new();
            put(&mut function, "type", Some("function"));
            put(&mut function, "name", Some(tool.name.as_str()));
            put(&mut function, "description", tool.description.as_deref());
            put(&mut function, "parameters", Some(parameters(tool)));
            // Without it, the provider treats every schema as strict.
            put(&mut function, "strict", Some(false));
            Value::Object(function)
        })
        .collect();
    let hosted = HOSTED.iter().filter(|key| hosts(&setup.model.settings, **key));
    all.extend(hosted.map(|key| json!({"type": key.name()})));
    put(fields, "tools", (!all.is_empty()).then_some(all));
    if setup.tools.is_empty() {
        return;
    }
    put(fields, "parallel_tool_calls", setup.parallel_tool_calls);
    let thinks = !THOUGHTLESS.iter().any(|start| setup.model.model.starts_with(start));
    put(fields, "include", thinks.then(|| json!(["reasoning.encrypted_content"])));
}

/// Rejects settings of a chat provider that its Responses API, which alone offers its tools, does not accept.
///
/// # Errors
///
/// There is such a setting.
pub(super) fn check(setup: &Setup) -> Result<(), Problem> {
    if !setup.connection.quirks.hosts_by_responses {
        return Ok(());
    }
    let foreign = [Key::Structured, Key::PresencePenalty, Key::FrequencyPenalty, Key::Seed, Key::Stop];
    let settings = &setup.model.settings;
    let Some(key) = foreign.into_iter().find(|key| settings.value(*key).is_some()) else { return Ok(()) };
    let tools: Vec<&str> = HOSTED.iter().filter(|key| hosts(settings, **key)).map(|key| key.name()).collect();
    let what = format!("`{}` cannot be set together with `{}`", key.name(), tools.join("`, `"));
    Err(contradiction(&setup.model, &what))
}

impl Wire for ResponsesWire {
    type Assembly = ResponsesAssembly;

    fn body(&self, messages: &[Message], uploaded: &Uploaded, cap: Option<u64>) -> Vec<u8> {
        self.template.body(messages, uploaded, cap)
    }

    fn read(&self, body: &[u8]) -> Result<Reading, Unread> {
        read_response(body, None, &self.terms)
    }

    fn assembly(&self) -> ResponsesAssembly {
        ResponsesAssembly::new(self.terms.clone())
    }
}
