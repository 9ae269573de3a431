//! The MCP servers of a run: those of the configuration that a card uses, and those that cards bring.

use std::collections::BTreeMap;
use std::path::Path;

use rowmill_cards::Card;
use rowmill_tools::{Filter, McpServer, McpServerConfig, Transport, View};
use rowmill_types::{Problem, ProblemCode, Secret};
use serde_json::Value;

use crate::environment::{environment, is_secret};
use crate::work::WorkSpec;

/// The servers of the members.
pub(super) struct Servers {
    /// Each once.
    pub(super) all: Vec<McpServer>,
    /// What each member sees of those that it uses, by member.
    pub(super) seen: Vec<Vec<(String, View)>>,
}

/// The servers that some member needs.
pub(super) fn servers(spec: &WorkSpec, members: &[&Card]) -> Result<Servers, Problem> {
    let mut found: BTreeMap<String, (McpServer, Option<&Card>)> = BTreeMap::new();
    let mut brought: BTreeMap<(&str, &str), View> = BTreeMap::new();
    for card in members {
        for name in &card.servers {
            if !found.contains_key(name) {
                found.insert(name.clone(), (configured(spec, card, name)?, None));
            }
        }
        for connect in &card.mcp_connect {
            let config: McpServerConfig = serde_json::from_value(Value::Object(connect.settings.clone()))
                .map_err(|error| {
                    let message =
                        format!("`{}`: the MCP server `{}` cannot be used", card.source, connect.name);
                    Problem::new(ProblemCode::InvalidCard, message)
                        .cause(error)
                        .hint("docs/mcp.md lists its settings")
                })?;
            let mut server = server(spec, &config, &connect.name, Path::new(""))?;
            brought.insert((&card.name, &connect.name), server.view());
            // Another card may bring the same server and want something else of it.
            server.tools = Filter::Everything;
            (server.resources, server.prompts) = (Filter::Nothing, Filter::Nothing);
            match found.get(&connect.name) {
                None => {
                    found.insert(connect.name.clone(), (server, Some(card)));
                }
                Some((same, _)) if same.transport.place() == server.transport.place() => {}
                Some((_, other)) => {
                    let whose = other.map_or("the configuration", |card| card.source.as_str());
                    let message = format!(
                        "two MCP servers are called `{}`: that of `{}` and that of `{whose}`",
                        connect.name, card.source
                    );
                    return Err(Problem::new(ProblemCode::InvalidCard, message).hint("rename one of them"));
                }
            }
        }
    }
    let mut seen = Vec::new();
    for card in members {
        let mut views = Vec::new();
        for name in server_names(card) {
            let Some((server, _)) = found.get_mut(name) else { continue };
            let own = brought.get(&(card.name.as_str(), name)).cloned();
            let view = narrowed(card, name, own.unwrap_or_else(|| server.view()));
            server.views.push(view.clone());
            views.push((name.to_owned(), view));
        }
        seen.push(views);
    }
    Ok(Servers { all: found.into_values().map(|(server, _)| server).collect(), seen })
}

fn server_names(card: &Card) -> impl Iterator<Item = &str> {
    let brought = card.mcp_connect.iter().map(|own| own.name.as_str());
    card.servers.iter().map(String::as_str).chain(brought)
}

/// What a card sees of a server: what it lists, and where it lists nothing what the entry says.
fn narrowed(card: &Card, server: &str, entry: View) -> View {
    let listed = |filter: &rowmill_cards::Filter| {
        let found = filter.iter().find(|(name, _)| name == server);
        found.map(|(_, names)| Filter::Only(names.clone()))
    };
    View {
        tools: listed(&card.tools).unwrap_or(entry.tools),
        resources: listed(&card.resources).unwrap_or(entry.resources),
        prompts: listed(&card.prompts).unwrap_or(entry.prompts),
    }
}

fn configured(spec: &WorkSpec, card: &Card, name: &str) -> Result<McpServer, Problem> {
    let Some(config) = spec.agents.servers.get(name) else {
        let known: Vec<&str> = spec.agents.servers.keys().map(String::as_str).collect();
        let message =
            format!("`{}` uses the MCP server `{name}`, which `rowmill.toml` does not have", card.source);
        let hint = match known.is_empty() {
            true => format!("put it there as `[mcp.servers.{name}]`, or into the card with `mcp_connect`"),
            false => format!("it has: {}", known.join(", ")),
        };
        return Err(Problem::new(ProblemCode::InvalidCard, message).hint(hint));
    };
    server(spec, config, name, &spec.agents.config_folder)
}

/// The server that is meant; where nothing is said of its time, that of all tools counts.
fn server(
    spec: &WorkSpec,
    config: &McpServerConfig,
    name: &str,
    folder: &Path,
) -> Result<McpServer, Problem> {
    let mut server = config.server(Some(name), folder, &environment)?;
    if config.timeout.is_none() {
        server.timeout = spec.agents.tool_timeout;
    }
    Ok(server)
}

/// What must be in no file.
pub(super) fn secrets(servers: &[McpServer]) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for server in servers {
        match &server.transport {
            // Most variables are settings, and hiding `production` would garble every trace.
            Transport::Stdio { env, .. } => {
                secrets
                    .extend(env.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.clone()));
            }
            Transport::Http { headers, auth, .. } => {
                for value in headers.values() {
                    secrets.extend(value.reveal().strip_prefix("Bearer ").map(Secret::new));
                    secrets.push(value.clone());
                }
                secrets.extend(auth.as_ref().map(|auth| auth.client_secret.clone()));
            }
        }
    }
    secrets
}
