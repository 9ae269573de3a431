//! The settings of a server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rowmill_types::Secret;

use super::name_filter::NameFilter;
use super::single_file_servers::single_file_package;
use super::view::ServerView;

/// An MCP server of a run.
#[derive(Debug, Clone)]
pub struct McpServerSettings {
    /// Its name; the names of its tools start with it.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Which version of the protocol is used.
    pub protocol: McpProtocolChoice,
    /// Which of its tools are offered.
    pub tools: NameFilter,
    /// Which of its resources can be read; a tool for that is offered only if the filter admits any.
    pub resources: NameFilter,
    /// Which of its prompts can be fetched; a tool for that is offered only if the filter admits any.
    pub prompts: NameFilter,
    /// The views of agents that see something else than these three filters select.
    pub views: Vec<ServerView>,
    /// Whether every row gets a connection of its own, and over stdio a process of its own.
    pub per_row: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long it may take until the server has reported what it offers.
    pub start_timeout: Duration,
    /// Which tools may run twice.
    pub idempotent: IdempotentTools,
    /// Whether its instructions are for the model; otherwise [`super::McpHost::instructions`] leaves them out.
    pub instructions: bool,
    /// How a lost connection is made again.
    pub reconnect: ReconnectPolicy,
    /// How many calls run at once, over all rows.
    pub max_parallel: McpParallelLimit,
    /// The values that environment variables inserted into the settings; messages do not show them.
    pub from_variables: Vec<Secret>,
    /// How a user can authorize rowmill.
    pub sign_in: SignInMethod,
    /// The file for the tokens of a sign-in, which may not exist yet; without it signing in is impossible.
    pub tokens: Option<PathBuf>,
}

/// How many calls of a server run at once, over all rows and all its connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum McpParallelLimit {
    /// Not set: no limit, but one at a time if the server is known to use a file that parallel calls would
    /// damage.
    #[default]
    NotSet,
    /// This many.
    Calls(usize),
    /// This many of the tools that match a name or pattern, taken together.
    ByTool(Vec<(String, usize)>),
}

/// How a user can authorize rowmill at a server; used in messages about rejected requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignInMethod {
    /// By signing in with a browser.
    #[default]
    Browser,
    /// With a Hugging Face access token.
    HuggingFace,
}

impl McpServerSettings {
    /// A server with the default settings.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            protocol: McpProtocolChoice::Auto,
            tools: NameFilter::Everything,
            resources: NameFilter::Nothing,
            prompts: NameFilter::Nothing,
            views: Vec::new(),
            per_row: false,
            timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(60),
            idempotent: IdempotentTools::ByServer,
            instructions: true,
            reconnect: ReconnectPolicy::default(),
            max_parallel: McpParallelLimit::NotSet,
            from_variables: Vec::new(),
            sign_in: SignInMethod::default(),
            tokens: None,
        }
    }

    /// The package of the server, if it is known to use a file that parallel calls would damage.
    #[must_use]
    pub fn parallel_unsafe_package(&self) -> Option<&'static str> {
        match &self.transport {
            McpTransport::Stdio { command, args, .. } => {
                single_file_package(std::iter::once(command).chain(args).map(String::as_str))
            }
            McpTransport::Http { .. } => None,
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum McpTransport {
    /// A process that rowmill starts and communicates with over standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its own variables, besides the few that every server gets.
        env: BTreeMap<String, Secret>,
        /// Its working folder; rowmill's by default.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, Secret>,
        /// How to obtain a token, if one is needed that is not among the headers.
        auth: Option<ClientCredentials>,
    },
}

impl McpTransport {
    /// The command line or the URL in full: it may contain secrets.
    #[must_use]
    pub fn address_text(&self) -> String {
        match self {
            Self::Stdio { command, args, .. } => {
                let words = std::iter::once(command).chain(args).map(String::as_str);
                words.collect::<Vec<_>>().join(" ")
            }
            Self::Http { url, .. } => url.clone(),
        }
    }
}

/// A client-credentials grant: the server's authorization server issues a token for an id and a secret,
/// without a user.
#[derive(Debug, Clone)]
pub struct ClientCredentials {
    /// The id of the client.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// The requested scopes.
    pub scopes: Vec<String>,
}

/// Which version of the protocol is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum McpProtocolChoice {
    /// The handshake that every server knows, or the newer protocol if the server rejects it.
    #[default]
    Auto,
    /// Only the newer protocol without a handshake (2026-07-28 and later).
    Modern,
    /// Only the protocol with the handshake.
    Legacy,
}

/// Which tools may run twice, so that they are called again if a connection breaks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum IdempotentTools {
    /// Those that, according to the server, only read or have no further effect the second time.
    #[default]
    ByServer,
    /// All.
    All,
    /// None.
    None,
    /// Those that one of these names or patterns matches.
    Only(Vec<String>),
}

/// How a lost connection is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// The number of attempts; the first is made immediately.
    pub tries: u32,
    /// The wait before the second attempt; it doubles with each attempt.
    pub first_wait: Duration,
    /// The longest wait between two attempts.
    pub longest_wait: Duration,
    /// How long calls fail immediately after all attempts failed.
    pub pause: Duration,
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            tries: 6,
            first_wait: Duration::from_millis(250),
            longest_wait: Duration::from_secs(5),
            pause: Duration::from_secs(15),
        }
    }
}
