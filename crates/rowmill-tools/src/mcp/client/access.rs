//! Authorization for servers on the network.

use std::fmt;
use std::path::{Path, PathBuf};

use rmcp::transport::auth::{AuthError, AuthorizationManager, ClientCredentialsConfig};
use tokio::sync::Mutex;

use super::login::{AuthorizationSettings, authorization_manager};
use super::token_file::TokenFile;
use crate::mcp::server::{ClientCredentials, McpServerSettings, McpTransport, SignInMethod};

/// An OAuth grant with the token obtained from it.
pub(super) struct TokenGrant {
    url: String,
    source: TokenSource,
    /// What is in it learns every token before it is used.
    settings: AuthorizationSettings,
    granted: Mutex<Option<AuthorizationManager>>,
}

/// The source of tokens.
enum TokenSource {
    /// A client-credentials grant.
    Client(ClientCredentialsConfig),
    /// The file that an interactive sign-in wrote.
    Person(PathBuf),
}

impl fmt::Debug for TokenGrant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Grant").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Whether the current token may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenFreshness {
    /// It may, unless it has expired.
    Current,
    /// It may not: the server rejected it.
    Renewed,
}

impl TokenGrant {
    /// Tokens for the id and the secret of a client.
    pub(super) fn for_client(url: &str, oauth: &ClientCredentials, settings: AuthorizationSettings) -> Self {
        let credentials = ClientCredentialsConfig::ClientSecret {
            client_id: oauth.client_id.clone(),
            client_secret: oauth.client_secret.reveal().to_owned(),
            scopes: oauth.scopes.clone(),
            resource: Some(url.to_owned()),
        };
        Self::new(url, TokenSource::Client(credentials), settings)
    }

    /// The tokens of a person who signed in.
    pub(super) fn for_signed_in_user(url: &str, file: &Path, settings: AuthorizationSettings) -> Self {
        Self::new(url, TokenSource::Person(file.to_owned()), settings)
    }

    fn new(url: &str, source: TokenSource, settings: AuthorizationSettings) -> Self {
        Self { url: url.to_owned(), source, settings, granted: Mutex::new(None) }
    }

    /// A valid token. All callers share one.
    pub(super) async fn token(&self, which: TokenFreshness) -> Result<String, AuthError> {
        let mut granted = self.granted.lock().await;
        match (&self.source, granted.as_ref()) {
            (TokenSource::Person(_), Some(manager)) if which == TokenFreshness::Renewed => {
                manager.refresh_token().await?;
                return manager.get_access_token().await;
            }
            (TokenSource::Person(_), Some(manager)) => return manager.get_access_token().await,
            (TokenSource::Client(_), Some(manager)) if which == TokenFreshness::Current => {
                if let Ok(token) = manager.get_access_token().await {
                    return Ok(token);
                }
            }
            _ => {}
        }
        *granted = None;
        let manager = self.ask().await?;
        let token = manager.get_access_token().await?;
        *granted = Some(manager);
        Ok(token)
    }

    async fn ask(&self) -> Result<AuthorizationManager, AuthError> {
        let mut manager = authorization_manager(&self.url, &self.settings).await?;
        let credentials = match &self.source {
            TokenSource::Person(file) => {
                manager.set_credential_store(TokenFile::new(file, self.settings.redactor.clone()));
                return match manager.initialize_from_store().await? {
                    true => Ok(manager),
                    false => Err(AuthError::AuthorizationRequired),
                };
            }
            TokenSource::Client(credentials) => credentials,
        };
        let resolution = manager.resolve_metadata().await?;
        manager.set_metadata(resolution.metadata);
        manager.validate_client_credentials_metadata(credentials)?;
        manager.configure_client_credentials(credentials)?;
        manager.exchange_client_credentials(credentials).await?;
        Ok(manager)
    }
}

impl McpServerSettings {
    /// What the user can do if the server requires authorization.
    pub(super) fn credential_hint(&self) -> String {
        let name = &self.name;
        let McpTransport::Http { url, headers, .. } = &self.transport else {
            return format!("pass the credentials of `{name}` in `env`");
        };
        let has_token = headers.keys().any(|name| name.to_ascii_lowercase().ends_with("authorization"));
        match (self.sign_in, has_token) {
            (SignInMethod::HuggingFace, false) => "set `HF_TOKEN` to an access token of \
                 https://huggingface.co/settings/tokens, or sign in with `hf auth login`"
                .to_owned(),
            (SignInMethod::HuggingFace, true) => {
                "the Hugging Face access token was rejected: check `HF_TOKEN`, or sign in again with `hf \
                 auth login`"
                    .to_owned()
            }
            (SignInMethod::Browser, _) => format!(
                "sign in with `rowmill mcp login {}`, or set `access_token`, a header in `headers` or `auth` \
                 with `client_id` and `client_secret` for `{name}`, with `${{NAME}}` for variables",
                self.address_to_sign_in(url)
            ),
        }
    }
}
