//! Requests to authorization servers: the tokens that they issue are registered as secrets before they are
//! used.

use reqwest::Client;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use rowmill_core::redact::{Redactor, is_secret_name};
use rowmill_types::{Problem, Secret};
use serde_json::Value;

/// The maximum size of a response.
const LONGEST: usize = 1024 * 1024;
/// Fields whose names look like secrets but whose values are settings.
const SETTINGS: [&str; 3] = ["token_type", "issued_token_type", "token_endpoint_auth_method"];

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

/// The secrets in a JSON text, identified by the names of its fields.
pub(super) fn tokens_in_json(text: &[u8]) -> Vec<Secret> {
    let mut found = Vec::new();
    add_tokens(&serde_json::from_slice(text).unwrap_or_default(), &mut found);
    found
}

fn add_tokens(value: &Value, found: &mut Vec<Secret>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(name, _)| !SETTINGS.contains(&name.as_str())) {
                match field.as_str() {
                    Some(text) if is_secret_name(name) => found.push(Secret::new(text)),
                    _ => add_tokens(field, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_tokens(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_client_secrets_are_secrets_and_settings_are_none() {
        let text = br#"{"access_token": "a", "token_type": "Bearer", "expires_in": 5, "scope": "read",
            "more": [{"id_token": "i", "client_id": "c"}], "client_secret": "s",
            "token_endpoint_auth_method": "client_secret_basic", "registration_access_token": "r"}"#;
        let found: Vec<_> = tokens_in_json(text).iter().map(|secret| secret.reveal().to_owned()).collect();
        assert_eq!(found, ["a", "i", "s", "r"]);
        assert!(tokens_in_json(b"access_token=a").is_empty());
    }
}
