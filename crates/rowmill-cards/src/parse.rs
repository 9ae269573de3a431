//! Parses the text of a card into a [`AgentCard`].

use std::fmt;
use std::path::{Path, PathBuf};

use rowmill_core::variables::InstructionVariables;
use rowmill_types::settings::AGENT_CARD;
use rowmill_types::{Problem, Secret};
use serde_json::Value;

use crate::card_fields::CardFields;
use crate::card_type::CardType;
use crate::expand_variables::expand_variables;
use crate::field::CardField;
use crate::field_lines::FieldLines;
use crate::front_matter::{CardFileFormat, is_skill_manifest, split_front_matter};
use crate::instruction::{find_include_mistakes, read_instruction};
use crate::mistake::CardMistake;
use crate::parse_tools::CardTools;
use crate::yaml::{YamlContent, YamlEntry, YamlNode};
use crate::{AgentCard, HostedTools, mcp, parse_kind, request_params, shape, yaml};

/// The text of a card and its source.
#[derive(Debug)]
pub struct UnparsedCard<'a> {
    /// The file or address. Its extension determines the format, and its stem is the default name.
    pub source: &'a str,
    /// The text.
    pub text: &'a str,
    /// How far the card is trusted.
    pub origin: CardOrigin<'a>,
}

/// How far a card is trusted.
#[derive(Clone, Copy)]
pub enum CardOrigin<'a> {
    /// A local file: it may name other files and variables of the environment.
    Local {
        /// Looks up a variable of the environment.
        environment: &'a dyn Fn(&str) -> Option<String>,
    },
    /// From a remote source: it may name neither.
    Remote,
}

impl fmt::Debug for CardOrigin<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Local { .. } => "Local",
            Self::Remote => "Remote",
        })
    }
}

/// Parses a card.
///
/// ```
/// # use rowmill_cards::{UnparsedCard, CardOrigin, parse_card};
/// let text = "---\nmodel: openai.gpt-5\n---\nYou sort reviews.";
/// let card = parse_card(&UnparsedCard { source: "cards/sort reviews.md", text, origin: CardOrigin::Remote }).unwrap();
/// assert_eq!(card.name, "sort_reviews");
/// assert_eq!(card.instruction.as_deref(), Some("You sort reviews."));
/// ```
///
/// # Errors
///
/// The text is not a card, or fields are unknown, missing or wrong: all mistakes, in the order of their
/// lines. Messages name the source and, if there is one, the line.
pub fn parse_card(card: &UnparsedCard<'_>) -> Result<AgentCard, Vec<Problem>> {
    read(card).map_err(|mut mistakes| {
        mistakes.sort_by_key(|mistake| mistake.line);
        mistakes.into_iter().map(|mistake| mistake.into_problem(card.source)).collect()
    })
}

/// The fields of a card as written, and its body.
struct ParsedCardText {
    fields: CardFields,
    body: Option<(String, u64)>,
    /// `mcp_connect` before variables of the environment were filled in, which may hold secrets.
    servers: Option<Value>,
}

