//! Reads fast-agent's configuration files, for MCP servers and model references that cards name and
//! `rowmill.toml` does not define.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rowmill_cards::{AgentCard, yaml_to_json};
use rowmill_tools::{DurationSetting, McpProtocolMode, McpServerConfig};
use rowmill_types::{Problem, ProblemCode, Secret};
use serde_json::{Map, Value};

use super::load::{EnvironmentLookup, LoadedCards};
use crate::control::RunNotice;
use crate::work_spec::WorkSpec;

/// The names of the file in current and earlier versions.
const CONFIGS: [&str; 3] = ["fast-agent.yaml", "fast-agent.config.yaml", "fastagent.config.yaml"];
const SECRETS: [&str; 2] = ["fast-agent.secrets.yaml", "fastagent.secrets.yaml"];
/// The folder of fast-agent's own files.
const HOME: &str = ".fast-agent";
/// The reference to the default model in cards.
const USUAL: &str = "$system.default";
/// Settings that are used.
const TAKEN: &[&str] = &[
    "description",
    "target",
    "command",
    "url",
    "access_token",
    "args",
    "env",
    "headers",
    "cwd",
    "include_instructions",
    "read_timeout_seconds",
    "protocol_mode",
];
/// Settings that have no effect here and do not change what a server does.
const HARMLESS: &[&str] = &[
    "name",
    "transport",
    "management",
    "load_on_start",
    "reconnect_on_disconnect",
    "ping_interval_seconds",
    "max_missed_pings",
    "implementation",
];

/// The file, with its secrets filled in.
struct FastAgentConfig {
    path: PathBuf,
    settings: Value,
}

/// The parts of a spec that are missing and may be defined in such a file.
struct MissingSettings<'a> {
    servers: Vec<&'a str>,
    references: Vec<&'a str>,
}

/// The configuration files that a run with cards of these folders may read.
pub(super) fn config_files(folders: &[PathBuf]) -> Vec<PathBuf> {
    let here = [PathBuf::from("."), PathBuf::from(HOME)];
    let names = || CONFIGS.iter().chain(&SECRETS);
    let all = here.iter().chain(folders).flat_map(|folder| names().map(|name| folder.join(name)));
    all.filter(|path| path.is_file()).collect()
}

/// Adds servers and model references from a fast-agent configuration to the spec, if any are missing
/// and there is such a file: in the current folder, or in the folder of a card.
///
/// # Errors
///
/// The file cannot be read, or a server in it cannot be used.
pub(crate) fn with_fast_agent_config(
    spec: &WorkSpec,
    loaded: Option<&LoadedCards>,
    environment: &EnvironmentLookup,
    tell: &dyn Fn(RunNotice),
) -> Result<WorkSpec, Problem> {
    let mut spec = spec.clone();
    let members = loaded.map(|loaded| loaded.set.cards_of_worker(&loaded.worker)).unwrap_or_default();
    let missing = MissingSettings::of(&spec, &members);
    if missing.servers.is_empty() && missing.references.is_empty() {
        return Ok(spec);
    }
    let here = [PathBuf::from("."), PathBuf::from(HOME)];
    let folders = here.iter().chain(loaded.iter().flat_map(|loaded| &loaded.folders));
    let Some(config) = FastAgentConfig::find(folders)? else { return Ok(spec) };
    let (mut taken, mut ignored) = (Vec::new(), Vec::new());
    let servers: Vec<String> = missing.servers.iter().map(|&name| name.to_owned()).collect();
    let references: Vec<String> = missing.references.iter().map(|&token| token.to_owned()).collect();
    for name in servers {
        let Some(entry) = config.settings.pointer("/mcp/servers").and_then(|all| all.get(&name)) else {
            continue;
        };
        let server = config.server(&name, entry, environment, &mut ignored)?;
        taken.push(format!("the MCP server `{name}`"));
        spec.agents.servers.insert(name, server);
    }
    for token in references {
        let Some((namespace, key, value)) = config.reference(&token) else { continue };
        taken.push(format!("`{token}`"));
        spec.aliases.references.entry(namespace).or_default().insert(key, value);
    }
    if !taken.is_empty() {
        let left =
            if ignored.is_empty() { String::new() } else { format!("; ignored: {}", ignored.join(", ")) };
        let text = format!("taken from `{}`: {}{left}", config.path.display(), taken.join(", "));
        tell(RunNotice::info(text));
    }
    Ok(spec)
}

