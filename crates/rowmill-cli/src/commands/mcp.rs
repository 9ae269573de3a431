//! `rowmill mcp`: signs in to MCP servers, and out.

use std::time::Duration;

use clap::{Args, Subcommand};
use rowmill::{ConfigFile, ExitCode, McpLoginSpec, Problem, ProblemCode, mcp_login, mcp_logout};

use crate::browser::{self, PATIENCE};
use crate::flag_values::parse_duration;
use crate::printer;
use crate::process_environment::process_environment;
use crate::resolve::config_search_folder;

/// Sign in to MCP servers, and sign out.
#[derive(Debug, Args)]
pub(crate) struct McpFlags {
    #[command(subcommand)]
    command: McpCommand,
}

/// What can be done with MCP servers.
#[derive(Debug, Subcommand)]
enum McpCommand {
    Login(LoginFlags),
    Logout(LogoutFlags),
}

/// Sign in to an MCP server with a browser and store its tokens for later runs.
///
/// Prints an address to open, and opens it in a browser if there is a screen. The tokens are stored
/// in a file that only you can read, and are renewed when they expire.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rowmill mcp login https://example.com/mcp\n  rowmill mcp login docs --scope read"
)]
struct LoginFlags {
    /// URL of the server, or its name in `rowmill.toml`.
    #[arg(value_name = "SERVER")]
    server: String,

    /// Scope to request, instead of the scopes that the server names; repeatable.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,

    /// How long to wait for the sign-in [default: 5m].
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    wait: Option<Duration>,
}

/// Delete the stored tokens of an MCP server.
#[derive(Debug, Args)]
struct LogoutFlags {
    /// URL of the server, or its name in `rowmill.toml`.
    #[arg(value_name = "SERVER")]
    server: String,
}

/// Runs the command.
pub(crate) fn mcp(flags: McpFlags) -> Result<ExitCode, Problem> {
    let config = ConfigFile::find(&config_search_folder())?;
    match flags.command {
        McpCommand::Login(LoginFlags { server, scope, wait }) => {
            let login = McpLoginSpec { server, scopes: scope, patience: wait.unwrap_or(PATIENCE) };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| {
                Problem::new(ProblemCode::Internal, "cannot start the runtime").cause(error)
            })?;
            let url = runtime.block_on(mcp_login(&login, &config, process_environment(), show))?;
            printer::talk(&format!("signed in to {url}"));
        }
        McpCommand::Logout(LogoutFlags { server }) => {
            let text = match mcp_logout(&server, &config, process_environment())? {
                true => "signed out: the tokens were deleted",
                false => "not signed in: no tokens are stored",
            };
            printer::talk(text);
        }
    }
    Ok(ExitCode::Ok)
}

/// Prints the address for signing in, and opens it if possible.
fn show(address: &str) {
    printer::talk_as_it_is(&format!("open this address to sign in:\n{address}"));
    browser::open(address);
}
