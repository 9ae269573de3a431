//! Parses the fields that define what an agent may use.

use std::num::NonZeroU32;
use std::path::PathBuf;

use rowmill_core::ports::HookKind;
use serde_json::{Map, Value};

use crate::card_fields::{CardFields, collect_all};
use crate::field::CardField;
use crate::mistake::{CardMistake, suggestion};
use crate::yaml::YamlContent;
use crate::{
    CardMcpServer, CardPythonTool, CardToolCallAction, CodeArgument, LifecycleHook, PythonFunctionReference,
    ServerItemFilters, ToolPolicy,
};

const TOOL_HOOKS: [(&str, HookKind); 5] = [
    ("before_llm_call", HookKind::BeforeModel),
    ("after_llm_call", HookKind::AfterModel),
    ("before_tool_call", HookKind::BeforeTool),
    ("after_tool_call", HookKind::AfterTool),
    ("after_turn_complete", HookKind::AfterTurn),
];
const LIFECYCLE_HOOKS: [(&str, LifecycleHook); 2] =
    [("on_start", LifecycleHook::OnStart), ("on_shutdown", LifecycleHook::OnShutdown)];
const ROUTES: [(&str, CardToolCallAction); 3] = [
    ("call", CardToolCallAction::Call),
    ("deny", CardToolCallAction::Deny),
    ("passthrough", CardToolCallAction::Passthrough),
];

/// Everything that an agent may use.
#[derive(Debug, Default)]
pub(crate) struct CardTools {
    pub(crate) servers: Vec<String>,
    pub(crate) tools: ServerItemFilters,
    pub(crate) resources: ServerItemFilters,
    pub(crate) prompts: ServerItemFilters,
    pub(crate) skills: Vec<PathBuf>,
    pub(crate) function_tools: Vec<CardPythonTool>,
    pub(crate) tool_hooks: Vec<(HookKind, PythonFunctionReference)>,
    pub(crate) lifecycle_hooks: Vec<(LifecycleHook, PythonFunctionReference)>,
    pub(crate) tool_policy: Vec<(String, ToolPolicy)>,
    pub(crate) tool_input_schema: Option<Map<String, Value>>,
}

impl CardTools {
    /// Reads the fields; `connected` are the servers that the card defines, if they could be parsed.
    pub(crate) fn read(fields: &mut CardFields, connected: Option<&[CardMcpServer]>) -> Self {
        let servers = fields.take("servers").map(CardField::texts).transpose();
        // If some servers are unknown because of a mistake, a filter for an unknown server may be
        // right.
        let known: Option<Vec<&str>> = servers.as_ref().ok().zip(connected).map(|(named, connected)| {
            let named = named.iter().flatten().map(String::as_str);
            named.chain(connected.iter().map(|server| server.name.as_str())).collect()
        });
        let [tools, resources, prompts] = ["tools", "resources", "prompts"]
            .map(|name| fields.read(name, |field| filter(field, known.as_deref())).unwrap_or_default());
        let skills = fields.read("skills", CardField::text_or_texts).unwrap_or_default();
        Self {
            tools,
            resources,
            prompts,
            skills: skills.into_iter().map(PathBuf::from).collect(),
            function_tools: fields.read("function_tools", function_tools).unwrap_or_default(),
            tool_hooks: fields.read("tool_hooks", |field| hooks(field, &TOOL_HOOKS)).unwrap_or_default(),
            lifecycle_hooks: fields
                .read("lifecycle_hooks", |field| hooks(field, &LIFECYCLE_HOOKS))
                .unwrap_or_default(),
            tool_policy: fields.read("tool_policy", tool_policy).unwrap_or_default(),
            tool_input_schema: fields.read("tool_input_schema", tool_input_schema),
            servers: fields.value_or_note(servers).unwrap_or_default(),
        }
    }
}

fn filter(field: CardField, known: Option<&[&str]>) -> Result<ServerItemFilters, Vec<CardMistake>> {
    let name = field.path.clone();
    let one = |(server, field): (String, CardField)| {
        if let Some(known) = known.filter(|known| !known.contains(&server.as_str())) {
            let what = format!("filters a server that the card does not use: `{server}`");
            let place = CardField { path: name.clone(), ..field };
            return Err(place.mistake(&what).hint(suggestion(&server, known.iter().copied(), "its servers")));
        }
        Ok((server, field.texts()?))
    };
    collect_all(field.entries()?.into_iter().map(one))
}

fn function_tools(field: CardField) -> Result<Vec<CardPythonTool>, Vec<CardMistake>> {
    match field.content {
        YamlContent::Text(_) => Ok(vec![function_tool(field)?]),
        _ => collect_all(field.list()?.into_iter().map(function_tool)),
    }
}