impl<'a> MissingSettings<'a> {
    fn of(spec: &'a WorkSpec, members: &[&'a AgentCard]) -> Self {
        let mut servers: Vec<&str> = members
            .iter()
            .flat_map(|card| card.servers.iter().map(String::as_str))
            .filter(|name| !spec.agents.servers.contains_key(*name))
            .collect();
        let models = members.iter().filter_map(|card| card.model.as_deref());
        let models =
            models.chain([spec.model.as_str()]).chain(spec.fallback_models.iter().map(String::as_str));
        let tokens = models.map(|model| model.split_once('?').map_or(model, |(name, _)| name).trim());
        let mut references: Vec<&str> = tokens
            .filter(|token| token.starts_with('$') && spec.aliases.model_of_reference(token).is_none())
            .filter(|token| *token != USUAL || spec.model.is_empty() || spec.model == USUAL)
            .collect();
        for names in [&mut servers, &mut references] {
            names.sort_unstable();
            names.dedup();
        }
        Self { servers, references }
    }
}

impl FastAgentConfig {
    /// The file of the first folder that has one.
    fn find<'p>(folders: impl Iterator<Item = &'p PathBuf>) -> Result<Option<Self>, Problem> {
        for folder in folders {
            let first =
                |names: &[&str]| names.iter().map(|name| folder.join(name)).find(|path| path.is_file());
            let Some(path) = first(&CONFIGS) else { continue };
            let mut settings = read(&path)?;
            if let Some(secrets) = first(&SECRETS) {
                merge(&mut settings, read(&secrets)?);
            }
            let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
            return Ok(Some(Self { path, settings }));
        }
        Ok(None)
    }

    /// The namespace, the key and the value of a reference. `$system.default` stands
    /// for the default model of the file if it is not defined itself.
    fn reference(&self, token: &str) -> Option<(String, String, String)> {
        let (namespace, key) = token.strip_prefix('$')?.split_once('.')?;
        let own = self.settings.get("model_references").and_then(|all| all.get(namespace)?.get(key));
        let usual = || self.settings.get("default_model").filter(|model| token == USUAL && *model != USUAL);
        let value = own.or_else(usual)?.as_str()?;
        Some((namespace.to_owned(), key.to_owned(), value.to_owned()))
    }

    fn server(
        &self,
        name: &str,
        entry: &Value,
        environment: &EnvironmentLookup,
        ignored: &mut Vec<String>,
    ) -> Result<McpServerConfig, Problem> {
        let wrong = |what: String| {
            let message = format!("`{}`: the MCP server `{name}` {what}", self.path.display());
            Problem::new(ProblemCode::InvalidConfig, message)
        };
        let Value::Object(entry) = entry else {
            return Err(wrong("is not a mapping".to_owned())
                .hint("correct it, or define the server in `rowmill.toml`"));
        };
        let from_variables: RefCell<Vec<Secret>> = RefCell::default();
        let noted = |name: &str| {
            let value = environment(name)?;
            from_variables.borrow_mut().push(Secret::new(value.as_str()));
            Some(value)
        };
        let entry = expanded(entry, &noted).map_err(|variable| {
            wrong(format!("needs `{variable}`, which is not set"))
                .hint(format!("set it: `export {variable}=…`"))
        })?;
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        if text("management").as_deref() == Some("provider") {
            return Err(wrong("has `management: provider`, which rowmill does not support".to_owned())
                .hint("set its `url` and remove `management`"));
        }
        let unused = entry.iter().filter(|(key, value)| {
            !TAKEN.contains(&key.as_str()) && !HARMLESS.contains(&key.as_str()) && !value.is_null()
        });
        ignored.extend(unused.map(|(key, _)| format!("`{key}` of `{name}`")));
        if text("transport").as_deref() == Some("sse") {
            ignored.push(format!("`transport: sse` of `{name}`, which is reached by streamable HTTP"));
        }
        let from_variables = from_variables.into_inner();
        Ok(McpServerConfig { from_variables, ..self.taken_over(&entry) })
    }

    /// The settings of a server that both programs support.
    fn taken_over(&self, entry: &Map<String, Value>) -> McpServerConfig {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        let config = McpServerConfig {
            description: text("description"),
            target: text("target"),
            command: text("command"),
            url: text("url"),
            access_token: text("access_token"),
            args: texts(entry.get("args")),
            env: text_map(entry.get("env")),
            headers: text_map(entry.get("headers")),
            cwd: text("cwd").map(|cwd| self.folder().join(cwd)),
            include_instructions: entry.get("include_instructions").and_then(Value::as_bool),
            timeout: entry.get("read_timeout_seconds").and_then(Value::as_f64).map(DurationSetting::Seconds),
            ..McpServerConfig::default()
        };
        let protocol_mode = match text("protocol_mode").as_deref() {
            Some("modern") => McpProtocolMode::Modern,
            Some("legacy") => McpProtocolMode::Legacy,
            _ => McpProtocolMode::Auto,
        };
        McpServerConfig { protocol_mode, ..config }
    }

    fn folder(&self) -> PathBuf {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        std::path::absolute(folder.join(".")).unwrap_or_else(|_| folder.to_owned())
    }
}

