//! The Gemini API over HTTP.

use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::{HeaderName, HttpClient, Target, Url};
use rowmill_types::Problem;

use super::wire::GoogleWire;
use crate::build::{Setup, delivery, json_headers};
use crate::call::Reporter;
use crate::connection::Connection;
use crate::exchange::{Delivery, Exchange};
use crate::files::{Files, Place, Shape};

/// Builds a model that uses the Gemini API.
pub(crate) fn build(setup: &Setup, http: &HttpClient) -> Result<Arc<dyn Model>, Problem> {
    let connection = &setup.connection;
    let delivery = delivery(setup)?;
    let base = connection.base_url().unwrap_or_default().trim_end_matches('/').to_owned();
    let version = if base.ends_with("/v1beta") || base.ends_with("/v1") { "" } else { "/v1beta" };
    let model = setup.model.model.trim_start_matches("models/");
    let (method, query) = match delivery {
        Delivery::Whole => ("generateContent", None),
        Delivery::Stream => ("streamGenerateContent", Some("alt=sse")),
    };
    let mut url = connection.address(&format!("{version}/models/{model}:{method}"))?;
    url.set_query(query);
    let mut headers = json_headers(delivery);
    if let Some(key) = &connection.key {
        headers.insert(HeaderName::from_static("x-goog-api-key"), connection.credential(key.reveal())?);
    }
    headers.extend(connection.headers.clone());
    let place = Place {
        upload: upload_address(connection, version)?,
        files: connection.address(&format!("{version}/files"))?,
        headers: headers.clone(),
    };
    Ok(Arc::new(Exchange {
        http: http.clone(),
        wire: GoogleWire::new(setup)?,
        delivery,
        idempotency: false,
        reporter: Reporter::new(connection, &url),
        target: Target::new(url, headers)?,
        files: Arc::new(Files::new(connection, http, Shape::Google, place)),
    }))
}

/// The upload URL: below `/upload`, which comes before the version.
fn upload_address(connection: &Connection, version: &str) -> Result<Url, Problem> {
    let mut url = connection.address("")?;
    let path = url.path().trim_end_matches('/').to_owned();
    let (before, version) = match path.rsplit_once('/') {
        Some((before, last)) if version.is_empty() => (before.to_owned(), format!("/{last}")),
        _ => (path, version.to_owned()),
    };
    url.set_path(&format!("{before}/upload{version}/files"));
    Ok(url)
}
