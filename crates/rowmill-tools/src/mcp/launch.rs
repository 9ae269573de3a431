//! Makes a connection: starts the process or contacts the URL, and performs the handshake.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, serve_client_with_lifecycle};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthError;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rowmill_core::known_secrets::bare_addresses;
use rowmill_types::{Problem, ProblemCode};
use tokio::time::Instant;

use super::MAX_FRAME;
use super::access::Grant;
use super::call::chain;
use super::host::McpSettings;
use super::http::{self as post, Poster};
use super::pipe::Pipe;
use super::process::Process;
use super::sent::Sent;
use super::server::{McpServer, ProtocolMode, Transport};
use super::session::Session;
use super::shown::Shown;
use super::tail::Tail;

/// A server with everything that its connections share.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) server: McpServer,
    /// How messages show it.
    pub(super) shown: Shown,
    inherited: BTreeMap<String, String>,
    parallel: usize,
    http: Option<Network>,
    /// Until when calls fail immediately, and why, after the server could not be reached.
    outage: Mutex<Option<(Instant, String)>>,
}

#[derive(Debug)]
struct Network {
    client: reqwest::Client,
    grant: Option<Arc<Grant>>,
}

/// The reason that there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoStart {
    /// What happened; follows "the server `x` " in messages.
    pub(super) what: String,
    /// The server's output, or the network error.
    pub(super) cause: Option<String>,
    /// What may fix it.
    pub(super) remedy: Remedy,
}

/// What may fix a server that does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    Command,
    Address,
    Credential,
    /// The same, and signing in would be enough.
    SignIn,
    Patience,
    Protocol,
}

impl NoStart {
    fn new(what: impl Into<String>, remedy: Remedy) -> Self {
        Self { what: what.into(), cause: None, remedy }
    }

    /// The problem for a user who starts a run.
    pub(super) fn problem(self, Endpoint { server, shown, .. }: &Endpoint) -> Problem {
        let name = &server.name;
        let what = format!("the MCP server `{name}` {}: `{}`", shown.clean(&self.what), shown.place);
        let hint = match self.remedy {
            Remedy::Command => {
                "run the command in a shell to see its output; servers get only a few environment variables, \
                 so set those that it needs in `env`"
                    .to_owned()
            }
            Remedy::Address => "start the server or correct its `url`".to_owned(),
            Remedy::Credential | Remedy::SignIn => server.credential_hint(),
            Remedy::Patience => {
                format!("raise `start_timeout` of `{name}`, or check what the server is waiting for")
            }
            Remedy::Protocol => {
                "check that the command or URL is an MCP server; over HTTP, only streamable HTTP is supported"
                    .to_owned()
            }
        };
        let problem = Problem::new(ProblemCode::ToolServer, what).hint(hint);
        match self.cause {
            Some(cause) => problem.cause(shown.clean(&cause)),
            None => problem,
        }
    }
}

