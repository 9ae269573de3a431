//! The Gemini API: builds requests and parses responses. No I/O.

use rowmill_types::{Message, Problem};
use serde_json::{Map, Value, json};

use super::answer::GoogleAssembly;
use crate::body::{BodyParts, BodyTemplate, CapField, insert_if_some};
use crate::build_model::{ModelSetup, contradiction_problem};
use crate::files::{MessageShape, UploadedFiles};
use crate::messages::MessageManner;
use crate::model_settings::{ModelSettingKey, ModelSettingValue};
use crate::schema::PreparedSchema;
use crate::tool_calls::{ANSWERS, AnswerTerms, answer_tool_name, hosts_tool, tool_parameters};
use crate::wire_protocol::{ReadAnswer, UnreadableAnswer, WireProtocol};

/// Translates requests and responses of the Gemini API.
#[derive(Debug)]
pub(crate) struct GoogleWire {
    template: BodyTemplate,
    terms: AnswerTerms,
}

impl GoogleWire {
    /// # Errors
    ///
    /// The model does not support the requested combination.
    pub(crate) fn new(setup: &ModelSetup) -> Result<Self, Problem> {
        check(setup)?;
        let settings = &setup.model.settings;
        let is_early = is_early(&setup.model.model);
        // Early models reject a schema together with tools, so one of the tools returns the answer.
        let by_tool =
            setup.schema.as_ref().filter(|_| is_early && !setup.tools.is_empty()).map(PreparedSchema::new);
        let mut before = Map::new();
        let instruction = setup.instruction.as_ref().map(|text| json!({"parts": [{"text": text}]}));
        insert_if_some(&mut before, "systemInstruction", instruction);
        let mut config = Map::new();
        insert_if_some(&mut config, "temperature", settings.number(ModelSettingKey::Temperature));
        insert_if_some(&mut config, "topP", settings.number(ModelSettingKey::TopP));
        insert_if_some(&mut config, "topK", settings.integer(ModelSettingKey::TopK));
        insert_if_some(&mut config, "presencePenalty", settings.number(ModelSettingKey::PresencePenalty));
        insert_if_some(&mut config, "frequencyPenalty", settings.number(ModelSettingKey::FrequencyPenalty));
        insert_if_some(&mut config, "maxOutputTokens", settings.integer(ModelSettingKey::MaxTokens));
        insert_if_some(&mut config, "seed", settings.integer(ModelSettingKey::Seed));
        insert_if_some(
            &mut config,
            "stopSequences",
            settings.texts(ModelSettingKey::Stop).map(ToOwned::to_owned),
        );
        insert_if_some(
            &mut config,
            "thinkingConfig",
            thinking(settings.value(ModelSettingKey::Reasoning), &setup.model.model),
        );
        if let Some(schema) = setup.schema.as_ref().filter(|_| by_tool.is_none()) {
            insert_if_some(&mut config, "responseMimeType", Some("application/json"));
            insert_if_some(&mut config, "responseJsonSchema", Some(schema.clone()));
        }
        let mut after = Map::new();
        insert_if_some(&mut after, "generationConfig", (!config.is_empty()).then_some(Value::Object(config)));
        tools(&mut after, setup, by_tool.as_ref());
        let terms = AnswerTerms::new(setup, by_tool.as_ref(), by_tool.is_some());
        let manner = MessageManner { form: terms.form.clone(), is_signed: !is_early };
        let shape = MessageShape::Google;
        let cap = CapField { within: Some("generationConfig"), name: "maxOutputTokens" };
        let parts = BodyParts { before, field: "contents", first: None, after, cap, shape, manner };
        let template = BodyTemplate::new(parts);
        Ok(Self { template, terms })
    }
}

/// Whether a model is from before Gemini 3: it accepts neither a schema nor provider-run tools together with
/// other tools, and does not sign its calls.
fn is_early(model: &str) -> bool {
    ["gemini-1", "gemini-2", "gemma"].iter().any(|part| model.contains(part))
}

