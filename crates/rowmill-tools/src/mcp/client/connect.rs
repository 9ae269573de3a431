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
use rowmill_core::known_secrets::strip_address_secrets;
use rowmill_types::{Problem, ProblemCode};
use tokio::time::Instant;

use super::MAX_FRAME;
use super::access::TokenGrant;
use super::host::McpSettings;
use super::http::{self as post, HttpTransport};
use super::lost_call::error_chain;
use super::message_redactor::MessageRedactor;
use super::pipe::StdioTransport;
use super::process::ServerProcess;
use super::sent_requests::SentRequests;
use super::session::McpSession;
use super::tail::OutputTail;
use crate::mcp::server::{McpProtocolChoice, McpServerSettings, McpTransport};

/// A server with everything that its connections share.
#[derive(Debug)]
pub(super) struct McpEndpoint {
    pub(super) server: McpServerSettings,
    /// How messages show it.
    pub(super) shown: MessageRedactor,
    inherited: BTreeMap<String, String>,
    parallel: usize,
    http: Option<NetworkClient>,
    /// Until when calls fail immediately, and why, after the server could not be reached.
    outage: Mutex<Option<(Instant, String)>>,
}

#[derive(Debug)]
struct NetworkClient {
    client: reqwest::Client,
    grant: Option<Arc<TokenGrant>>,
}

/// The reason that there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartFailure {
    /// What happened; follows "the server `x` " in messages.
    pub(super) what: String,
    /// The server's output, or the network error.
    pub(super) cause: Option<String>,
    /// What may fix it.
    pub(super) remedy: StartRemedy,
}

/// What may fix a server that does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartRemedy {
    Command,
    Address,
    Credential,
    /// The same, and signing in would be enough.
    SignIn,
    Patience,
    Protocol,
}

impl StartFailure {
    fn new(what: impl Into<String>, remedy: StartRemedy) -> Self {
        Self { what: what.into(), cause: None, remedy }
    }

    /// The problem for a user who starts a run.
    pub(super) fn problem(self, McpEndpoint { server, shown, .. }: &McpEndpoint) -> Problem {
        let name = &server.name;
        let what = format!("the MCP server `{name}` {}: `{}`", shown.redact(&self.what), shown.location);
        let hint = match self.remedy {
            StartRemedy::Command => {
                "run the command in a shell to see its output; servers get only a few environment variables, \
                 so set those that it needs in `env`"
                    .to_owned()
            }
            StartRemedy::Address => "start the server or correct its `url`".to_owned(),
            StartRemedy::Credential | StartRemedy::SignIn => server.credential_hint(),
            StartRemedy::Patience => {
                format!("raise `start_timeout` of `{name}`, or check what the server is waiting for")
            }
            StartRemedy::Protocol => {
                "check that the command or URL is an MCP server; over HTTP, only streamable HTTP is supported"
                    .to_owned()
            }
        };
        let problem = Problem::new(ProblemCode::ToolServer, what).hint(hint);
        match self.cause {
            Some(cause) => problem.cause(shown.redact(&cause)),
            None => problem,
        }
    }
}

impl McpEndpoint {
    /// Prepares a server; nothing is started.
    ///
    /// # Errors
    ///
    /// A header cannot be sent.
    pub(super) fn new(server: McpServerSettings, settings: &McpSettings) -> Result<Self, Problem> {
        let McpSettings { inherited, parallel, redactor, proxies, .. } = settings;
        let shown = MessageRedactor::new(&server, redactor.clone())?;
        let http = match &server.transport {
            McpTransport::Stdio { .. } => None,
            McpTransport::Http { url, headers, auth } => {
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
                let client = post::http_client(map, proxies).map_err(setup)?;
                let has_token = server.transport.has_credential();
                let signed_in = server.tokens.as_ref().filter(|file| !has_token && file.is_file());
                let grant = match (auth, signed_in) {
                    (Some(oauth), _) => Some(TokenGrant::for_client(url, oauth, settings.authorization())),
                    (None, Some(file)) => {
                        Some(TokenGrant::for_signed_in_user(url, file, settings.authorization()))
                    }
                    (None, None) => None,
                };
                Some(NetworkClient { client, grant: grant.map(Arc::new) })
            }
        };
        let (inherited, parallel) = (inherited.clone(), *parallel);
        Ok(Self { server, shown, inherited, parallel, http, outage: Mutex::new(None) })
    }

    /// Makes a connection within the start timeout.
    pub(super) async fn connect(&self) -> Result<McpSession, StartFailure> {
        let modern =
            || ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        match self.server.protocol {
            McpProtocolChoice::Modern => self.open_with(modern()).await.map_err(|(failure, _)| failure),
            McpProtocolChoice::Legacy => {
                self.open_with(ClientLifecycleMode::Initialize).await.map_err(|(failure, _)| failure)
            }
            McpProtocolChoice::Auto => match self.open_with(ClientLifecycleMode::Initialize).await {
                Ok(session) => Ok(session),
                Err((failure, HandshakeFailure::Refused)) => {
                    self.open_with(modern()).await.map_err(|_| failure)
                }
                Err((failure, HandshakeFailure::Failed)) => Err(failure),
            },
        }
    }

    async fn open_with(
        &self,
        mode: ClientLifecycleMode,
    ) -> Result<McpSession, (StartFailure, HandshakeFailure)> {
        match (&self.http, &self.server.transport) {
            (Some(network), McpTransport::Http { url, .. }) => self.open_http(network, url, mode).await,
            _ => self.open_stdio(mode).await,
        }
    }

