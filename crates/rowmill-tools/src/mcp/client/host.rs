//! The host: starts the servers together, offers their tools, calls them, and stops them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, join_all};
use rmcp::model::ClientRequest;
use rowmill_core::ports::{ToolFailure, ToolHost, ToolPermit, ToolRequest};
use rowmill_core::redact::Redactor;
use rowmill_http::ProxySettings;
use rowmill_types::{Problem, ProblemCode, ToolOutput};

use super::catalogue::{McpPrimitive, McpTool, ServerCatalogue};
use super::connect::{McpEndpoint, StartFailure, StartRemedy, seconds_text};
use super::interactive_sign_in::InteractiveSignIn;
use super::login::AuthorizationSettings;
use super::lost_call::{LostCall, error_chain};
use super::output;
use super::reconnector::Reconnector;
use super::session::McpSession;
use super::tool_names::ToolNames;
use crate::inherited_variables::inherited_variables;
use crate::mcp::name_filter;
use crate::mcp::server::{McpParallelLimit, McpServerSettings};
use crate::mcp::view::ServerView;

/// The maximum attempts of a call if connections break during it. Several rows may crash the same server, so
/// it must not be too low.
const MOST_ATTEMPTS: u32 = 5;

/// The variables that server processes inherit from rowmill, besides those that every process gets.
const INHERITED: &[&str] = &[
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "no_proxy",
];

/// Settings that all servers of a run share.
#[derive(Debug, Clone)]
pub struct McpSettings {
    pub(super) parallel: usize,
    pub(super) inherited: BTreeMap<String, String>,
    pub(super) redactor: Redactor,
    pub(super) proxies: ProxySettings,
    person: Option<InteractiveSignIn>,
}

impl McpSettings {
    /// `parallel` is the number of rows that are worked on at once; `environment` looks up the few variables
    /// that servers inherit.
    pub fn new(parallel: usize, environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let known = inherited_variables(INHERITED, environment).map(|(name, value)| (name.to_owned(), value));
        Self {
            parallel: parallel.max(1),
            inherited: known.collect(),
            redactor: Redactor::default(),
            proxies: ProxySettings::from_variables(environment),
            person: None,
        }
    }

    /// Sets the secrets of the run, which no message about a server shows; tokens from authorization servers
    /// are added to them.
    #[must_use]
    pub fn with_redactor(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }

    /// Sets who signs in to servers that require it; otherwise such servers do not start.
    #[must_use]
    pub fn with_person(self, person: Option<InteractiveSignIn>) -> Self {
        Self { person, ..self }
    }

    /// How authorization servers are asked.
    pub(super) fn authorization(&self) -> AuthorizationSettings {
        AuthorizationSettings { redactor: self.redactor.clone(), proxies: self.proxies.clone() }
    }
}

/// The MCP servers of a run.
#[derive(Debug)]
pub struct McpHost {
    ends: Vec<StartedServer>,
    tools: Vec<McpTool>,
    by_name: HashMap<String, ToolLocation>,
    /// The connections of rows that have their own.
    rows: Mutex<HashMap<u64, BTreeMap<usize, Arc<Reconnector>>>>,
}

/// A running server.
#[derive(Debug)]
struct StartedServer {
    endpoint: Arc<McpEndpoint>,
    /// What agents see of it; the first view is that of its entry.
    views: Vec<ServerView>,
    catalogue: ServerCatalogue,
    /// The connection shared by all rows, unless each has its own.
    shared: Option<Reconnector>,
}

/// The location of a tool.
#[derive(Debug, Clone, Copy)]
struct ToolLocation {
    end: usize,
    tool: usize,
}

impl McpHost {
    /// Starts all servers at once, and requests what they offer.
    ///
    /// # Errors
    ///
    /// Two servers have the same name, a server does not start, or a filter names something that a server
    /// does not have. No server is left running then.
    pub async fn start(servers: Vec<McpServerSettings>, settings: McpSettings) -> Result<Self, Problem> {
        let mut endpoints = Vec::with_capacity(servers.len());
        for server in servers {
            if endpoints.iter().any(|other: &Arc<McpEndpoint>| other.server.name == server.name) {
                let message = format!("two MCP servers have the name `{}`", server.name);
                return Err(Problem::new(ProblemCode::InvalidConfig, message).hint("rename one of them"));
            }
            endpoints.push(Arc::new(McpEndpoint::new(server, &settings)?));
        }
        let started = join_all(endpoints.iter().map(|endpoint| start_server(Arc::clone(endpoint)))).await;
        let started: Vec<_> = endpoints.iter().zip(started).collect();
        // The user is not asked to sign in for a run that cannot start.
        let is_hopeless = started.iter().any(|(endpoint, outcome)| {
            outcome.as_ref().is_err_and(|failure| !endpoint.server.needs_sign_in(failure))
        });
        let person = settings.person.as_ref().filter(|_| !is_hopeless);
        let mut problem = None;
        let mut host =
            Self { ends: Vec::new(), tools: Vec::new(), by_name: HashMap::new(), rows: Mutex::default() };
        for (endpoint, outcome) in started {
            let outcome = match (outcome, person.filter(|_| problem.is_none())) {
                (Err(failure), Some(person)) => person.sign_in(endpoint, failure, &settings).await,
                (outcome, _) => outcome.map_err(|failure| failure.problem(endpoint)),
            };
            match outcome {
                Ok(started) => host.ends.push(started.end()),
                Err(found) => problem = problem.or(Some(found)),
            }
        }
        if let Some(problem) = problem.or_else(|| host.offer().err()) {
            host.close_all().await;
            return Err(problem);
        }
        Ok(host)
    }

