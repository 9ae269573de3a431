//! Signing in while servers start, if a user is present.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rowmill_types::Problem;

use super::connect::{McpEndpoint, StartFailure, StartRemedy};
use super::host::{McpSettings, ServerStart, start_server};
use super::login::begin_sign_in;
use crate::mcp::server::{McpServerSettings, McpTransport, SignInMethod};

/// Receives the name of a server and the URL to open.
type ShowAddressFn = dyn Fn(&str, &str) + Send + Sync;

/// A user who is present when servers start, and can sign in to them with a browser.
#[derive(Clone)]
pub struct InteractiveSignIn {
    show: Arc<ShowAddressFn>,
    patience: Duration,
}

impl fmt::Debug for InteractiveSignIn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Person").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl InteractiveSignIn {
    /// `show` receives the name of a server and the URL to open in a browser; the sign-in may take as long as
    /// `patience`.
    pub fn new(show: impl Fn(&str, &str) + Send + Sync + 'static, patience: Duration) -> Self {
        Self { show: Arc::new(show), patience }
    }

    /// Lets the user sign in to a server that did not start without it, and starts it again.
    pub(super) async fn sign_in(
        &self,
        endpoint: &McpEndpoint,
        failure: StartFailure,
        settings: &McpSettings,
    ) -> Result<ServerStart, Problem> {
        let server = &endpoint.server;
        let (McpTransport::Http { url, .. }, Some(file)) = (&server.transport, &server.tokens) else {
            return Err(failure.problem(endpoint));
        };
        let login = match begin_sign_in(url, file, &[], settings.authorization()).await {
            Ok(login) => login,
            // The server requires a credential other than a sign-in.
            Err(_) => return Err(failure.problem(endpoint)),
        };
        (self.show)(&server.name, login.address());
        login.finish(self.patience).await.map_err(|problem| endpoint.shown.redact_problem(problem))?;
        let endpoint = Arc::new(McpEndpoint::new(server.clone(), settings)?);
        start_server(Arc::clone(&endpoint)).await.map_err(|failure| failure.problem(&endpoint))
    }
}

impl McpServerSettings {
    /// Whether signing in would help a server that did not start.
    pub(super) fn needs_sign_in(&self, failure: &StartFailure) -> bool {
        let McpTransport::Http { auth: None, .. } = &self.transport else { return false };
        failure.remedy == StartRemedy::SignIn
            && self.sign_in == SignInMethod::Browser
            && self.tokens.is_some()
            && !self.transport.has_credential()
    }
}
