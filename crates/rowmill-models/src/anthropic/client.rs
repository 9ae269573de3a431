//! The Messages API over HTTP.

use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::{HeaderName, HeaderValue, HttpClient, Target};
use rowmill_types::Problem;

use super::tools::FETCH_BETA;
use super::wire::AnthropicWire;
use crate::build::{Setup, delivery, json_headers};
use crate::call::Reporter;
use crate::exchange::Exchange;
use crate::files::{Files, Place, Shape, add_beta};
use crate::settings::Key;
use crate::tools::hosts;

/// The version of the API that is used.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// Builds a model that uses the Messages API.
pub(crate) fn build(setup: &Setup, http: &HttpClient) -> Result<Arc<dyn Model>, Problem> {
    let connection = &setup.connection;
    let delivery = delivery(setup)?;
    // The base URL should not contain `/v1`, but many users write it.
    let has_version = connection.base_url().is_some_and(|url| url.trim_end_matches('/').ends_with("/v1"));
    let url = connection.address(if has_version { "/messages" } else { "/v1/messages" })?;
    let mut headers = json_headers(delivery);
    headers.insert(HeaderName::from_static("anthropic-version"), VERSION);
    if let Some(key) = &connection.key {
        headers.insert(HeaderName::from_static("x-api-key"), connection.credential(key.reveal())?);
    }
    headers.extend(connection.headers.clone());
    if hosts(&setup.model.settings, Key::WebFetch) {
        add_beta(&mut headers, FETCH_BETA);
    }
    let stored = connection.address(if has_version { "/files" } else { "/v1/files" })?;
    let place = Place { upload: stored.clone(), files: stored, headers: headers.clone() };
    Ok(Arc::new(Exchange {
        http: http.clone(),
        wire: AnthropicWire::new(setup, delivery)?,
        delivery,
        idempotency: false,
        reporter: Reporter::new(connection, &url),
        target: Target::new(url, headers)?,
        files: Arc::new(Files::new(connection, http, Shape::Anthropic, place)),
    }))
}