    /// The tools of all servers, in the order of the servers.
    #[must_use]
    pub fn tools(&self) -> &[McpTool] {
        &self.tools
    }

    /// The tools of a server for agents with this view of it, which must be one of [`McpServerSettings::views`] or
    /// [`McpServerSettings::default_view`].
    pub fn offered_tools<'a>(
        &'a self,
        server: &'a str,
        view: &'a ServerView,
    ) -> impl Iterator<Item = &'a McpTool> {
        let end = self.ends.iter().find(|end| end.endpoint.server.name == server);
        let index = end.and_then(|end| end.views.iter().position(|known| known == view));
        let fits = move |tool: &&McpTool| match tool.kind {
            McpPrimitive::Tool => view.tools.allows(&tool.tool),
            McpPrimitive::Resources | McpPrimitive::Prompts => Some(tool.view) == index,
        };
        self.tools.iter().filter(move |tool| tool.server == server).filter(fits)
    }

    /// A server's instructions, if they are for the model.
    #[must_use]
    pub fn instructions(&self, server: &str) -> Option<&str> {
        let end = self.ends.iter().find(|end| end.endpoint.server.name == server)?;
        end.catalogue.instructions.as_deref().filter(|_| end.endpoint.server.instructions)
    }

    fn offer(&mut self) -> Result<(), Problem> {
        let mut names = ToolNames::default();
        for (index, end) in self.ends.iter_mut().enumerate() {
            for tool in end.catalogue.offered_tools(&end.endpoint.server, &mut names)? {
                self.by_name
                    .insert(tool.host_name.clone(), ToolLocation { end: index, tool: self.tools.len() });
                self.tools.push(tool);
            }
        }
        Ok(())
    }

    async fn answer(&self, request: ToolRequest<'_>) -> Result<ToolOutput, ToolFailure> {
        let found = self.by_name.get(request.tool).copied();
        let found = found.and_then(|place| {
            let (end, tool) = (self.ends.get(place.end)?, self.tools.get(place.tool)?);
            Some((place.end, end, tool, end.views.get(tool.view)?))
        });
        let Some((index, end, tool, view)) = found else {
            let message = format!("no MCP server has a tool `{}`", request.tool);
            return Err(ToolFailure { message, may_have_run: false });
        };
        let asked = match end.catalogue.make_request(tool, view, request.arguments) {
            Ok(asked) => asked,
            Err(output) => return Ok(output),
        };
        match &end.shared {
            Some(link) => attempts(link, &end.endpoint, asked, request).await,
            None => {
                let link = self.link_of_row(request.row, index, &end.endpoint);
                attempts(&link, &end.endpoint, asked, request).await
            }
        }
    }

    /// Ensures that there is a connection for a call.
    async fn connect(&self, request: ToolRequest<'_>) -> Result<ToolPermit, ToolFailure> {
        let place = self.by_name.get(request.tool);
        if let Some((index, end)) = place.and_then(|place| Some((place.end, self.ends.get(place.end)?))) {
            let connected = match &end.shared {
                Some(link) => link.session().await,
                None => self.link_of_row(request.row, index, &end.endpoint).session().await,
            };
            connected.map_err(|message| ToolFailure { message, may_have_run: false })?;
        }
        Ok(ToolPermit::default())
    }

    /// The limits on parallel calls, as the servers set them: the tools that share a limit, and the limit.
    pub fn parallel_call_limits(&self) -> impl Iterator<Item = (Vec<String>, usize)> {
        self.ends.iter().flat_map(|end| {
            let server = &end.endpoint.server;
            let tools = |pattern: Option<&str>| -> Vec<String> {
                let own = self.tools.iter().filter(|tool| tool.server == server.name);
                own.filter(|tool| pattern.is_none_or(|pattern| name_filter::matches(pattern, &tool.tool)))
                    .map(|tool| tool.host_name.clone())
                    .collect()
            };
            match &server.max_parallel {
                McpParallelLimit::NotSet => {
                    server.parallel_unsafe_package().map(|_| (tools(None), 1)).into_iter().collect()
                }
                McpParallelLimit::Calls(most) => vec![(tools(None), *most)],
                McpParallelLimit::ByTool(patterns) => {
                    patterns.iter().map(|(pattern, most)| (tools(Some(pattern)), *most)).collect::<Vec<_>>()
                }
            }
        })
    }

    /// Notices for the user about what the servers offer.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        for StartedServer { endpoint, catalogue, .. } in &self.ends {
            let server = &endpoint.server;
            let package =
                server.parallel_unsafe_package().filter(|_| server.max_parallel == McpParallelLimit::NotSet);
            notices.extend(package.map(|package| {
                format!(
                    "calls of the MCP server `{}` are made one at a time, because `{package}` keeps one file \
                     and loses data if it is called in parallel; override this with `max_parallel` of the \
                     server",
                    server.name
                )
            }));
            if !catalogue.need_tasks.is_empty() {
                notices.push(format!(
                    "the MCP server `{}` has tools that can only be called as tasks, which is not supported; \
                     they are not offered: `{}`",
                    server.name,
                    catalogue.need_tasks.join("`, `")
                ));
            }
        }
        notices
    }

    fn link_of_row(&self, row: u64, end: usize, endpoint: &Arc<McpEndpoint>) -> Arc<Reconnector> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let links = rows.entry(row).or_default();
        let make = || Arc::new(Reconnector::new(Arc::clone(endpoint), None));
        Arc::clone(links.entry(end).or_insert_with(make))
    }

    async fn close_all(&self) {
        let rows = {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *rows)
        };
        let own: Vec<_> = rows.into_values().flat_map(BTreeMap::into_values).collect();
        let shared = self.ends.iter().filter_map(|end| end.shared.as_ref());
        join_all(own.iter().map(|link| &**link).chain(shared).map(Reconnector::close)).await;
    }
}

