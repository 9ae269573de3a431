//! The part of a card that shapes answers, for the fingerprint of a run.

use serde_json::{Map, Value};

use crate::CardType;
use crate::card_fields::CardFields;

/// Fields that are left out: some do not affect answers, `api_key` is a secret, and the instruction is
/// included in the form in which it is sent, with its variables filled in.
const APART: [&str; 19] = [
    "name",
    "instruction",
    "variables",
    "default",
    "tool_only",
    "schema_version",
    "api_key",
    "messages",
    "use_history",
    "save_trajectory",
    "human_input",
    "history_source",
    "history_merge_target",
    "max_display_instances",
    "commands",
    "trim_tool_history",
    "subagents",
    "subagent_model",
    "harness_tools",
];

/// Settings of a server whose values may be secrets.
const SECRET: [&str; 4] = ["headers", "access_token", "auth", "env"];

/// The fields that shape answers, sorted by name. Servers are included as written, because variables of
/// the environment in them may be secrets.
pub(crate) fn of(card_type: CardType, fields: &CardFields, servers: Option<Value>) -> Value {
    let shaping = |name: &str| name != "mcp_connect" && !APART.contains(&name);
    let mut shape: Vec<(String, Value)> = fields
        .entries()
        .iter()
        .filter(|entry| shaping(&entry.key))
        .map(|entry| (entry.key.clone(), entry.node.to_json()))
        .collect();
    shape.push(("type".to_owned(), card_type.name().into()));
    shape.extend(servers.map(|servers| ("mcp_connect".to_owned(), without_secrets(servers))));
    shape.sort_by(|left, right| left.0.cmp(&right.0));
    Value::Object(shape.into_iter().collect())
}

fn without_secrets(servers: Value) -> Value {
    let clean = |server: Value| match server {
        Value::Object(settings) => {
            let kept = settings.into_iter().filter(|(name, _)| !SECRET.contains(&name.as_str()));
            Value::Object(kept.collect())
        }
        other => other,
    };
    match servers {
        Value::Object(servers) => {
            let servers: Map<_, _> =
                servers.into_iter().map(|(name, server)| (name, clean(server))).collect();
            Value::Object(servers)
        }
        Value::Array(servers) => Value::Array(servers.into_iter().map(clean).collect()),
        other => other,
    }
}
