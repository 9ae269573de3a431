//! What a server is and how it is treated.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rowmill_types::Secret;

use super::filter::Filter;
use super::one_file::known_package;
use super::view::View;

/// An MCP server of a run.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// Its name; the tools that it offers begin with it.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// Which era of the protocol is spoken.
    pub protocol: ProtocolMode,
    /// Which of its tools are offered.
    pub tools: Filter,
    /// Which of its resources can be read; unless it lets something through, no tool for that
    /// is offered.
    pub resources: Filter,
    /// Which of its prompts can be fetched; unless it lets something through, no tool for that
    /// is offered.
    pub prompts: Filter,
    /// What agents are offered that see something else of it than these three say.
    pub views: Vec<View>,
    /// Whether every row gets a connection of its own, and over stdio a process of its own.
    pub per_row: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long it may take until the server has told what it offers.
    pub start_timeout: Duration,
    /// Which tools may run twice.
    pub idempotent: Idempotent,
    /// Whether its instructions are for the model; [`super::Mcp::instructions`] keeps them back
    /// otherwise.
    pub instructions: bool,
    /// How a lost connection is made anew.
    pub reconnect: Reconnect,
    /// How many calls are made at once, over all rows.
    pub max_parallel: MaxParallel,
    /// What variables of the environment put into the settings; messages do not show it.
    pub from_variables: Vec<Secret>,
    /// How a person lets it know who asks.
    pub sign_in: SignIn,
    /// The file for the tokens of a sign-in, whether it is there or not; without it nobody can sign in.
    pub tokens: Option<PathBuf>,
}

/// How many calls of a server are made at once, over all rows and all its connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MaxParallel {
    /// Nobody says: as many as come, but one where the server is known to keep a file that calls
    /// at once would damage.
    #[default]
    Unsaid,
    /// So many.
    Calls(usize),
    /// So many of the tools that a name or pattern matches, taken together.
    ByTool(Vec<(String, usize)>),
}

/// How a person lets a server know who asks, for what is said when it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignIn {
    /// In a browser.
    #[default]
    Browser,
    /// With an access token of Hugging Face.
    HuggingFace,
}

impl McpServer {
    /// A server with the usual settings.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            protocol: ProtocolMode::Auto,
            tools: Filter::Everything,
            resources: Filter::Nothing,
            prompts: Filter::Nothing,
            views: Vec::new(),
            per_row: false,
            timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(60),
            idempotent: Idempotent::ByServer,
            instructions: true,
            reconnect: Reconnect::default(),
            max_parallel: MaxParallel::Unsaid,
            from_variables: Vec::new(),
            sign_in: SignIn::default(),
            tokens: None,
        }
    }

    /// The package of the server, if it is one that is known to keep a file that calls at once would
    /// damage.
    #[must_use]
    pub fn keeps_one_file(&self) -> Option<&'static str> {
        match &self.transport {
            Transport::Stdio { command, args, .. } => {
                known_package(std::iter::once(command).chain(args).map(String::as_str))
            }
            Transport::Http { .. } => None,
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Transport {
    /// A process that is started, and spoken with over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables for it, besides the few that every server gets.
        env: BTreeMap<String, Secret>,
        /// The folder that it starts in; that of rowmill unless given.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, Secret>,
        /// How a token is got, where one is needed that is not among the headers.
        auth: Option<OAuth>,
    },
}

impl Transport {
    /// Whether a header lets the server know who asks.
    pub(super) fn says_who_asks(&self) -> bool {
        match self {
            Self::Stdio { .. } => false,
            Self::Http { headers, .. } => {
                headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
            }
        }
    }

    /// The command line or the address, whole: it may hold secrets.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Self::Stdio { command, args, .. } => {
                let words = std::iter::once(command).chain(args).map(String::as_str);
                words.collect::<Vec<_>>().join(" ")
            }
            Self::Http { url, .. } => url.clone(),
        }
    }
}

/// A client-credentials grant: the server's authorization server gives a token for an id and a
/// secret, without a person.
#[derive(Debug, Clone)]
pub struct OAuth {
    /// The id of the client.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// What is asked for.
    pub scopes: Vec<String>,
}

/// Which era of the protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtocolMode {
    /// The handshake that every server knows, and where it is refused the newer way.
    #[default]
    Auto,
    /// Only the newer way without a handshake (2026-07-28 and later).
    Modern,
    /// Only the handshake.
    Legacy,
}

/// Which tools may run twice, so that they are called again when a connection broke.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Idempotent {
    /// Those that the server says only read, or change nothing more the second time.
    #[default]
    ByServer,
    /// All.
    All,
    /// None.
    None,
    /// Those that one of these names or patterns matches.
    Only(Vec<String>),
}

/// How a lost connection is made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// How often it is tried; the first time at once.
    pub tries: u32,
    /// The wait before the second try; it doubles from try to try.
    pub first_wait: Duration,
    /// The longest wait between two tries.
    pub longest_wait: Duration,
    /// How long calls fail at once after all tries failed.
    pub pause: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            tries: 6,
            first_wait: Duration::from_millis(250),
            longest_wait: Duration::from_secs(5),
            pause: Duration::from_secs(15),
        }
    }
}

impl Reconnect {
    /// The wait before a try, counted from 0.
    pub(super) fn wait(&self, made: u32) -> Duration {
        let Some(doublings) = made.checked_sub(1) else { return Duration::ZERO };
        self.first_wait.saturating_mul(2_u32.saturating_pow(doublings)).min(self.longest_wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let reconnect = Reconnect::default();
        let waits: Vec<_> = (0..8).map(|made| reconnect.wait(made).as_millis()).collect();
        assert_eq!(waits, [0, 250, 500, 1000, 2000, 4000, 5000, 5000]);
    }
}
