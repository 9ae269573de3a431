//! The Gemini API over HTTP.

use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::{HeaderMap, HeaderName, HttpClient, RequestTarget, Url};
use rowmill_types::Problem;

use super::wire::GoogleWire;
use crate::build_model::{ModelSetup, delivery, json_headers};
use crate::call_error::CallErrorReporter;
use crate::connection::ProviderConnection;
use crate::files::{FileSender, MessageShape, UploadAddress};
use crate::http_model::{AnswerDelivery, HttpModel};

/// Builds a model that uses the Gemini API.
pub(crate) fn build_google_model(setup: &ModelSetup, http: &HttpClient) -> Result<Arc<dyn Model>, Problem> {
    let connection = &setup.connection;
    let delivery = delivery(setup)?;
    let version = missing_version(connection);
    let model = setup.model.model.trim_start_matches("models/");
    let (method, query) = match delivery {
        AnswerDelivery::Whole => ("generateContent", None),
        AnswerDelivery::Stream => ("streamGenerateContent", Some("alt=sse")),
    };
    let mut url = connection.address(&format!("{version}/models/{model}:{method}"))?;
    url.set_query(query);
    let headers = google_headers(connection, delivery)?;
    let place = UploadAddress {
        upload: google_file_address(connection, "upload", "files")?,
        files: connection.address(&format!("{version}/files"))?,
        headers: headers.clone(),
    };
    Ok(Arc::new(HttpModel {
        http: http.clone(),
        wire: GoogleWire::new(setup)?,
        delivery,
        idempotency: false,
        reporter: CallErrorReporter::new(connection, &url),
        target: RequestTarget::new(url, headers)?,
        files: Arc::new(FileSender::new(connection, http, MessageShape::Google, place)),
    }))
}

/// The version, if the base URL does not end with it.
pub(crate) fn missing_version(connection: &ProviderConnection) -> &'static str {
    let base = connection.base_url().unwrap_or_default().trim_end_matches('/');
    if base.ends_with("/v1beta") || base.ends_with("/v1") { "" } else { "/v1beta" }
}

/// The headers of requests.
pub(crate) fn google_headers(
    connection: &ProviderConnection,
    delivery: AnswerDelivery,
) -> Result<HeaderMap, Problem> {
    let mut headers = json_headers(delivery);
    if let Some(key) = &connection.key {
        headers.insert(HeaderName::from_static("x-goog-api-key"), connection.credential(key.reveal())?);
    }
    headers.extend(connection.headers.clone());
    Ok(headers)
}

/// A URL where the content of files is sent or fetched: below `/upload` or `/download`, which comes before the version.
pub(crate) fn google_file_address(
    connection: &ProviderConnection,
    action: &str,
    rest: &str,
) -> Result<Url, Problem> {
    let version = missing_version(connection);
    let mut url = connection.address("")?;
    let path = url.path().trim_end_matches('/').to_owned();
    let (before, version) = match path.rsplit_once('/') {
        Some((before, last)) if version.is_empty() => (before.to_owned(), format!("/{last}")),
        _ => (path, version.to_owned()),
    };
    url.set_path(&format!("{before}/{action}{version}/{rest}"));
    Ok(url)
}
