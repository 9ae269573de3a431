//! Name and password in an address.

use base64::Engine;
use rowmill_http::{HeaderValue, OriginCredential, Url};

use crate::percent::percent_decoded;

/// Removes name and password from an address; they are only for its own server.
#[must_use]
pub fn split_credential(url: &Url) -> (Url, Option<OriginCredential>) {
    let mut clean = url.clone();
    if clean.username().is_empty() && clean.password().is_none() {
        return (clean, None);
    }
    let decode = |text: &str| percent_decoded(text);
    let pair = format!("{}:{}", decode(url.username()), decode(url.password().unwrap_or_default()));
    // Addresses with a host, such as these, accept both.
    clean.set_username("").ok();
    clean.set_password(None).ok();
    let value = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
    let credential = HeaderValue::from_str(&value).ok().map(|mut value| {
        value.set_sensitive(true);
        OriginCredential { server: clean.clone(), value }
    });
    (clean, credential)
}
