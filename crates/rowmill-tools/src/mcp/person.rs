//! Signing in while servers start, if a user is present.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rowmill_types::Problem;

use super::host::{McpSettings, Started, begin};
use super::launch::{Endpoint, NoStart, Remedy};
use super::login::begin_login;
use super::server::{McpServer, SignIn, Transport};

/// Receives the name of a server and the URL to open.
type Show = dyn Fn(&str, &str) + Send + Sync;

/// A user who is present when servers start, and can sign in to them with a browser.
#[derive(Clone)]
pub struct Person {
    show: Arc<Show>,
    patience: Duration,
}

impl fmt::Debug for Person {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Person").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Person {
    /// `show` receives the name of a server and the URL to open in a browser; the sign-in may take as long as
    /// `patience`.
    pub fn new(show: impl Fn(&str, &str) + Send + Sync + 'static, patience: Duration) -> Self {
        Self { show: Arc::new(show), patience }
    }

    /// Lets the user sign in to a server that did not start without it, and starts it again.
    pub(super) async fn sign_in(
        &self,
        endpoint: &Endpoint,
        failure: NoStart,
        settings: &McpSettings,
    ) -> Result<Started, Problem> {
        let server = &endpoint.server;
        let (Transport::Http { url, .. }, Some(file)) = (&server.transport, &server.tokens) else {
            return Err(failure.problem(endpoint));
        };
        let login = match begin_login(url, file, &[], settings.authorization()).await {
            Ok(login) => login,
            // The server requires a credential other than a sign-in.
            Err(_) => return Err(failure.problem(endpoint)),
        };
        (self.show)(&server.name, login.address());
        login.finish(self.patience).await.map_err(|problem| endpoint.shown.clean_problem(problem))?;
        let endpoint = Arc::new(Endpoint::new(server.clone(), settings)?);
        begin(Arc::clone(&endpoint)).await.map_err(|failure| failure.problem(&endpoint))
    }
}

impl McpServer {
    /// Whether signing in would help a server that did not start.
    pub(super) fn wants_person(&self, failure: &NoStart) -> bool {
        let Transport::Http { auth: None, .. } = &self.transport else { return false };
        failure.remedy == Remedy::SignIn
            && self.sign_in == SignIn::Browser
            && self.tokens.is_some()
            && !self.transport.says_who_asks()
    }
}
