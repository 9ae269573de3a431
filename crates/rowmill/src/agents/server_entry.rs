//! Completes an MCP server of a card from the configuration entry of the same name.

use std::path::Path;

use rowmill_cards::AgentCard;
use rowmill_http::Url;
use rowmill_tools::{McpProtocolMode, McpServerConfig};
use rowmill_types::{Problem, ProblemCode};

/// Merges a card's settings for a server with those of the configuration. The card's settings win.
///
/// # Errors
///
/// The entry has credentials that would go to an address that only a card from a remote source names.
pub(super) fn complete_server_config(
    card: &AgentCard,
    own: McpServerConfig,
    (name, entry, folder): (&str, &McpServerConfig, &Path),
) -> Result<McpServerConfig, Problem> {
    let mut whole = own;
    add_settings(&mut whole, entry);
    match (address(&whole), is_same_place(&whole, entry)) {
        // It is another server that happens to have the same name.
        (_, Some(false)) => return Ok(whole),
        (Some(url), None) if has_credentials(entry) && is_from_elsewhere(card) => {
            return Err(credentials_for_anyone(card, name, &url));
        }
        (Some(_), _) => add_credentials(&mut whole, entry),
        (None, _) => {
            for (variable, value) in &entry.env {
                whole.env.entry(variable.clone()).or_insert_with(|| value.clone());
            }
            if whole.cwd.is_none() {
                whole.cwd = entry.cwd.as_ref().map(|cwd| folder.join(cwd));
            }
            if whole.args.is_empty() && whole.command.is_some() && whole.command == entry.command {
                whole.args.clone_from(&entry.args);
            }
        }
    }
    Ok(whole)
}

/// Adds the settings that apply wherever the server is.
fn add_settings(whole: &mut McpServerConfig, entry: &McpServerConfig) {
    // Every field is listed here, so that none is forgotten when one is added.
    let McpServerConfig {
        protocol_mode,
        timeout,
        start_timeout,
        per_row,
        tools,
        resources,
        prompts,
        idempotent,
        include_instructions,
        max_parallel,
        from_variables,
        // The card defines where the server is.
        target: _,
        command: _,
        url: _,
        // The name and description of an entry are its own.
        name: _,
        description: _,
        // These depend on where the server is.
        args: _,
        env: _,
        cwd: _,
        headers: _,
        access_token: _,
        auth: _,
    } = entry;
    if whole.protocol_mode == McpProtocolMode::Auto {
        whole.protocol_mode = *protocol_mode;
    }
    whole.timeout = whole.timeout.take().or_else(|| timeout.clone());
    whole.start_timeout = whole.start_timeout.take().or_else(|| start_timeout.clone());
    whole.per_row |= per_row;
    whole.tools = whole.tools.take().or_else(|| tools.clone());
    whole.resources = whole.resources.take().or_else(|| resources.clone());
    whole.prompts = whole.prompts.take().or_else(|| prompts.clone());
    whole.idempotent = whole.idempotent.take().or_else(|| idempotent.clone());
    whole.include_instructions = whole.include_instructions.or(*include_instructions);
    whole.max_parallel = whole.max_parallel.take().or_else(|| max_parallel.clone());
    whole.from_variables.extend_from_slice(from_variables);
}

fn add_credentials(whole: &mut McpServerConfig, entry: &McpServerConfig) {
    let names: Vec<String> = whole.headers.keys().map(|name| name.to_ascii_lowercase()).collect();
    let says_who = whole.access_token.is_some() || whole.auth.is_some();
    let says_who = says_who || names.iter().any(|name| name == "authorization");
    if !says_who {
        whole.access_token.clone_from(&entry.access_token);
        whole.auth.clone_from(&entry.auth);
    }
    for (name, value) in &entry.headers {
        let lower = name.to_ascii_lowercase();
        let is_plain = names.contains(&lower) || (says_who && lower == "authorization");
        if !is_plain {
            whole.headers.insert(name.clone(), value.clone());
        }
    }
}

/// The address of a server on the network.
fn address(config: &McpServerConfig) -> Option<Url> {
    let text = config.url.as_deref().or(config.target.as_deref())?.trim();
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// Whether an entry has the same origin as the card's server, or both are programs; `None` if it names no
/// server.
fn is_same_place(own: &McpServerConfig, entry: &McpServerConfig) -> Option<bool> {
    if [&entry.command, &entry.url, &entry.target].into_iter().all(Option::is_none) {
        return None;
    }
    Some(match (address(own), address(entry)) {
        (Some(own), Some(entry)) => own.origin() == entry.origin(),
        (None, None) => true,
        _ => false,
    })
}

fn has_credentials(entry: &McpServerConfig) -> bool {
    !entry.headers.is_empty() || entry.access_token.is_some() || entry.auth.is_some()
}

fn is_from_elsewhere(card: &AgentCard) -> bool {
    card.source.contains("://") && !card.source.to_ascii_lowercase().starts_with("file://")
}

/// The problem of a fetched card, which must not be able to send a credential to any address.
fn credentials_for_anyone(card: &AgentCard, name: &str, url: &Url) -> Problem {
    let place = url.origin().ascii_serialization();
    let message = format!(
        "`{}` names an MCP server `{name}` at `{place}`, but the credentials in `[mcp.servers.{name}]` are \
         not bound to a URL",
        card.source
    );
    Problem::new(ProblemCode::InvalidCard, message)
        .hint(format!("add `url = \"{place}\"` to `[mcp.servers.{name}]` if they are meant for this server"))
}

#[cfg(test)]
mod tests {
    use rowmill_cards::{CardOrigin, UnparsedCard, parse_card};

    use super::*;

    #[test]
    fn a_card_from_elsewhere_cannot_send_a_credential_where_it_likes() {
        let card = |source: &str| {
            let text = "---\nmodel: passthrough\n---\nHi";
            parse_card(&UnparsedCard { source, text, origin: CardOrigin::Remote }).unwrap()
        };
        let own = || McpServerConfig { url: Some("https://elsewhere.test/mcp".into()), ..Default::default() };
        let entry = |url: Option<&str>| McpServerConfig {
            url: url.map(str::to_owned),
            access_token: Some("planted".into()),
            ..Default::default()
        };
        let token = |source: &str, url: Option<&str>| {
            complete_server_config(&card(source), own(), ("shop", &entry(url), Path::new("")))
                .map(|whole| whole.access_token)
        };
        let fetched = "hf://datasets/o/n/worker.md";
        let problem = token(fetched, None).unwrap_err();
        assert!(problem.message.contains("the credentials in `[mcp.servers.shop]` are not bound to a URL"));
        assert_eq!(problem.hint.unwrap().matches("url = \"https://elsewhere.test\"").count(), 1);
        assert_eq!(token(fetched, Some("https://shop.test/mcp")).unwrap(), None);
        for (source, url) in
            [(fetched, Some("https://elsewhere.test/")), ("worker.md", None), ("file:///c/worker.md", None)]
        {
            assert_eq!(token(source, url).unwrap().as_deref(), Some("planted"), "{source}");
        }
        assert_eq!(token("worker.md", Some("https://shop.test/mcp")).unwrap(), None);
    }
}
