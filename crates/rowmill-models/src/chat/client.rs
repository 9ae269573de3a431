//! Chat completions over HTTP.

use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::{HeaderName, HttpClient, Target};
use rowmill_types::Problem;

use super::wire::ChatWire;
use crate::build::{Setup, delivery, json_headers};
use crate::call::Reporter;
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::files::{Files, Place, Shape};

/// Builds a model that uses a chat completions server.
pub(crate) fn build(setup: &Setup, http: &HttpClient) -> Result<Arc<dyn Model>, Problem> {
    let delivery = delivery(setup)?;
    let target = target(&setup.connection, "/chat/completions", delivery)?;
    let files = files(setup, http, Shape::Chat, &target)?;
    Ok(Arc::new(Exchange {
        http: http.clone(),
        wire: ChatWire::new(setup, delivery),
        delivery,
        idempotency: setup.connection.quirks.idempotency,
        reporter: Reporter::new(&setup.connection, target.url()),
        target,
        files,
    }))
}

/// How files are sent to an OpenAI-style server; uploaded files are below the same base URL as its models.
pub(crate) fn files(
    setup: &Setup,
    http: &HttpClient,
    shape: Shape,
    target: &Target,
) -> Result<Arc<Files>, Problem> {
    let url = setup.connection.address("/files")?;
    let place = Place { upload: url.clone(), files: url, headers: target.headers().clone() };
    Ok(Arc::new(Files::new(&setup.connection, http, shape, place)))
}

/// A URL of an OpenAI-style server, with its key in the form that the server expects.
pub(crate) fn target(
    connection: &Connection,
    path: &str,
    delivery: crate::exchange::Delivery,
) -> Result<Target, Problem> {
    let mut headers = json_headers(delivery);
    if let Some(key) = &connection.key {
        let (name, value) = if connection.quirks.api_key_header {
            (HeaderName::from_static("api-key"), connection.credential(key.reveal())?)
        } else {
            let bearer = format!("Bearer {}", key.reveal());
            (HeaderName::from_static("authorization"), connection.credential(&bearer)?)
        };
        headers.insert(name, value);
    }
    headers.extend(connection.headers.clone());
    Target::new(connection.address(path)?, headers)
}
