//! Stands in for the client in a build without MCP servers.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_core::redact::Redactor;
use rowmill_http::ProxySettings;
use rowmill_types::{CargoFeature, Problem, ToolOutput, ToolSpec};

use super::server::McpServerSettings;
use super::view::ServerView;

/// A tool that can be offered to models; there is none in this build.
#[derive(Debug, Clone, PartialEq)]
pub struct McpTool {
    /// The tool as models see it.
    pub spec: ToolSpec,
    /// The name under which [`McpHost`] knows it.
    pub host_name: String,
    /// The server's name.
    pub server: String,
    /// The server's name for it; empty for tools that represent resources or prompts.
    pub tool: String,
    /// What it represents.
    pub kind: McpPrimitive,
    /// Whether it may run twice.
    pub idempotent: bool,
}

/// What a tool represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpPrimitive {
    /// A tool of the server itself.
    Tool,
    /// The server's resources.
    Resources,
    /// The server's prompts.
    Prompts,
}

/// Settings that all servers of a run share; nothing reads them.
#[derive(Debug, Clone, Default)]
pub struct McpSettings {}

impl McpSettings {
    /// Settings that nothing reads.
    pub fn new(_parallel: usize, _environment: &dyn Fn(&str) -> Option<String>) -> Self {
        Self {}
    }

    /// Changes nothing: no server is started.
    #[must_use]
    pub fn with_redactor(self, _redactor: Redactor) -> Self {
        self
    }

    /// Changes nothing: no server is started.
    #[must_use]
    pub fn with_person(self, _person: Option<InteractiveSignIn>) -> Self {
        self
    }
}

/// A user who could sign in; nobody asks.
#[derive(Debug, Clone)]
pub struct InteractiveSignIn {}

impl InteractiveSignIn {
    /// A user whom nobody asks.
    pub fn new(_show: impl Fn(&str, &str) + Send + Sync + 'static, _patience: Duration) -> Self {
        Self {}
    }
}

/// How authorization servers would be asked.
#[derive(Debug, Clone, Default)]
pub struct AuthorizationSettings {
    /// Would learn the tokens that they give.
    pub redactor: Redactor,
    /// The proxies on the way to them.
    pub proxies: ProxySettings,
}

/// A sign-in that waits for its browser; there is none in this build.
#[derive(Debug)]
pub struct McpSignIn(Infallible);

impl McpSignIn {
    /// The URL that the user opens in a browser.
    #[must_use]
    pub fn address(&self) -> &str {
        match self.0 {}
    }

    /// Waits for the browser's redirect.
    ///
    /// # Errors
    ///
    /// There is no sign-in that could fail.
    pub async fn finish(self, _patience: Duration) -> Result<(), Problem> {
        match self.0 {}
    }
}

/// Would start a sign-in.
///
/// # Errors
///
/// Always: this build has no client for MCP servers.
pub async fn begin_sign_in(
    _url: &str,
    _file: &Path,
    _scopes: &[String],
    _settings: AuthorizationSettings,
) -> Result<McpSignIn, Problem> {
    Err(CargoFeature::Mcp.missing_problem())
}

/// The MCP servers of a run; there are none in this build.
#[derive(Debug)]
pub struct McpHost(Infallible);

impl McpHost {
    /// Would start all servers.
    ///
    /// # Errors
    ///
    /// Always: this build has no client for MCP servers.
    pub async fn start(_servers: Vec<McpServerSettings>, _settings: McpSettings) -> Result<Self, Problem> {
        Err(CargoFeature::Mcp.missing_problem())
    }

    /// The tools of all servers.
    #[must_use]
    pub fn tools(&self) -> &[McpTool] {
        match self.0 {}
    }

    /// The tools of a server for agents with this view of it.
    pub fn offered_tools<'a>(
        &'a self,
        _server: &'a str,
        _view: &'a ServerView,
    ) -> impl Iterator<Item = &'a McpTool> {
        self.tools().iter()
    }

    /// A server's instructions.
    #[must_use]
    pub fn instructions(&self, _server: &str) -> Option<&str> {
        match self.0 {}
    }

    /// The limits on parallel calls.
    pub fn parallel_call_limits(&self) -> impl Iterator<Item = (Vec<String>, usize)> {
        self.tools().iter().map(|tool| (vec![tool.host_name.clone()], 1))
    }

    /// Notices for the user about what the servers offer.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        match self.0 {}
    }
}

impl ToolHost for McpHost {
    fn call<'a>(&'a self, _request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn servers_are_a_problem_that_names_the_feature() {
        let settings = McpSettings::new(1, &|_| None);
        let problem = McpHost::start(Vec::new(), settings).await.unwrap_err();
        assert_eq!(
            problem.message.to_string(),
            "this build has no client for MCP servers: enable the feature `mcp`"
        );
    }
}