impl Endpoint {
    /// Prepares a server; nothing is started.
    ///
    /// # Errors
    ///
    /// A header cannot be sent.
    pub(super) fn new(server: McpServer, settings: &McpSettings) -> Result<Self, Problem> {
        let McpSettings { inherited, parallel, redactor, proxies, .. } = settings;
        let shown = Shown::new(&server, redactor.clone())?;
        let http = match &server.transport {
            Transport::Stdio { .. } => None,
            Transport::Http { url, headers, auth } => {
                let unusable = |what: String| Problem::new(ProblemCode::InvalidConfig, what);
                let mut map = HeaderMap::new();
                for (name, value) in headers {
                    let bad =
                        format!("the header `{name}` of the MCP server `{}` cannot be sent", server.name);
                    let (Ok(key), Ok(mut value)) =
                        (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value.reveal()))
                    else {
                        return Err(unusable(bad).hint("use visible ASCII characters for names and values"));
                    };
                    value.set_sensitive(true);
                    map.insert(key, value);
                }
                let setup = |error: String| unusable("cannot create an HTTP client".to_owned()).cause(error);
                let client = post::client(map, proxies).map_err(setup)?;
                let has_token = server.transport.says_who_asks();
                let signed_in = server.tokens.as_ref().filter(|file| !has_token && file.is_file());
                let grant = match (auth, signed_in) {
                    (Some(oauth), _) => Some(Grant::of_client(url, oauth, settings.authorization())),
                    (None, Some(file)) => Some(Grant::of_person(url, file, settings.authorization())),
                    (None, None) => None,
                };
                Some(Network { client, grant: grant.map(Arc::new) })
            }
        };
        let (inherited, parallel) = (inherited.clone(), *parallel);
        Ok(Self { server, shown, inherited, parallel, http, outage: Mutex::new(None) })
    }

    /// Makes a connection within the start timeout.
    pub(super) async fn open(&self) -> Result<Session, NoStart> {
        let modern =
            || ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        match self.server.protocol {
            ProtocolMode::Modern => self.open_with(modern()).await.map_err(|(failure, _)| failure),
            ProtocolMode::Legacy => {
                self.open_with(ClientLifecycleMode::Initialize).await.map_err(|(failure, _)| failure)
            }
            ProtocolMode::Auto => match self.open_with(ClientLifecycleMode::Initialize).await {
                Ok(session) => Ok(session),
                Err((failure, Handshake::Refused)) => self.open_with(modern()).await.map_err(|_| failure),
                Err((failure, Handshake::Failed)) => Err(failure),
            },
        }
    }

    async fn open_with(&self, mode: ClientLifecycleMode) -> Result<Session, (NoStart, Handshake)> {
        match (&self.http, &self.server.transport) {
            (Some(network), Transport::Http { url, .. }) => self.open_http(network, url, mode).await,
            _ => self.open_stdio(mode).await,
        }
    }

    async fn open_stdio(&self, mode: ClientLifecycleMode) -> Result<Session, (NoStart, Handshake)> {
        let started = Process::start(&self.server.transport, &self.inherited);
        let (mut process, stdin, stdout) = started.map_err(|error| {
            let mut failure = NoStart::new("cannot be started", Remedy::Command);
            failure.cause = Some(error.to_string());
            (failure, Handshake::Failed)
        })?;
        let (sent, talk) = (Sent::default(), Tail::default());
        let pipe = Pipe::new(stdin, stdout, sent.clone(), talk.clone());
        let serving = serve_client_with_lifecycle(guest(), pipe, mode);
        let (mut failure, handshake) = match tokio::time::timeout(self.server.start_timeout, serving).await {
            Ok(Ok(running)) => return Ok(Session::new(running, Some(process), sent)),
            Ok(Err(ClientInitializeError::JsonRpcError(error))) => {
                let what = format!("rejects the handshake ({})", error.message);
                (NoStart::new(what, Remedy::Protocol), Handshake::Refused)
            }
            Ok(Err(error)) => (self.silent(&process, &error).await, Handshake::Failed),
            Err(_) => (self.late(), Handshake::Failed),
        };
        process.bury().await;
        let said = [("standard error", process.last_words().await), ("standard output", talk.text())];
        let said = said
            .into_iter()
            .filter_map(|(where_to, text)| Some(format!("on {where_to} it printed:\n{}", text?)));
        let said: Vec<_> = failure.cause.take().into_iter().chain(said).collect();
        failure.cause = (!said.is_empty()).then(|| said.join("\n"));
        Err((failure, handshake))
    }

    /// Why a process did not answer the handshake properly.
    async fn silent(&self, process: &Process, error: &ClientInitializeError) -> NoStart {
        if let Some(ending) = process.ending().await {
            let mut failure = NoStart::new("exited before it answered", Remedy::Command);
            failure.cause = Some(ending);
            return failure;
        }
        let mut failure = NoStart::new("does not speak MCP", Remedy::Protocol);
        failure.cause = Some(chain(error));
        failure
    }

    fn late(&self) -> NoStart {
        let waited = self.server.start_timeout;
        NoStart::new(format!("did not answer within {}", seconds(waited)), Remedy::Patience)
    }

    async fn open_http(
        &self,
        network: &Network,
        url: &str,
        mode: ClientLifecycleMode,
    ) -> Result<Session, (NoStart, Handshake)> {
        let sent = Sent::default();
        let poster =
            Poster { client: network.client.clone(), grant: network.grant.clone(), sent: sent.clone() };
        let mut config = StreamableHttpClientTransportConfig::with_uri(url)
            .max_concurrent_requests(self.parallel)
            .max_sse_event_size(MAX_FRAME)
            .reinit_on_expired_session(false);
        let mut resuming = ExponentialBackoff::default();
        resuming.max_times = Some(3);
        config.retry_config = Arc::new(resuming);
        let transport = StreamableHttpClientTransport::with_client(poster, config);
        let serving = serve_client_with_lifecycle(guest(), transport, mode);
        match tokio::time::timeout(self.server.start_timeout, serving).await {
            Ok(Ok(running)) => Ok(Session::new(running, None, sent)),
            Ok(Err(error)) => Err(unreachable_because(&error)),
            Err(_) => Err((self.late(), Handshake::Failed)),
        }
    }

    /// The reason for a current outage.
    pub(super) fn outage(&self) -> Option<String> {
        let outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.as_ref().filter(|(until, _)| Instant::now() < *until).map(|(_, why)| why.clone())
    }

    /// Marks the server as unreachable: for a while calls fail immediately.
    pub(super) fn stays_away(&self, why: &str) {
        let until = Instant::now() + self.server.reconnect.pause;
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        *outage = Some((until, why.to_owned()));
    }
}

/// How the handshake failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handshake {
    /// The server understood and rejected it: it may support only the newer protocol.
    Refused,
    /// There was no answer.
    Failed,
}

/// How rowmill identifies itself. It offers nothing that a server could request: sampling is rejected,
/// questions to the user are declined, and there are no roots.
fn guest() -> ClientConfig {
    let name = Implementation::new("rowmill", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), name)
}

fn unreachable_because(error: &ClientInitializeError) -> (NoStart, Handshake) {
    let failure = match error {
        ClientInitializeError::JsonRpcError(error) => {
            let what = format!("rejects the handshake ({})", error.message);
            return (NoStart::new(what, Remedy::Protocol), Handshake::Refused);
        }
        ClientInitializeError::TransportError { error, .. } => {
            error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
        }
        _ => None,
    };
    let (what, remedy) = match failure {
        Some(StreamableHttpError::AuthRequired(_)) => ("asks for a credential (HTTP 401)", Remedy::SignIn),
        Some(StreamableHttpError::InsufficientScope(_)) => ("forbids access (HTTP 403)", Remedy::Credential),
        Some(StreamableHttpError::Auth(
            AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_),
        )) => ("returned no token", Remedy::SignIn),
        Some(StreamableHttpError::Auth(_)) => ("returned no token", Remedy::Credential),
        Some(StreamableHttpError::Client(error)) if error.is_connect() => {
            ("does not answer", Remedy::Address)
        }
        _ => ("does not speak MCP as expected", Remedy::Protocol),
    };
    let mut no_start = NoStart::new(what, remedy);
    // It may be a URL that the server redirected the request to.
    no_start.cause = Some(bare_addresses(&failure.map_or_else(|| chain(error), |failure| chain(failure))));
    (no_start, Handshake::Failed)
}

/// A duration for messages.
pub(super) fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs_f64())
    }
}
