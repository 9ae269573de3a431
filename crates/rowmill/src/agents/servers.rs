//! The MCP servers of a run: those of the configuration that a card uses, and those that cards define.

use std::collections::BTreeMap;
use std::path::Path;

use rowmill_cards::{AgentCard, CardMcpServer, join_problems};
use rowmill_core::known_secrets::{
    address_secrets, argument_secrets, header_secrets, strip_value_from_type_error, variable_secrets,
};
use rowmill_tools::{
    McpServerConfig, McpServerSettings, McpTransport, NameFilter, ServerView, read_sign_in_tokens,
};
use rowmill_types::{Problem, ProblemCode, Secret};
use serde_json::Value;

use super::hugging_face::add_hub_token;
use super::server_entry::complete_server_config;
use crate::environment::RunEnvironment;
use crate::mcp_login::token_file;
use crate::work_spec::WorkSpec;

/// The servers of the agents.
pub(super) struct AgentServers {
    /// Each server once.
    pub(super) all: Vec<McpServerSettings>,
    /// The servers that each agent uses, with its view of them, by agent.
    pub(super) views_by_agent: Vec<Vec<(String, ServerView)>>,
}

/// The servers that at least one agent needs.
pub(super) fn resolve_servers(
    spec: &WorkSpec,
    members: &[&AgentCard],
    from_variables: &[Secret],
    environment: &RunEnvironment,
) -> Result<AgentServers, Problem> {
    let mut found: BTreeMap<String, (McpServerSettings, Option<&AgentCard>)> = BTreeMap::new();
    let mut brought: BTreeMap<(&str, &str), ServerView> = BTreeMap::new();
    check_servers_defined(spec, members)?;
    for card in members {
        for name in &card.servers {
            if let Some(config) = spec.agents.servers.get(name).filter(|_| !found.contains_key(name)) {
                let server = server(spec, config, (name, &spec.agents.config_folder), environment)?;
                found.insert(name.clone(), (server, None));
            }
        }
        for connect in &card.mcp_connect {
            let config = server_config_of_card(card, connect)?;
            let config = match spec.agents.servers.get(&connect.name) {
                Some(entry) => {
                    complete_server_config(card, config, (&connect.name, entry, &spec.agents.config_folder))?
                }
                None => config,
            };
            let made = server(spec, &config, (&connect.name, Path::new("")), environment);
            let mut server = made.map_err(|problem| {
                let place =
                    card.problem_at(("mcp_connect", &connect.name), problem.message.with_mention_markers());
                Problem { message: place.message, ..problem }
            })?;
            server.from_variables.extend_from_slice(from_variables);
            brought.insert((&card.name, &connect.name), server.default_view());
            // Another card may define the same server with a different filter.
            server.tools = NameFilter::Everything;
            (server.resources, server.prompts) = (NameFilter::Nothing, NameFilter::Nothing);
            match found.get(&connect.name) {
                None => drop(found.insert(connect.name.clone(), (server, Some(card)))),
                Some((same, _)) if same.transport.address_text() == server.transport.address_text() => {}
                Some((_, other)) => {
                    let whose = other.map_or("the configuration", |card| card.source.as_str());
                    let message = format!(
                        "two MCP servers have the name `{}`: one of `{}` and one of `{whose}`",
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
            let view = narrowed(card, name, own.unwrap_or_else(|| server.default_view()));
            server.views.push(view.clone());
            views.push((name.to_owned(), view));
        }
        seen.push(views);
    }
    Ok(AgentServers { all: found.into_values().map(|(server, _)| server).collect(), views_by_agent: seen })
}

/// The settings of a server that a card defines itself.
fn server_config_of_card(card: &AgentCard, connect: &CardMcpServer) -> Result<McpServerConfig, Problem> {
    serde_json::from_value(Value::Object(connect.settings.clone())).map_err(|error| {
        let message = format!("the MCP server `{}` cannot be used", connect.name);
        card.problem_at(("mcp_connect", &connect.name), message)
            .cause(strip_value_from_type_error(&error.to_string()))
            .hint("docs/mcp.md lists its settings")
    })
}

fn server_names(card: &AgentCard) -> impl Iterator<Item = &str> {
    let brought = card.mcp_connect.iter().map(|own| own.name.as_str());
    card.servers.iter().map(String::as_str).chain(brought)
}

/// A card's view of a server: what the card lists, or else what the entry lists.
fn narrowed(card: &AgentCard, server: &str, entry: ServerView) -> ServerView {
    let listed = |filter: &rowmill_cards::ServerItemFilters| {
        let found = filter.iter().find(|(name, _)| name == server);
        found.map(|(_, names)| NameFilter::Only(names.clone()))
    };
    ServerView {
        tools: listed(&card.tools).unwrap_or(entry.tools),
        resources: listed(&card.resources).unwrap_or(entry.resources),
        prompts: listed(&card.prompts).unwrap_or(entry.prompts),
    }
}

/// Reports all servers that cards use and nothing defines, in one problem.
pub(super) fn check_servers_defined(spec: &WorkSpec, members: &[&AgentCard]) -> Result<(), Problem> {
    let known: Vec<&str> = spec.agents.servers.keys().map(String::as_str).collect();
    let mut problems = Vec::new();
    let mut missing: Vec<&str> = Vec::new();
    for card in members {
        for name in card.servers.iter().filter(|name| !known.contains(&name.as_str())) {
            let message = format!("uses the MCP server `{name}`, which is not in the configuration");
            problems.push(card.problem_at(("servers", name), message));
            if !missing.contains(&name.as_str()) {
                missing.push(name);
            }
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let tables: Vec<String> = missing.iter().map(|name| format!("`[mcp.servers.{name}]`")).collect();
    let mut hint = format!(
        "define it in `rowmill.toml` as {}, or in the card with `mcp_connect`; a `fast-agent.yaml` next to \
         the card is also read",
        tables.join(" and ")
    );
    if !known.is_empty() {
        hint.push_str(&format!("; defined: {}", known.join(", ")));
    }
    Err(join_problems(problems.into_iter().map(|problem| problem.hint(hint.clone())).collect()))
}

/// The server with this name; without a timeout of its own, the timeout of all tools applies.
fn server(
    spec: &WorkSpec,
    config: &McpServerConfig,
    (name, folder): (&str, &Path),
    environment: &RunEnvironment,
) -> Result<McpServerSettings, Problem> {
    let mut server = config.resolve_server(Some(name), folder, &environment.lookup())?;
    if config.timeout.is_none() {
        server.timeout = spec.agents.tool_timeout;
    }
    add_hub_token(&mut server, &environment.fetch_settings().hub);
    if let McpTransport::Http { url, .. } = &server.transport {
        server.tokens = token_file(url, environment);
    }
    Ok(server)
}

/// Secrets, which must not appear in any file.
pub(super) fn server_secrets(servers: &[McpServerSettings]) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for server in servers {
        match &server.transport {
            // Most variables are settings, and hiding `production` would garble every trace.
            McpTransport::Stdio { env, args, .. } => {
                secrets.extend(env.iter().flat_map(|(name, value)| variable_secrets(name, value.reveal())));
                secrets.extend(argument_secrets(args));
            }
            McpTransport::Http { headers, auth, url } => {
                for (name, value) in headers {
                    let value = value.reveal();
                    secrets.extend(header_secrets(name, value));
                    let given = |from: &&Secret| !from.reveal().is_empty() && value.contains(from.reveal());
                    secrets.extend(server.from_variables.iter().filter(given).cloned());
                }
                secrets.extend(address_secrets(url));
                secrets.extend(auth.as_ref().map(|auth| auth.client_secret.clone()));
            }
        }
        secrets.extend(server.tokens.as_deref().map(read_sign_in_tokens).unwrap_or_default());
    }
    secrets
}
