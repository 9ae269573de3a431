//! The Messages API over HTTP.

use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::{HeaderMap, HeaderName, HeaderValue, HttpClient, RequestTarget, Url};
use rowmill_types::Problem;

use super::tools::FETCH_BETA;
use super::wire::AnthropicWire;
use crate::build_model::{ModelSetup, delivery, json_headers};
use crate::call_error::CallErrorReporter;
use crate::connection::ProviderConnection;
use crate::files::{FileSender, MessageShape, UploadAddress, add_beta};
use crate::http_model::{AnswerDelivery, HttpModel};
use crate::model_settings::ModelSettingKey;
use crate::tool_calls::hosts_tool;

/// The version of the API that is used.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// Builds a model that uses the Messages API.
pub(crate) fn build_anthropic_model(
    setup: &ModelSetup,
    http: &HttpClient,
) -> Result<Arc<dyn Model>, Problem> {
    let connection = &setup.connection;
    let delivery = delivery(setup)?;
    let url = anthropic_address(connection, "/messages")?;
    let headers = anthropic_headers(setup, delivery)?;
    let stored = anthropic_address(connection, "/files")?;
    let place = UploadAddress { upload: stored.clone(), files: stored, headers: headers.clone() };
    Ok(Arc::new(HttpModel {
        http: http.clone(),
        wire: AnthropicWire::new(setup, delivery)?,
        delivery,
        idempotency: false,
        reporter: CallErrorReporter::new(connection, &url),
        target: RequestTarget::new(url, headers)?,
        files: Arc::new(FileSender::new(connection, http, MessageShape::Anthropic, place)),
    }))
}

/// A URL of the API.
pub(crate) fn anthropic_address(connection: &ProviderConnection, path: &str) -> Result<Url, Problem> {
    // The base URL should not contain `/v1`, but many users write it.
    let has_version = connection.base_url().is_some_and(|url| url.trim_end_matches('/').ends_with("/v1"));
    connection.address(&format!("{}{path}", if has_version { "" } else { "/v1" }))
}

/// The headers of requests.
pub(crate) fn anthropic_headers(setup: &ModelSetup, delivery: AnswerDelivery) -> Result<HeaderMap, Problem> {
    let connection = &setup.connection;
    let mut headers = json_headers(delivery);
    headers.insert(HeaderName::from_static("anthropic-version"), VERSION);
    if let Some(key) = &connection.key {
        headers.insert(HeaderName::from_static("x-api-key"), connection.credential(key.reveal())?);
    }
    headers.extend(connection.headers.clone());
    if hosts_tool(&setup.model.settings, ModelSettingKey::WebFetch) {
        add_beta(&mut headers, FETCH_BETA);
    }
    Ok(headers)
}