fn read(card: &UnparsedCard<'_>) -> Result<AgentCard, Vec<CardMistake>> {
    let ParsedCardText { mut fields, body, servers } = written(card)?;
    let (card_type, smart) = CardType::from_field(fields.take("type"))?;
    let mut lines = FieldLines::from_fields(&fields);
    fields.add_mistakes(card_type.unknown_fields(&fields));
    let shape = shape::of(card_type, &fields, servers);
    let mut ignored = if smart { vec!["type: smart".to_owned()] } else { Vec::new() };
    refuse(card, &mut fields);
    take_idle(&mut fields, &mut ignored);

    let name = name(&mut fields, card.source);
    let (instruction, messages) = read_model_texts(card_type, &mut fields, body, &mut ignored);
    let text = instruction.as_deref().unwrap_or_default();
    lines.add_placeholders(text, card.text);
    fields.add_mistakes(find_include_mistakes(text, &card.origin, &lines));
    let (default, tool_only) = standing(&mut fields);
    let requested = fields.read("request_params", request_params::read).unwrap_or_default();
    ignored.extend(requested.ignored);
    let model = model(fields.take("model"), requested.model);
    let (model, model_line) = fields.value_or_note(model).unzip();
    let mcp_connect = mcp::read(fields.take("mcp_connect"), &mut ignored);
    let tools = CardTools::read(&mut fields, mcp_connect.as_deref().ok());
    let mcp_connect = fields.value_or_note(mcp_connect);
    let rest = IndependentFields::read(&mut fields);
    let read = parse_kind::read(card_type, &mut fields);
    fields.finish(())?;
    Ok(AgentCard {
        name,
        source: card.source.to_owned(),
        kind: read.kind,
        instruction,
        description: rest.description,
        default,
        tool_only,
        model,
        model_line,
        api_key: rest.api_key,
        request: requested.params,
        hosted: rest.hosted,
        servers: tools.servers,
        tools: tools.tools,
        resources: tools.resources,
        prompts: tools.prompts,
        mcp_connect,
        skills: tools.skills,
        function_tools: tools.function_tools,
        tool_hooks: tools.tool_hooks,
        lifecycle_hooks: tools.lifecycle_hooks,
        tool_policy: tools.tool_policy,
        shell: rest.shell,
        cwd: rest.cwd,
        tool_input_schema: tools.tool_input_schema,
        max_parallel: read.max_parallel,
        child_timeout: read.child_timeout,
        messages,
        history: Vec::new(),
        variables: rest.variables,
        ignored,
        shape,
        child_lines: read.child_lines,
        lines,
    })
}

/// Fields that do not depend on others.
struct IndependentFields {
    description: Option<String>,
    api_key: Option<Secret>,
    hosted: HostedTools,
    shell: bool,
    cwd: Option<PathBuf>,
    variables: InstructionVariables,
}

impl IndependentFields {
    fn read(fields: &mut CardFields) -> Self {
        Self {
            description: fields.text("description"),
            api_key: fields.text("api_key").map(Secret::new),
            hosted: hosted(fields),
            shell: fields.flag("shell"),
            cwd: fields.text("cwd").map(PathBuf::from),
            variables: variables(fields),
        }
    }
}

/// The checks of a card as a whole, before any of its fields is read.
fn refuse(card: &UnparsedCard<'_>, fields: &mut CardFields) {
    if matches!(card.origin, CardOrigin::Remote) {
        fields.add_mistakes(local_files(fields));
    }
}

/// Whether the card is the default worker, and whether it is only for other agents.
fn standing(fields: &mut CardFields) -> (bool, bool) {
    let line = fields.entries().iter().find(|entry| entry.key == "tool_only").map_or(0, |entry| entry.line);
    let (default, tool_only) = (fields.flag("default"), fields.flag("tool_only"));
    if default && tool_only {
        fields.add_mistakes(
            CardMistake::at(line, "`default` and `tool_only` cannot be used together")
                .hint("an agent that is only used by others cannot be the one that is run"),
        );
    }
    (default, tool_only)
}

/// The instruction and the files of messages. A card that calls no model itself has no use for them.
fn read_model_texts(
    card_type: CardType,
    fields: &mut CardFields,
    body: Option<(String, u64)>,
    ignored: &mut Vec<String>,
) -> (Option<String>, Vec<PathBuf>) {
    let instruction = read_instruction(fields, body);
    let instruction = fields.value_or_note(instruction);
    let messages = fields.read("messages", CardField::text_or_texts).unwrap_or_default();
    if card_type.asks_model() {
        return (instruction, messages.into_iter().map(PathBuf::from).collect());
    }
    ignored.extend(instruction.map(|_| "instruction".to_owned()));
    ignored.extend((!messages.is_empty()).then(|| "messages".to_owned()));
    (None, Vec::new())
}

