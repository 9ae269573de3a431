//! The files of tokens that sign-ins have left.

use std::path::{Path, PathBuf};

use rowmill_core::redact::is_secret_name;
use rowmill_http::Url;
use rowmill_types::{Problem, ProblemCode, Secret};
use serde_json::Value;

/// Fields whose names look like secrets but whose values are settings.
const SETTINGS: [&str; 3] = ["token_type", "issued_token_type", "token_endpoint_auth_method"];

/// The file in `folder` for the tokens of the server at `url`.
#[must_use]
pub fn token_path(folder: &Path, url: &str) -> PathBuf {
    let digest = ring::digest::digest(&ring::digest::SHA256, address_without_secrets(url.trim()).as_bytes());
    let name: String = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("{name}.json"))
}

/// The tokens in a file, for callers that keep texts which may contain one; empty if the file cannot be read.
#[must_use]
pub fn read_sign_in_tokens(file: &Path) -> Vec<Secret> {
    tokens_in_json(&std::fs::read(file).unwrap_or_default())
}

/// Deletes the tokens in a file, and returns whether there were any.
///
/// # Errors
///
/// The file cannot be removed.
pub fn forget_tokens(file: &Path) -> Result<bool, Problem> {
    match std::fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            let message = format!("the tokens in `{}` cannot be removed", file.display());
            Err(Problem::new(ProblemCode::ToolServer, message).cause(error).hint("check its permissions"))
        }
    }
}

/// The secrets in a JSON text, identified by the names of its fields.
pub(in crate::mcp) fn tokens_in_json(text: &[u8]) -> Vec<Secret> {
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

/// A URL without anything in it that may be secret.
pub(in crate::mcp) fn address_without_secrets(url: &str) -> String {
    let Ok(mut address) = Url::parse(url) else { return url.to_owned() };
    address.set_query(None);
    address.set_fragment(None);
    let is_bare = address.set_username("").is_ok() && address.set_password(None).is_ok();
    if is_bare { address.to_string() } else { address.origin().ascii_serialization() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_may_be_secret_is_left_of_an_address() {
        let whole = "https://me:pass@docs.test:8443/mcp?key=4711#x";
        assert_eq!(address_without_secrets(whole), "https://docs.test:8443/mcp");
    }

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
