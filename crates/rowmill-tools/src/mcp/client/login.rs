//! Signing in to a server with a browser: the authorization-code flow with PKCE, and the resulting tokens.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadataSource, AuthorizationRequest, AuthorizationSession,
};
use rowmill_core::known_secrets::strip_address_secrets;
use rowmill_core::redact::Redactor;
use rowmill_http::ProxySettings;
use rowmill_types::{Problem, ProblemCode};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::http as post;
use super::lost_call::error_chain;
use super::token_client::TokenClient;
use super::token_file::TokenFile;

/// The path of the browser's redirect.
const CALLBACK: &str = "/callback";
/// The maximum length of a line that a browser may send.
const LONGEST: u64 = 16 * 1024;
/// How long a browser may take for a request once it is connected.
const REQUEST_TIME: Duration = Duration::from_secs(5);

/// How authorization servers are asked.
#[derive(Debug, Clone, Default)]
pub struct AuthorizationSettings {
    /// Learns the tokens that they give.
    pub redactor: Redactor,
    /// The proxies on the way to them.
    pub proxies: ProxySettings,
}

/// A sign-in that waits for its browser.
pub struct McpSignIn {
    session: AuthorizationSession,
    listener: TcpListener,
    place: String,
    redactor: Redactor,
}

impl fmt::Debug for McpSignIn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Login").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Starts a sign-in to the server at `url`. Its tokens will be stored in `file` and passed to `redactor`.
///
/// # Errors
///
/// The server cannot be reached or names no authorization server, or the authorization server does not
/// register clients.
pub async fn begin_sign_in(
    url: &str,
    file: &Path,
    scopes: &[String],
    settings: AuthorizationSettings,
) -> Result<McpSignIn, Problem> {
    let redactor = settings.redactor.clone();
    let fail = |error: AuthError| cannot_sign_in(url, &error, &redactor);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(|error| {
        Problem::new(ProblemCode::ToolServer, "cannot listen on a local port").cause(error)
    })?;
    let port = listener.local_addr().map(|address| address.port()).unwrap_or_default();
    let mut manager = authorization_manager(url, &settings).await.map_err(fail)?;
    manager.set_credential_store(TokenFile::new(file, redactor.clone()));
    let resolution = manager.resolve_metadata().await.map_err(fail)?;
    if resolution.source == AuthorizationMetadataSource::LegacyEndpointFallback {
        let message =
            format!("the MCP server at `{}` does not say where to sign in", strip_address_secrets(url));
        return Err(Problem::new(ProblemCode::ToolServer, message)
            .hint("it may need no sign-in, or a token: set `access_token` or a header for it"));
    }
    manager.set_metadata(resolution.metadata);
    let request = AuthorizationRequest::new(format!("http://127.0.0.1:{port}{CALLBACK}"))
        .with_initial_scope_selection()
        .with_scopes(scopes.iter().cloned())
        .with_client_name("rowmill");
    let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| fail(error))?;
    Ok(McpSignIn { session, listener, place: strip_address_secrets(url), redactor })
}

/// Who speaks with the authorization server of the server at `url`.
pub(super) async fn authorization_manager(
    url: &str,
    AuthorizationSettings { redactor, proxies }: &AuthorizationSettings,
) -> Result<AuthorizationManager, AuthError> {
    // It is another server: it must not see the headers.
    let client = post::http_client(HeaderMap::new(), proxies).map_err(AuthError::InternalError)?;
    let client = TokenClient { client, redactor: redactor.clone() };
    AuthorizationManager::new_with_oauth_http_client(url, Arc::new(client)).await
}

impl McpSignIn {
    /// The URL that the user opens in a browser.
    #[must_use]
    pub fn address(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// Waits for the browser's redirect, and fetches the tokens.
    ///
    /// # Errors
    ///
    /// There was no redirect within `patience`, access was denied, or the tokens were not issued.
    pub async fn finish(self, patience: Duration) -> Result<(), Problem> {
        let came_back = tokio::time::timeout(patience, self.callback()).await;
        let query = came_back.map_err(|_| {
            Problem::new(
                ProblemCode::ToolServer,
                format!("sign-in to `{}` timed out after {} s", self.place, patience.as_secs()),
            )
            .hint("run the command again, and open the URL that it prints")
        })??;
        let address = format!("http://127.0.0.1{CALLBACK}?{query}");
        let tokens = self.session.handle_callback_url(&address).await;
        tokens.map(drop).map_err(|error| cannot_sign_in(&self.place, &error, &self.redactor))
    }

    /// The query of the browser's redirect.
    async fn callback(&self) -> Result<String, Problem> {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else { continue };
            let Some(path) = request_path(&mut stream).await else { continue };
            let Some(query) = path.strip_prefix(CALLBACK).and_then(|rest| rest.strip_prefix('?')) else {
                answer(&mut stream, "404 Not Found", "There is nothing here.").await;
                continue;
            };
            if !query.split('&').any(|pair| pair.starts_with("error=")) {
                answer(&mut stream, "200 OK", "You are signed in and can close this window.").await;
                return Ok(query.to_owned());
            }
            answer(&mut stream, "200 OK", "Access was denied. You can close this window.").await;
            let message = format!("sign-in to `{}` was denied", self.place);
            return Err(Problem::new(ProblemCode::ToolServer, message)
                .cause(refusal(query))
                .hint("run the command again, and allow access"));
        }
    }
}

/// The error of a denied sign-in, without the parameters that identify the sign-in.
fn refusal(query: &str) -> String {
    let errors: Vec<&str> = query.split('&').filter(|pair| pair.starts_with("error")).collect();
    errors.join("&")
}

/// The path and query of a request. It is read to the end of its head: a connection that is closed with
/// unread data is reset, and the browser may never show the answer.
async fn request_path(stream: &mut TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream.take(LONGEST)).lines();
    let head = async {
        let first = lines.next_line().await.ok()??;
        while !lines.next_line().await.ok()??.is_empty() {}
        Some(first)
    };
    // Browsers open connections in advance that may never be used.
    let first = tokio::time::timeout(REQUEST_TIME, head).await.ok()??;
    first.strip_prefix("GET ")?.split(' ').next().map(str::to_owned)
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><title>rowmill</title><p>{text}</p>");
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    // The browser may be gone; only its request matters.
    drop(stream.write_all(answer.as_bytes()).await);
    drop(stream.shutdown().await);
}

fn cannot_sign_in(url: &str, error: &AuthError, redactor: &Redactor) -> Problem {
    Problem::new(ProblemCode::ToolServer, format!("sign-in to `{}` failed", strip_address_secrets(url)))
        .cause(redactor.redact(&strip_address_secrets(&error_chain(error))).into_owned())
        .hint(
            "check the URL; a server that does not register clients needs `auth` with `client_id` and \
             `client_secret`",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_reported_without_the_state_of_the_sign_in() {
        let query = "state=x7q&error=access_denied&error_description=no&code=c";
        assert_eq!(refusal(query), "error=access_denied&error_description=no");
    }
}
