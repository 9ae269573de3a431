//! The Gemini API: builds requests and parses responses. No I/O.

use rowmill_types::{Message, Problem};
use serde_json::{Map, Value, json};

use super::answer::GoogleAssembly;
use crate::body::{CapField, Parts, Template, put};
use crate::build::{Setup, contradiction};
use crate::files::{Shape, Uploaded};
use crate::messages::Manner;
use crate::reading::{Reading, Unread, Wire};
use crate::schema::Prepared;
use crate::settings::{Key, Setting};
use crate::tools::{ANSWERS, Terms, answer_name, hosts, parameters};

/// Translates requests and responses of the Gemini API.
#[derive(Debug)]
pub(crate) struct GoogleWire {
    template: Template,
    terms: Terms,
}

impl GoogleWire {
    /// # Errors
    ///
    /// The model does not support the requested combination.
    pub(crate) fn new(setup: &Setup) -> Result<Self, Problem> {
        check(setup)?;
        let settings = &setup.model.settings;
        let is_early = is_early(&setup.model.model);
        // Early models reject a schema together with tools, so one of the tools returns the answer.
        let by_tool =
            setup.schema.as_ref().filter(|_| is_early && !setup.tools.is_empty()).map(Prepared::new);
        let mut before = Map::new();
        let instruction = setup.instruction.as_ref().map(|text| json!({"parts": [{"text": text}]}));
        put(&mut before, "systemInstruction", instruction);
        let mut config = Map::new();
        put(&mut config, "temperature", settings.number(Key::Temperature));
        put(&mut config, "topP", settings.number(Key::TopP));
        put(&mut config, "topK", settings.integer(Key::TopK));
        put(&mut config, "presencePenalty", settings.number(Key::PresencePenalty));
        put(&mut config, "frequencyPenalty", settings.number(Key::FrequencyPenalty));
        put(&mut config, "maxOutputTokens", settings.integer(Key::MaxTokens));
        put(&mut config, "seed", settings.integer(Key::Seed));
        put(&mut config, "stopSequences", settings.texts(Key::Stop).map(ToOwned::to_owned));
        put(&mut config, "thinkingConfig", thinking(settings.value(Key::Reasoning), &setup.model.model));
        if let Some(schema) = setup.schema.as_ref().filter(|_| by_tool.is_none()) {
            put(&mut config, "responseMimeType", Some("application/json"));
            put(&mut config, "responseJsonSchema", Some(schema.clone()));
        }
        let mut after = Map::new();
        put(&mut after, "generationConfig", (!config.is_empty()).then_some(Value::Object(config)));
        tools(&mut after, setup, by_tool.as_ref());
        let terms = Terms::new(setup, by_tool.as_ref(), by_tool.is_some());
        let manner = Manner { form: terms.form.clone(), is_signed: !is_early };
        let shape = Shape::Google;
        let cap = CapField { within: Some("generationConfig"), name: "maxOutputTokens" };
        let parts = Parts { before, field: "contents", first: None, after, cap, shape, manner };
        let template = Template::new(parts);
        Ok(Self { template, terms })
    }
}

/// Whether a model is from before Gemini 3: it accepts neither a schema nor provider-run tools together with
/// other tools, and does not sign its calls.
fn is_early(model: &str) -> bool {
    ["gemini-1", "gemini-2", "gemma"].iter().any(|part| model.contains(part))
}

/// Rejects combinations that early models do not support.
fn check(setup: &Setup) -> Result<(), Problem> {
    let hosted = [Key::WebSearch, Key::WebFetch].into_iter().find(|key| hosts(&setup.model.settings, *key));
    let Some(key) = hosted.filter(|_| is_early(&setup.model.model)) else { return Ok(()) };
    let beside = match (setup.tools.is_empty(), &setup.schema) {
        (false, _) => "other tools",
        (true, Some(_)) => "a schema",
        (true, None) => return Ok(()),
    };
    let what = format!("`{}` cannot be used with {beside} in models before Gemini 3", key.name());
    Err(contradiction(&setup.model, &what).hint(format!("use a newer model, or omit `{}`", key.name())))
}

/// Writes the tools: the caller's with the answer tool, and those that run at the provider.
fn tools(fields: &mut Map<String, Value>, setup: &Setup, by_tool: Option<&Prepared>) {
    let declare = |name: &str, about: Option<&str>, schema: Value| {
        let mut function = Map::new();
        put(&mut function, "name", Some(name));
        put(&mut function, "description", about);
        // An object without properties is rejected; a function without parameters is not.
        let is_empty = schema["properties"].as_object().is_some_and(Map::is_empty);
        put(&mut function, "parametersJsonSchema", (!is_empty).then_some(schema));
        Value::Object(function)
    };
    let mut functions: Vec<Value> = setup
        .tools
        .iter()
        .map(|tool| declare(&tool.name, tool.description.as_deref(), parameters(tool)))
        .collect();
    if let Some(prepared) = by_tool {
        functions.push(declare(answer_name(&setup.tools), Some(ANSWERS), prepared.schema.clone()));
    }
    let has_functions = !functions.is_empty();
    let mut all = Vec::new();
    if has_functions {
        all.push(json!({"functionDeclarations": functions}));
    }
    for (key, name) in [(Key::WebSearch, "googleSearch"), (Key::WebFetch, "urlContext")] {
        if hosts(&setup.model.settings, key) {
            all.push(json!({ name: {} }));
        }
    }
    let mut config = Map::new();
    put(&mut config, "functionCallingConfig", by_tool.map(|_| json!({"mode": "ANY"})));
    let is_mixed = has_functions && all.len() > 1;
    put(&mut config, "includeServerSideToolInvocations", is_mixed.then_some(true));
    put(fields, "tools", (!all.is_empty()).then_some(all));
    put(fields, "toolConfig", (!config.is_empty()).then_some(Value::Object(config)));
}

/// The tokens that the model may spend on thinking before its answer, if that is set in tokens.
pub(crate) fn thinking_budget(setup: &Setup) -> u64 {
    let config = thinking(setup.model.settings.value(Key::Reasoning), &setup.model.model);
    config.and_then(|config| config["thinkingBudget"].as_u64()).unwrap_or_default()
}

/// Models up to 2.5 take a budget in tokens, later ones a level.
fn thinking(setting: Option<&Setting>, model: &str) -> Option<Value> {
    let budgeted = model.contains("gemini-2");
    let budget = |tokens: i64| Some(json!({"thinkingBudget": tokens}));
    match setting? {
        Setting::Integer(tokens) => budget(*tokens),
        Setting::Word("none" | "off") => budget(0),
        Setting::Word("auto" | "on") => budget(-1),
        Setting::Word(level) if budgeted => budget(match *level {
            "medium" => 8192,
            "high" => 24_576,
            _ => 1024,
        }),
        Setting::Word(level) => Some(json!({"thinkingLevel": level})),
        _ => None,
    }
}

impl Wire for GoogleWire {
    type Assembly = GoogleAssembly;

    fn body(&self, messages: &[Message], uploaded: &Uploaded, cap: Option<u64>) -> Vec<u8> {
        self.template.body(messages, uploaded, cap)
    }

    fn read(&self, body: &[u8]) -> Result<Reading, Unread> {
        GoogleAssembly::new(self.terms.clone()).read(body)
    }

    fn assembly(&self) -> GoogleAssembly {
        GoogleAssembly::new(self.terms.clone())
    }
}
