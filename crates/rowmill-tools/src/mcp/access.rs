//! How a server on the network is let to know who asks.

use std::fmt;

use rmcp::transport::auth::{AuthError, AuthorizationManager, ClientCredentialsConfig};
use tokio::sync::Mutex;

use super::server::OAuth;

/// A client-credentials grant with the token that it gave.
pub(super) struct Grant {
    url: String,
    http: reqwest::Client,
    credentials: ClientCredentialsConfig,
    granted: Mutex<Option<AuthorizationManager>>,
}

impl fmt::Debug for Grant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Grant").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Whether the token that is at hand will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// Yes, unless it runs out.
    Kept,
    /// No: the server refused it.
    Fresh,
}

impl Grant {
    pub(super) fn new(url: &str, oauth: &OAuth, http: reqwest::Client) -> Self {
        let credentials = ClientCredentialsConfig::ClientSecret {
            client_id: oauth.client_id.clone(),
            client_secret: oauth.client_secret.reveal().to_owned(),
            scopes: oauth.scopes.clone(),
            resource: Some(url.to_owned()),
        };
        Self { url: url.to_owned(), http, credentials, granted: Mutex::new(None) }
    }

    /// A token that the server takes. All callers share one.
    pub(super) async fn token(&self, which: Token) -> Result<String, AuthError> {
        let mut granted = self.granted.lock().await;
        if which == Token::Fresh {
            *granted = None;
        }
        if let Some(manager) = granted.as_ref()
            && let Ok(token) = manager.get_access_token().await
        {
            return Ok(token);
        }
        let manager = self.ask().await?;
        let token = manager.get_access_token().await?;
        *granted = Some(manager);
        Ok(token)
    }

    async fn ask(&self) -> Result<AuthorizationManager, AuthError> {
        let mut manager = AuthorizationManager::new(self.url.as_str()).await?;
        manager.with_client(self.http.clone())?;
        let resolution = manager.resolve_metadata().await?;
        manager.set_metadata(resolution.metadata);
        manager.validate_client_credentials_metadata(&self.credentials)?;
        manager.configure_client_credentials(&self.credentials)?;
        manager.exchange_client_credentials(&self.credentials).await?;
        Ok(manager)
    }
}