    async fn open_stdio(
        &self,
        mode: ClientLifecycleMode,
    ) -> Result<McpSession, (StartFailure, HandshakeFailure)> {
        let started = ServerProcess::start(&self.server.transport, &self.inherited);
        let (mut process, stdin, stdout) = started.map_err(|error| {
            let mut failure = StartFailure::new("cannot be started", StartRemedy::Command);
            failure.cause = Some(error.to_string());
            (failure, HandshakeFailure::Failed)
        })?;
        let (sent, talk) = (SentRequests::default(), OutputTail::default());
        let pipe = StdioTransport::new(stdin, stdout, sent.clone(), talk.clone());
        let serving = serve_client_with_lifecycle(guest(), pipe, mode);
        let (mut failure, handshake) = match tokio::time::timeout(self.server.start_timeout, serving).await {
            Ok(Ok(running)) => return Ok(McpSession::new(running, Some(process), sent)),
            Ok(Err(ClientInitializeError::JsonRpcError(error))) => {
                let what = format!("rejects the handshake ({})", error.message);
                (StartFailure::new(what, StartRemedy::Protocol), HandshakeFailure::Refused)
            }
            Ok(Err(error)) => (self.silent(&process, &error).await, HandshakeFailure::Failed),
            Err(_) => (self.late(), HandshakeFailure::Failed),
        };
        process.kill_and_reap().await;
        let printed = [("standard error", process.last_output().await), ("standard output", talk.text())];
        let printed = printed
            .into_iter()
            .filter_map(|(where_to, text)| Some(format!("on {where_to} it printed:\n{}", text?)));
        let printed: Vec<_> = failure.cause.take().into_iter().chain(printed).collect();
        failure.cause = (!printed.is_empty()).then(|| printed.join("\n"));
        Err((failure, handshake))
    }

    /// Why a process did not answer the handshake properly.
    async fn silent(&self, process: &ServerProcess, error: &ClientInitializeError) -> StartFailure {
        if let Some(ending) = process.exit_description().await {
            let mut failure = StartFailure::new("exited before it answered", StartRemedy::Command);
            failure.cause = Some(ending);
            return failure;
        }
        let mut failure = StartFailure::new("does not speak MCP", StartRemedy::Protocol);
        failure.cause = Some(error_chain(error));
        failure
    }

    fn late(&self) -> StartFailure {
        let waited = self.server.start_timeout;
        StartFailure::new(format!("did not answer within {}", seconds_text(waited)), StartRemedy::Patience)
    }

    async fn open_http(
        &self,
        network: &NetworkClient,
        url: &str,
        mode: ClientLifecycleMode,
    ) -> Result<McpSession, (StartFailure, HandshakeFailure)> {
        let sent = SentRequests::default();
        let poster = HttpTransport {
            client: network.client.clone(),
            grant: network.grant.clone(),
            sent: sent.clone(),
        };
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
            Ok(Ok(running)) => Ok(McpSession::new(running, None, sent)),
            Ok(Err(error)) => Err(unreachable_because(&error)),
            Err(_) => Err((self.late(), HandshakeFailure::Failed)),
        }
    }

    /// The reason for a current outage.
    pub(super) fn outage(&self) -> Option<String> {
        let outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.as_ref().filter(|(until, _)| Instant::now() < *until).map(|(_, why)| why.clone())
    }

    /// Marks the server as unreachable: for a while calls fail immediately.
    pub(super) fn mark_down(&self, why: &str) {
        let until = Instant::now() + self.server.reconnect.pause;
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        *outage = Some((until, why.to_owned()));
    }
}

/// How the handshake failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandshakeFailure {
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

fn unreachable_because(error: &ClientInitializeError) -> (StartFailure, HandshakeFailure) {
    let failure = match error {
        ClientInitializeError::JsonRpcError(error) => {
            let what = format!("rejects the handshake ({})", error.message);
            return (StartFailure::new(what, StartRemedy::Protocol), HandshakeFailure::Refused);
        }
        ClientInitializeError::TransportError { error, .. } => {
            error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>()
        }
        _ => None,
    };
    let (what, remedy) = match failure {
        Some(StreamableHttpError::AuthRequired(_)) => {
            ("asks for a credential (HTTP 401)", StartRemedy::SignIn)
        }
        Some(StreamableHttpError::InsufficientScope(_)) => {
            ("forbids access (HTTP 403)", StartRemedy::Credential)
        }
        Some(StreamableHttpError::Auth(
            AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_),
        )) => ("returned no token", StartRemedy::SignIn),
        Some(StreamableHttpError::Auth(_)) => ("returned no token", StartRemedy::Credential),
        Some(StreamableHttpError::Client(error)) if error.is_connect() => {
            ("does not answer", StartRemedy::Address)
        }
        _ => ("does not speak MCP as expected", StartRemedy::Protocol),
    };
    let mut no_start = StartFailure::new(what, remedy);
    // It may be a URL that the server redirected the request to.
    no_start.cause = Some(strip_address_secrets(
        &failure.map_or_else(|| error_chain(error), |failure| error_chain(failure)),
    ));
    (no_start, HandshakeFailure::Failed)
}

/// A duration for messages.
pub(super) fn seconds_text(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs_f64())
    }
}
