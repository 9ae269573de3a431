//! Requests to authorization servers: the tokens that they issue are registered as secrets before they are
//! used.

use reqwest::Client;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use rowmill_core::redact::Redactor;
use rowmill_types::Problem;

use crate::mcp::tokens::tokens_in_json;

/// The maximum size of a response.
const LONGEST: usize = 1024 * 1024;

/// Sends requests to authorization servers.
pub(super) struct TokenClient {
    pub(super) client: Client,
    /// Receives every secret that they issue.
    pub(super) redactor: Redactor,
}

impl OAuthHttpClient for TokenClient {
    fn execute(&self, asked: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.ask(asked))
    }
}

impl TokenClient {
    async fn ask(&self, asked: OAuthHttpRequest) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        // GET requests return metadata; POST requests return tokens and clients.
        let gives_secrets = asked.request.method() == http::Method::POST;
        let mut request = reqwest::Request::try_from(asked.request)?;
        *request.timeout_mut() = asked.timeout;
        let mut response = self.client.execute(request).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > LONGEST {
                return Err("the answer of the authorization server is too long".into());
            }
            body.extend_from_slice(&chunk);
        }
        if gives_secrets {
            redact_tokens(&self.redactor, &body).map_err(|problem| problem.to_string())?;
        }
        let mut answer = http::Response::new(body);
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        Ok(answer)
    }
}

/// Registers the secrets in a JSON text; other text contains none.
pub(super) fn redact_tokens(redactor: &Redactor, text: &[u8]) -> Result<(), Problem> {
    redactor.add_secrets(&tokens_in_json(text))
}
