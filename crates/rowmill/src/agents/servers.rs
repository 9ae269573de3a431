//! The MCP servers of a run: those of the configuration that a card uses, and those that cards bring.

use std::collections::BTreeMap;
use std::path::Path;

use rowmill_cards::Card;
use rowmill_tools::{Filter, McpServer, McpServerConfig, Transport};
use rowmill_types::{Problem, ProblemCode, Secret};
use serde_json::Value;

use crate::environment::environment;
use crate::spec::RunSpec;

/// The servers that some member needs, each once.
pub(super) fn servers(spec: &RunSpec, members: &[&Card]) -> Result<Vec<McpServer>, Problem> {
    let mut found: BTreeMap<String, (McpServer, Option<&Card>)> = BTreeMap::new();
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
            let server = server(spec, &config, &connect.name, Path::new(""))?;
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
    let mut servers: Vec<McpServer> = found.into_values().map(|(server, _)| server).collect();
    for server in &mut servers {
        widen(server, members);
    }
    Ok(servers)
}

/// A server lists what any of its cards wants; what a card does not want, it is not offered.
fn widen(server: &mut McpServer, members: &[&Card]) {
    let wanted = |filters: &dyn Fn(&Card) -> &rowmill_cards::Filter| {
        let all = members.iter().flat_map(|card| filters(card));
        let names: Vec<String> =
            all.filter(|(name, _)| *name == server.name).flat_map(|(_, names)| names.clone()).collect();
        names
    };
    let (resources, prompts) = (wanted(&|card| &card.resources), wanted(&|card| &card.prompts));
    for (filter, names) in [(&mut server.resources, resources), (&mut server.prompts, prompts)] {
        match filter {
            _ if names.is_empty() => {}
            Filter::Only(known) => known.extend(names),
            Filter::Nothing => *filter = Filter::Only(names),
            Filter::Everything => {}
        }
    }
}

fn configured(spec: &RunSpec, card: &Card, name: &str) -> Result<McpServer, Problem> {
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
fn server(spec: &RunSpec, config: &McpServerConfig, name: &str, folder: &Path) -> Result<McpServer, Problem> {
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
            Transport::Stdio { env, .. } => secrets.extend(env.values().cloned()),
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