impl ToolHost for McpHost {
    fn wait_until_ready<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        Box::pin(self.connect(request))
    }

    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(self.answer(request))
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        let links = self.rows.lock().unwrap_or_else(PoisonError::into_inner).remove(&row);
        Box::pin(async move {
            let links = links.unwrap_or_default();
            join_all(links.values().map(|link| link.close())).await;
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close_all())
    }
}

/// A server that has reported what it offers.
pub(super) struct ServerStart {
    endpoint: Arc<McpEndpoint>,
    catalogue: ServerCatalogue,
    session: Option<McpSession>,
}

impl ServerStart {
    fn end(self) -> StartedServer {
        let Self { endpoint, catalogue, session } = self;
        let shared = session.map(|session| Reconnector::new(Arc::clone(&endpoint), Some(session)));
        StartedServer { views: endpoint.server.all_views(), endpoint, catalogue, shared }
    }
}

/// Starts a server and requests what it offers. If rows have connections of their own, the connection is
/// closed again: it belongs to no row.
pub(super) async fn start_server(endpoint: Arc<McpEndpoint>) -> Result<ServerStart, StartFailure> {
    let server = &endpoint.server;
    let session = endpoint.connect().await?;
    let asking = ServerCatalogue::fetch(&session, server);
    let failure = match tokio::time::timeout(server.start_timeout, asking).await {
        Ok(Ok(catalogue)) if server.per_row => {
            session.close().await;
            return Ok(ServerStart { endpoint, catalogue, session: None });
        }
        Ok(Ok(catalogue)) => return Ok(ServerStart { endpoint, catalogue, session: Some(session) }),
        Ok(Err(error)) => {
            (format!("did not list its tools ({})", error_chain(&error)), StartRemedy::Protocol)
        }
        Err(_) => (
            format!("did not list its tools within {}", seconds_text(server.start_timeout)),
            StartRemedy::Patience,
        ),
    };
    let printed =
        session.kill_and_describe().await.map(|text| format!("on standard error it printed:\n{text}"));
    session.close().await;
    Err(StartFailure { what: failure.0, cause: printed, remedy: failure.1 })
}

/// Makes a call; repeats it if the connection broke and the tool cannot have run or may run twice.
async fn attempts(
    link: &Reconnector,
    endpoint: &McpEndpoint,
    asked: ClientRequest,
    ToolRequest { idempotent, timeout, .. }: ToolRequest<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let server = &endpoint.server;
    let timeout = timeout.unwrap_or(server.timeout);
    let mut ran = false;
    let mut last = String::new();
    for _ in 0..MOST_ATTEMPTS {
        let session = link.session().await.map_err(|message| ToolFailure { message, may_have_run: ran })?;
        match session.request(asked.clone(), timeout).await {
            Ok(Ok(result)) => return Ok(output::of(result)),
            Ok(Err(error)) => return Ok(ToolOutput::error(error.message)),
            Err(LostCall::Broken { why, maybe_ran }) => {
                link.mark_broken(&session);
                ran |= maybe_ran;
                last = why;
                if ran && !idempotent {
                    break;
                }
            }
            Err(LostCall::TimedOut { maybe_ran }) => {
                let message = format!("`{}` did not answer within {}", server.name, seconds_text(timeout));
                return Err(ToolFailure { message, may_have_run: ran || maybe_ran });
            }
            Err(LostCall::Refused { why, maybe_ran }) => {
                let message = endpoint.shown.redact(&format!("`{}`: {why}", server.name));
                return Err(ToolFailure { message, may_have_run: ran || maybe_ran });
            }
        }
    }
    let message = format!("the connection with the MCP server `{}` broke: {last}", server.name);
    Err(ToolFailure { message: endpoint.shown.redact(&message), may_have_run: ran })
}
