//! `mcp_connect`: MCP servers that a card defines itself.

use std::fmt;

use serde_json::{Map, Value};

use crate::card_fields::{CardFields, collect_all};
use crate::field::CardField;
use crate::mistake::CardMistake;
use crate::yaml::{YamlContent, mapping_to_json};

/// An MCP server of a card.
#[derive(Clone, PartialEq)]
pub struct CardMcpServer {
    /// The prefix of tool names, which filters use, too.
    pub name: String,
    /// Its settings, checked: exactly one of `target`, `command` and `url`, and any of
    /// `description`, `include_instructions`, `args`, `env`, `cwd`, `headers`, `access_token`, `auth`, `timeout`,
    /// `start_timeout`, `per_row`, `tools`, `resources`, `prompts`, `idempotent`, `max_parallel` and `protocol_mode`.
    pub settings: Map<String, Value>,
}

/// Settings may hold secrets, so only their names are shown.
impl fmt::Debug for CardMcpServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<_> = self.settings.keys().collect();
        out.debug_struct("McpConnect").field("name", &self.name).field("settings", &settings).finish()
    }
}

const KNOWN: &[&str] = &[
    "target",
    "name",
    "description",
    "include_instructions",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "access_token",
    "auth",
    "timeout",
    "start_timeout",
    "per_row",
    "tools",
    "resources",
    "prompts",
    "idempotent",
    "protocol_mode",
    "max_parallel",
    "management",
    "connector_id",
    "defer_loading",
];

/// Reads `mcp_connect`, a mapping by name or a list. Settings without effect in a batch are added to
/// `ignored`.
pub(crate) fn read(
    field: Option<CardField>,
    ignored: &mut Vec<String>,
) -> Result<Vec<CardMcpServer>, Vec<CardMistake>> {
    let Some(field) = field else { return Ok(Vec::new()) };
    let entries: Vec<(Option<String>, CardField)> = match &field.content {
        YamlContent::Mapping(_) => {
            field.entries()?.into_iter().map(|(name, field)| (Some(name), field)).collect()
        }
        YamlContent::List(_) => field.list()?.into_iter().map(|field| (None, field)).collect(),
        _ => {
            return Err(field
                .mistake("must be a mapping or a list")
                .hint("write `mcp_connect: {name: {target: …}}`")
                .into());
        }
    };
    let mut names: Vec<String> = Vec::new();
    collect_all(entries.into_iter().map(|(name, field)| {
        let place = field.clone();
        let server = read_server(name, field, ignored)?;
        if names.contains(&server.name) {
            let what = format!("is the second server with the name `{}`", server.name);
            return Err(vec![place.mistake(&what).hint("give each its own `name`")]);
        }
        names.push(server.name.clone());
        Ok(server)
    }))
}

fn read_server(
    key: Option<String>,
    field: CardField,
    ignored: &mut Vec<String>,
) -> Result<CardMcpServer, Vec<CardMistake>> {
    let place = field.clone();
    let mut fields = CardFields::from_field(field, KNOWN)?;
    let mut settings = settings(&mut fields);
    refuse_provider_side(&mut fields, ignored);
    let own = fields.read("name", CardField::text);
    // Further checks would only report the same mistakes again.
    fields.finish(())?;
    if let (Some(key), Some(own)) = (&key, &own)
        && key != own
    {
        let what = format!("has a different `name`: `{own}`");
        return Err(place.mistake(&what).hint("omit `name`, the key is the name").into());
    }
    let ways: Vec<_> =
        ["target", "command", "url"].into_iter().filter(|way| settings.contains_key(*way)).collect();
    if ways.len() != 1 {
        let what = if ways.is_empty() {
            "does not say how to reach the server".to_owned()
        } else {
            format!("gives more than one way to reach the server: {}", crate::mistake::backticked_list(ways))
        };
        return Err(place.mistake(&what).hint("use one of `target`, `command` and `url`").into());
    }
    let reached = ways.first().and_then(|way| settings.get(*way)).and_then(Value::as_str);
    let name = key.or(own).unwrap_or_else(|| name_of(reached.unwrap_or_default()));
    settings.insert("name".to_owned(), Value::String(name.clone()));
    Ok(CardMcpServer { name, settings })
}

