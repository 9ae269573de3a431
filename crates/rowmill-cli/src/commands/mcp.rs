//! `rowmill mcp`: signs in to MCP servers, and out.

use std::time::Duration;

use clap::{Args, Subcommand};
use rowmill::{ConfigFile, ExitCode, McpLogin, Problem, ProblemCode, mcp_login, mcp_logout};

use crate::browser::{self, PATIENCE};
use crate::printer;
use crate::resolve::current_folder;
use crate::surroundings::environment;
use crate::values::duration;

/// Sign in to MCP servers, and out.
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

/// Sign in to an MCP server with a browser, and keep its tokens for runs.
///
/// Prints an address to open; where there is a screen, a browser is opened too. The tokens are kept
/// in a file that only you can read, and renewed when they run out.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rowmill mcp login https://example.com/mcp\n  rowmill mcp login docs --scope read"
)]
struct LoginFlags {
    /// The address of the server, or its name in `rowmill.toml`.
    #[arg(value_name = "SERVER")]
    server: String,

    /// What to ask for, in place of what the server says; can be repeated.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,

    /// How long to wait for the browser [default: 5m].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
}

/// Forget the tokens of an MCP server.
#[derive(Debug, Args)]
struct LogoutFlags {
    /// The address of the server, or its name in `rowmill.toml`.
    #[arg(value_name = "SERVER")]
    server: String,
}

/// Runs the command.
pub(crate) fn mcp(flags: McpFlags) -> Result<ExitCode, Problem> {
    let config = ConfigFile::find(&current_folder())?;
    match flags.command {
        McpCommand::Login(LoginFlags { server, scope, wait }) => {
            let login = McpLogin { server, scopes: scope, patience: wait.unwrap_or(PATIENCE) };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| {
                Problem::new(ProblemCode::Internal, "the runtime could not be started").cause(error)
            })?;
            let url = runtime.block_on(mcp_login(&login, &config, environment(), show))?;
            printer::talk(&format!("signed in to {url}"));
        }
        McpCommand::Logout(LogoutFlags { server }) => {
            let text = match mcp_logout(&server, &config, environment())? {
                true => "signed out: the tokens are forgotten",
                false => "there were no tokens",
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