/// Rejects combinations that early models do not support.
fn check(setup: &ModelSetup) -> Result<(), Problem> {
    let hosted = [ModelSettingKey::WebSearch, ModelSettingKey::WebFetch]
        .into_iter()
        .find(|key| hosts_tool(&setup.model.settings, *key));
    let Some(key) = hosted.filter(|_| is_early(&setup.model.model)) else { return Ok(()) };
    let beside = match (setup.tools.is_empty(), &setup.schema) {
        (false, _) => "other tools",
        (true, Some(_)) => "a schema",
        (true, None) => return Ok(()),
    };
    let what = format!("`{}` cannot be used with {beside} in models before Gemini 3", key.name());
    Err(contradiction_problem(&setup.model, &what)
        .hint(format!("use a newer model, or omit `{}`", key.name())))
}

/// Writes the tools: the caller's with the answer tool, and those that run at the provider.
fn tools(fields: &mut Map<String, Value>, setup: &ModelSetup, by_tool: Option<&PreparedSchema>) {
    let declare = |name: &str, about: Option<&str>, schema: Value| {
        let mut function = Map::new();
        insert_if_some(&mut function, "name", Some(name));
        insert_if_some(&mut function, "description", about);
        // An object without properties is rejected; a function without parameters is not.
        let is_empty = schema["properties"].as_object().is_some_and(Map::is_empty);
        insert_if_some(&mut function, "parametersJsonSchema", (!is_empty).then_some(schema));
        Value::Object(function)
    };
    let mut functions: Vec<Value> = setup
        .tools
        .iter()
        .map(|tool| declare(&tool.name, tool.description.as_deref(), tool_parameters(tool)))
        .collect();
    if let Some(prepared) = by_tool {
        functions.push(declare(answer_tool_name(&setup.tools), Some(ANSWERS), prepared.schema.clone()));
    }
    let has_functions = !functions.is_empty();
    let mut all = Vec::new();
    if has_functions {
        all.push(json!({"functionDeclarations": functions}));
    }
    for (key, name) in
        [(ModelSettingKey::WebSearch, "googleSearch"), (ModelSettingKey::WebFetch, "urlContext")]
    {
        if hosts_tool(&setup.model.settings, key) {
            all.push(json!({ name: {} }));
        }
    }
    let mut config = Map::new();
    insert_if_some(&mut config, "functionCallingConfig", by_tool.map(|_| json!({"mode": "ANY"})));
    let is_mixed = has_functions && all.len() > 1;
    insert_if_some(&mut config, "includeServerSideToolInvocations", is_mixed.then_some(true));
    insert_if_some(fields, "tools", (!all.is_empty()).then_some(all));
    insert_if_some(fields, "toolConfig", (!config.is_empty()).then_some(Value::Object(config)));
}

/// The tokens that the model may spend on thinking before its answer, if that is set in tokens.
pub(crate) fn thinking_budget(setup: &ModelSetup) -> u64 {
    let config = thinking(setup.model.settings.value(ModelSettingKey::Reasoning), &setup.model.model);
    config.and_then(|config| config["thinkingBudget"].as_u64()).unwrap_or_default()
}

/// Models up to 2.5 take a budget in tokens, later ones a level.
fn thinking(setting: Option<&ModelSettingValue>, model: &str) -> Option<Value> {
    let budgeted = model.contains("gemini-2");
    let budget = |tokens: i64| Some(json!({"thinkingBudget": tokens}));
    match setting? {
        ModelSettingValue::Integer(tokens) => budget(*tokens),
        ModelSettingValue::Word("none" | "off") => budget(0),
        ModelSettingValue::Word("auto" | "on") => budget(-1),
        ModelSettingValue::Word(level) if budgeted => budget(match *level {
            "medium" => 8192,
            "high" => 24_576,
            _ => 1024,
        }),
        ModelSettingValue::Word(level) => Some(json!({"thinkingLevel": level})),
        _ => None,
    }
}

impl WireProtocol for GoogleWire {
    type StreamAssembly = GoogleAssembly;

    fn body(&self, messages: &[Message], uploaded: &UploadedFiles, cap: Option<u64>) -> Vec<u8> {
        self.template.body(messages, uploaded, cap)
    }

    fn read(&self, body: &[u8]) -> Result<ReadAnswer, UnreadableAnswer> {
        GoogleAssembly::new(self.terms.clone()).read(body)
    }

    fn assembly(&self) -> GoogleAssembly {
        GoogleAssembly::new(self.terms.clone())
    }
}