/// The settings of a local server, checked.
fn settings(fields: &mut CardFields) -> Map<String, Value> {
    let mut settings = Map::new();
    for name in ["target", "description", "command", "cwd", "url", "access_token"] {
        if let Some(text) = fields.text(name) {
            settings.insert(name.to_owned(), Value::String(text));
        }
    }
    for name in ["args", "tools", "resources", "prompts"] {
        if let Some(texts) = fields.read(name, CardField::texts) {
            settings.insert(name.to_owned(), texts.into());
        }
    }
    for name in ["env", "headers"] {
        if let Some(pairs) = fields.read(name, CardField::text_mapping) {
            let pairs = pairs.into_iter().map(|(key, value)| (key, Value::String(value)));
            settings.insert(name.to_owned(), Value::Object(pairs.collect()));
        }
    }
    for name in ["timeout", "start_timeout"] {
        if let Some(span) = fields.read(name, CardField::seconds) {
            settings.insert(name.to_owned(), span.as_secs_f64().into());
        }
    }
    for name in ["per_row", "include_instructions"] {
        if let Some(choice) = fields.read(name, CardField::boolean) {
            settings.insert(name.to_owned(), choice.into());
        }
    }
    if let Some(value) = fields.read("idempotent", idempotent) {
        settings.insert("idempotent".to_owned(), value);
    }
    if let Some(value) = fields.read("max_parallel", max_parallel) {
        settings.insert("max_parallel".to_owned(), value);
    }
    if let Some(auth) = fields.read("auth", CardField::mapping) {
        settings.insert("auth".to_owned(), Value::Object(mapping_to_json(&auth)));
    }
    let modes = [("auto", "auto"), ("modern", "modern"), ("legacy", "legacy")];
    if let Some(mode) = fields.read("protocol_mode", |field| field.choice(&modes)) {
        settings.insert("protocol_mode".to_owned(), mode.into());
    }
    settings
}

/// Rejects servers that a provider connects to by itself: they are not tools of a run.
fn refuse_provider_side(fields: &mut CardFields, ignored: &mut Vec<String>) {
    if let Some(field) = fields.take("connector_id") {
        fields.add_mistakes(
            field
                .mistake("is not supported: connectors run at the provider")
                .hint("set the `target` of an MCP server"),
        );
    }
    fields.read("management", |field| {
        let place = field.clone();
        if field.choice(&[("client", false), ("provider", true)])? {
            return Err(place
                .mistake("`provider` is not supported: rowmill connects to the servers itself")
                .hint("omit it"));
        }
        Ok(())
    });
    let deferred =
        fields.read("defer_loading", |field| Ok::<_, CardMistake>((field.path.clone(), field.boolean()?)));
    ignored.extend(deferred.and_then(|(path, is_on)| is_on.then_some(path)));
}

/// `true` for all tools, or the names of some.
fn idempotent(field: CardField) -> Result<Value, CardMistake> {
    match field.content {
        YamlContent::Boolean(all) => Ok(all.into()),
        YamlContent::List(_) => Ok(field.texts()?.into()),
        _ => Err(field.mistake("must be `true`, `false` or a list of tools")),
    }
}

/// A number of calls, or numbers by tool.
fn max_parallel(field: CardField) -> Result<Value, CardMistake> {
    if !matches!(field.content, YamlContent::Mapping(_)) {
        return Ok(field.integer_u32(1)?.into());
    }
    let limits = field.entries()?.into_iter().map(|(tool, field)| Ok((tool, field.integer_u32(1)?.into())));
    Ok(Value::Object(limits.collect::<Result<Map<_, _>, CardMistake>>()?))
}

/// A name for a server that has none: its host, its package or its program.
fn name_of(target: &str) -> String {
    let word = match target.split_once("://") {
        Some((_, rest)) => {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            // Credentials must not be part of the name, which models and messages see.
            let host = authority.rsplit('@').next().unwrap_or_default();
            host.split(':').next().unwrap_or_default()
        }
        None => {
            let mut words = target.split_whitespace();
            let program = words.next().unwrap_or_default();
            let launched = matches!(program, "npx" | "uvx" | "bunx" | "pnpx");
            let package = launched.then(|| words.find(|word| !word.starts_with('-'))).flatten();
            let word = package.unwrap_or(program).rsplit(['/', '\\']).next().unwrap_or_default();
            word.split('@').next().unwrap_or_default()
        }
    };
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let name: String = word.chars().map(letter).collect();
    if name.is_empty() { "mcp_server".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_name_is_called_by_its_host_package_or_program() {
        for (target, expected) in [
            ("https://mcp.example.com:8080/v1?x=1", "mcp_example_com"),
            ("https://ann:pw@mcp.example.com:8080/v1", "mcp_example_com"),
            ("https://token@mcp.example.com?key=k@y", "mcp_example_com"),
            ("npx -y @scope/server-files@1.2 /data", "server-files"),
            ("uvx mcp-server-time@latest --zone UTC", "mcp-server-time"),
            ("@scope/pkg", "pkg"),
            ("/opt/bin/server.sh --x", "server_sh"),
            ("", "mcp_server"),
        ] {
            assert_eq!(name_of(target), expected, "{target}");
        }
    }

    #[test]
    fn settings_are_not_shown() {
        let settings = Map::from_iter([("access_token".to_owned(), Value::from("planted"))]);
        let shown = format!("{:?}", CardMcpServer { name: "docs".to_owned(), settings });
        assert!(shown.contains("access_token") && !shown.contains("planted"), "{shown}");
    }
}
