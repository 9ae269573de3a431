//! Signing in to MCP servers with a browser, and signing out.

use std::path::PathBuf;
use std::time::Duration;

use rowmill_core::known_secrets::strip_address_secrets;
use rowmill_http::{ProxySettings, Url};
use rowmill_tools::{AuthorizationSettings, begin_sign_in, forget_tokens, token_path};
use rowmill_types::{Problem, ProblemCode};

use crate::config::ConfigFile;
use crate::environment::RunEnvironment;

/// The parameters of a sign-in to an MCP server.
#[derive(Debug, Clone)]
pub struct McpLoginSpec {
    /// An address, or the name of a server in the configuration.
    pub server: String,
    /// The scopes to request; if empty, the server decides.
    pub scopes: Vec<String>,
    /// How long to wait for the browser.
    pub patience: Duration,
}

/// Signs in to an MCP server: `show` receives the address that the user opens in a browser, and the
/// tokens are stored in a file that only its owner can read.
///
/// Returns the address of the server in a form that may be displayed.
///
/// # Errors
///
/// The server is not known, does not support signing in, or nobody signed in within the time.
pub async fn mcp_login(
    login: &McpLoginSpec,
    config: &ConfigFile,
    environment: &RunEnvironment,
    show: impl FnOnce(&str),
) -> Result<String, Problem> {
    let url = server_address(&login.server, config)?;
    let file = token_file(&url, environment).ok_or_else(no_folder)?;
    let proxies = ProxySettings::from_variables(&environment.lookup());
    let settings = AuthorizationSettings { proxies, ..AuthorizationSettings::default() };
    let begun = begin_sign_in(&url, &file, &login.scopes, settings).await?;
    show(begun.address());
    begun.finish(login.patience).await?;
    Ok(strip_address_secrets(&url))
}

/// Deletes the tokens of an MCP server; returns whether there were any.
///
/// # Errors
///
/// The server is not known, or the tokens cannot be removed.
pub fn mcp_logout(server: &str, config: &ConfigFile, environment: &RunEnvironment) -> Result<bool, Problem> {
    let url = server_address(server, config)?;
    forget_tokens(&token_file(&url, environment).ok_or_else(no_folder)?)
}

/// The path of the file for the tokens of a server, whether it exists or not.
pub(crate) fn token_file(url: &str, environment: &RunEnvironment) -> Option<PathBuf> {
    let set =
        |name: &str| environment.variable(name).filter(|value| !value.trim().is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(token_path(&state.join("rowmill/mcp"), url))
}

fn server_address(server: &str, config: &ConfigFile) -> Result<String, Problem> {
    let is_address = |text: &&str| Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if is_address(&server) {
        return Ok(server.to_owned());
    }
    let servers = &config.config.mcp.servers;
    let Some(entry) = servers.get(server) else {
        let known: Vec<&str> = servers.keys().map(String::as_str).collect();
        let hint = match known.is_empty() {
            true => "use its URL, such as `https://example.com/mcp`".to_owned(),
            false => format!("use its URL, or one of: {}", known.join(", ")),
        };
        let message = format!("`rowmill.toml` has no MCP server `{server}`");
        return Err(Problem::new(ProblemCode::InvalidConfig, message).hint(hint));
    };
    let url = entry.url.as_deref().or(entry.target.as_deref()).map(str::trim).filter(is_address);
    url.map(str::to_owned).ok_or_else(|| {
        let message = format!("the MCP server `{server}` is a process, so it needs no sign-in");
        Problem::new(ProblemCode::InvalidConfig, message).hint("pass its credentials in `env`")
    })
}

fn no_folder() -> Problem {
    let message = "no folder for tokens: neither `HOME` nor `XDG_STATE_HOME` is set";
    Problem::new(ProblemCode::InvalidConfig, message).hint("set `XDG_STATE_HOME`")
}