/// `file.py:function`, or a mapping with more settings.
fn function_tool(field: CardField) -> Result<CardPythonTool, Vec<CardMistake>> {
    if !matches!(field.content, YamlContent::Mapping(_)) {
        return Ok(CardPythonTool {
            entrypoint: PythonFunctionReference::read(field)?,
            code: None,
            idempotent: false,
        });
    }
    let place = field.clone();
    let mut fields =
        CardFields::from_field(field, &["entrypoint", "variant", "code_arg", "language", "idempotent"])?;
    let entrypoint = fields.read("entrypoint", PythonFunctionReference::read);
    let variant = fields.take("variant");
    let is_code = variant.is_some();
    fields.value_or_note(variant.map(|field| field.choice(&[("code", ())])).transpose());
    let (argument, language) = (fields.text("code_arg"), fields.text("language"));
    if !is_code && (argument.is_some() || language.is_some()) {
        fields.add_mistakes(
            place
                .mistake("has `code_arg` or `language` without `variant: code`")
                .hint("add `variant: code`, or remove them"),
        );
    }
    let code = is_code.then(|| CodeArgument {
        argument: argument.unwrap_or_else(|| "code".to_owned()),
        language: language.unwrap_or_else(|| "python".to_owned()),
    });
    let idempotent = fields.flag("idempotent");
    // If there was a mistake, it has been reported already.
    fields.finish(())?;
    let entrypoint = entrypoint
        .ok_or_else(|| place.mistake("needs `entrypoint`").hint("write `entrypoint: file.py:function`"))?;
    Ok(CardPythonTool { entrypoint, code, idempotent })
}

fn hooks<K: Copy>(
    field: CardField,
    kinds: &[(&str, K)],
) -> Result<Vec<(K, PythonFunctionReference)>, Vec<CardMistake>> {
    let names: Vec<_> = kinds.iter().map(|(name, _)| *name).collect();
    let mut given = CardFields::from_field(field, &names)?;
    let mut hooks = Vec::new();
    for (name, kind) in kinds {
        hooks.extend(given.read(name, PythonFunctionReference::read).map(|function| (*kind, function)));
    }
    given.finish(hooks)
}

fn tool_policy(field: CardField) -> Result<Vec<(String, ToolPolicy)>, Vec<CardMistake>> {
    let one = |(tool, field): (String, CardField)| {
        if !matches!(field.content, YamlContent::Mapping(_)) {
            return Ok((tool, ToolPolicy { route: field.choice(&ROUTES)?, ..ToolPolicy::default() }));
        }
        let mut fields = CardFields::from_field(field, &["route", "idempotent", "timeout", "max_parallel"])?;
        let route = fields.read("route", |field| field.choice(&ROUTES)).unwrap_or_default();
        let idempotent = fields.read("idempotent", CardField::boolean);
        let timeout = fields.read("timeout", CardField::seconds);
        let max_parallel =
            fields.read("max_parallel", |field| field.integer_u32(1)).and_then(NonZeroU32::new);
        fields.finish((tool, ToolPolicy { route, idempotent, timeout, max_parallel }))
    };
    collect_all(field.entries()?.into_iter().map(one))
}

/// A JSON Schema of an object, checked as far as a parent's model depends on it.
fn tool_input_schema(field: CardField) -> Result<Map<String, Value>, CardMistake> {
    let place = field.clone();
    let schema = field.object()?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(place.mistake("must have `type: object`"));
    }
    let empty = Map::new();
    let properties = match schema.get("properties") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err(place.mistake("must have a mapping in `properties`")),
    };
    if let Some((name, _)) = properties.iter().find(|(_, property)| !property.is_object()) {
        return Err(place.mistake(&format!("must have a mapping in `properties.{name}`")));
    }
    let required = match schema.get("required") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(required)) => required.as_slice(),
        Some(_) => return Err(place.mistake("must have a list of names in `required`")),
    };
    for name in required {
        match name.as_str() {
            Some(name) if properties.contains_key(name) => {}
            Some(name) => {
                let hint = suggestion(name, properties.keys().map(String::as_str), "properties");
                return Err(place
                    .mistake(&format!("requires a property that it does not have: `{name}`"))
                    .hint(hint));
            }
            None => return Err(place.mistake("must have a list of names in `required`")),
        }
    }
    if !matches!(
        schema.get("additionalProperties"),
        None | Some(Value::Null | Value::Bool(_) | Value::Object(_))
    ) {
        return Err(place.mistake("must have `true`, `false` or a mapping in `additionalProperties`"));
    }
    Ok(schema)
}
