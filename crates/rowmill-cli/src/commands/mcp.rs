//! `rowmill mcp`: sign in to MCP servers, and out.

use std::io::IsTerminal;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::{Args, Subcommand};
use rowmill::{ConfigFile, ExitCode, McpLogin, Problem, ProblemCode, environment, mcp_login, mcp_logout};

use crate::printer;
use crate::resolve::current_folder;
use crate::values::duration;

/// How long the browser is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

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
            let url = runtime.block_on(mcp_login(&login, &config, show))?;
            printer::talk(&format!("signed in to {url}"));
        }
        McpCommand::Logout(LogoutFlags { server }) => {
            let text = match mcp_logout(&server, &config)? {
                true => "signed out: the tokens are forgotten",
                false => "there were no tokens",
            };
            printer::talk(text);
        }
    }
    Ok(ExitCode::Ok)
}

/// Shows the address that a person opens, and opens it where that is possible.
fn show(address: &str) {
    printer::talk(&format!("open this address to sign in:\n{address}"));
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| environment(name).is_some());
    let opener = match (cfg!(target_os = "macos"), has_screen) {
        (true, _) => "open",
        (false, true) => "xdg-open",
        (false, false) => return,
    };
    if std::io::stderr().is_terminal() {
        let mut command = Command::new(opener);
        // Whether it works or not, the address is on the screen.
        drop(command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn());
    }
}