fn written(card: &UnparsedCard<'_>) -> Result<ParsedCardText, Vec<CardMistake>> {
    if is_skill_manifest(card.source) {
        return Err(CardMistake::in_card("`SKILL.md` describes a skill, not an agent")
            .hint("list its folder in the `skills` of a card")
            .into());
    }
    let (mut node, body) = match CardFileFormat::from_file_name(card.source) {
        Some(CardFileFormat::Yaml) => {
            let text = card.text.strip_prefix('\u{feff}').unwrap_or(card.text);
            (yaml::parse_yaml(text)?, None)
        }
        Some(CardFileFormat::Markdown) => {
            let parts = split_front_matter(card.text)?;
            (yaml::parse_yaml(&parts.yaml)?, Some((parts.body, parts.body_line)))
        }
        None => {
            return Err(CardMistake::in_card("the file name is not that of an agent card")
                .hint("card files end with `.md`, `.markdown`, `.yaml` or `.yml`")
                .into());
        }
    };
    // Front matter without a field is a card that has only an instruction.
    if node.content == YamlContent::Null && body.is_some() {
        node.content = YamlContent::Mapping(Vec::new());
    }
    let servers = as_written(&node, "mcp_connect");
    expand_variables(&mut node, &card.origin)?;
    let YamlNode { line, content } = node;
    let YamlContent::Mapping(entries) = content else {
        return Err(CardMistake::at(line, "a card must be a mapping of fields")
            .hint("write one card per file")
            .into());
    };
    Ok(ParsedCardText { fields: CardFields::of_card(line, entries), body, servers })
}

fn as_written(card: &YamlNode, name: &str) -> Option<Value> {
    let YamlContent::Mapping(entries) = &card.content else { return None };
    entries.iter().find(|entry| entry.key == name).map(|entry| entry.node.to_json())
}

/// Rejects local files in a card from a remote source, which must not choose files of this machine.
fn local_files(fields: &CardFields) -> Vec<CardMistake> {
    const LOCAL: [&str; 6] = ["messages", "skills", "function_tools", "tool_hooks", "lifecycle_hooks", "cwd"];
    let asks = |entry: &&YamlEntry| match &entry.node.content {
        YamlContent::Null => false,
        YamlContent::List(items) => !items.is_empty(),
        YamlContent::Mapping(entries) => !entries.is_empty(),
        _ => true,
    };
    let local = |entry: &&YamlEntry| LOCAL.contains(&entry.key.as_str());
    let refused = |entry: &YamlEntry| {
        let message = format!("a remote card may not use files: `{}`", entry.key);
        CardMistake::at(entry.line, message)
            .hint(format!("save the card to a file that you trust and pass its path to {AGENT_CARD}"))
    };
    fields.entries().iter().filter(local).filter(asks).map(refused).collect()
}

/// Removes fields that have no effect in a batch, and records those that ask for something.
fn take_idle(fields: &mut CardFields, ignored: &mut Vec<String>) {
    let mut note = |name: &str, asks: bool| {
        if asks {
            ignored.push(name.to_owned());
        }
    };
    // `subagents` lets an agent start others that it defines itself, `harness_tools` lets it control
    // the program around it, `human_input` lets it ask a person, and none of these exists here. Without
    // them it answers with the tools that it has.
    for name in
        ["human_input", "use_history", "save_trajectory", "trim_tool_history", "subagents", "harness_tools"]
    {
        note(name, fields.flag(name));
    }
    for name in ["history_source", "history_merge_target"] {
        note(name, fields.text(name).is_some_and(|value| value != "none"));
    }
    note("subagent_model", fields.text("subagent_model").is_some());
    note("max_display_instances", fields.read("max_display_instances", |field| field.integer(0)).is_some());
    note("commands", fields.read("commands", CardField::mapping).is_some_and(|entries| !entries.is_empty()));
    fields.read("schema_version", |field| field.integer(0));
}

fn name(fields: &mut CardFields, source: &str) -> String {
    let stem = || Path::new(source).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = fields.text("name").or_else(stem).unwrap_or_default();
    name.replace(' ', "_")
}

/// The model string and its line.
fn model(own: Option<CardField>, requested: Option<CardField>) -> Result<Option<(String, u64)>, CardMistake> {
    if let (Some(_), Some(field)) = (&own, &requested) {
        return Err(field.mistake("repeats `model`").hint("keep one of them"));
    }
    let Some(field) = own.or(requested) else { return Ok(None) };
    let line = field.line;
    field.text().map(|text| Some((text, line)))
}

fn hosted(fields: &mut CardFields) -> HostedTools {
    HostedTools {
        web_search: fields.read("web_search", CardField::boolean),
        web_fetch: fields.read("web_fetch", CardField::boolean),
        x_search: fields.read("x_search", CardField::boolean),
    }
}

fn variables(fields: &mut CardFields) -> InstructionVariables {
    let mut variables = InstructionVariables::default();
    for (name, value) in fields.read("variables", CardField::text_mapping).unwrap_or_default() {
        variables.set(name, value);
    }
    variables
}