fn read(path: &Path) -> Result<Value, Problem> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Problem::new(ProblemCode::InvalidConfig, format!("cannot read the configuration `{shown}`"))
            .cause(error)
    })?;
    yaml_to_json(&shown, &text)
}

/// Merges one mapping into another, key by key; values of `over` win.
fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) if !over.is_null() => *under = over,
        _ => {}
    }
}

/// Looks up a variable; may record the value that was found.
type NotingLookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// The entry with `${NAME}` and `${NAME:default}` replaced; the error is a name that is not set.
fn expanded(
    entry: &Map<String, Value>,
    environment: &NotingLookup<'_>,
) -> Result<Map<String, Value>, String> {
    entry.iter().map(|(key, value)| Ok((key.clone(), filled(value, environment)?))).collect()
}

fn filled(value: &Value, environment: &NotingLookup<'_>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(filled_text(text, environment)?),
        Value::Array(values) => {
            Value::Array(values.iter().map(|value| filled(value, environment)).collect::<Result<_, _>>()?)
        }
        Value::Object(entries) => Value::Object(expanded(entries, environment)?),
        other => other.clone(),
    })
}

fn filled_text(text: &str, environment: &NotingLookup<'_>) -> Result<String, String> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inner, behind)) = after.split_once('}') else { break };
        let (name, default) = inner.split_once(':').map_or((inner, None), |(name, rest)| (name, Some(rest)));
        let value = environment(name).or_else(|| default.map(str::to_owned));
        whole.push_str(before);
        whole.push_str(&value.ok_or_else(|| name.to_owned())?);
        rest = behind;
    }
    whole.push_str(rest);
    Ok(whole)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let values = value.and_then(Value::as_array);
    values.into_iter().flatten().map(plain_text).collect()
}

fn text_map(value: Option<&Value>) -> BTreeMap<String, String> {
    let entries = value.and_then(Value::as_object);
    entries.into_iter().flatten().map(|(key, value)| (key.clone(), plain_text(value))).collect()
}

/// Converts an unquoted value, such as a number, to text.
fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
