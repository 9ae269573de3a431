//! Chat completions over HTTP.

use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::{HeaderName, HttpClient, RequestTarget};
use rowmill_types::Problem;

use super::wire::ChatWire;
use crate::build_model::{ModelSetup, delivery, json_headers};
use crate::call_error::CallErrorReporter;
use crate::connection::ProviderConnection;
use crate::files::{FileSender, MessageShape, UploadAddress};
use crate::http_model::HttpModel;

/// Builds a model that uses a chat completions server.
pub(crate) fn build_chat_model(setup: &ModelSetup, http: &HttpClient) -> Result<Arc<dyn Model>, Problem> {
    let delivery = delivery(setup)?;
    let target = openai_target(&setup.connection, "/chat/completions", delivery)?;
    let files = openai_files(setup, http, MessageShape::Chat, &target)?;
    Ok(Arc::new(HttpModel {
        http: http.clone(),
        wire: ChatWire::new(setup, delivery),
        delivery,
        idempotency: setup.connection.quirks.idempotency,
        reporter: CallErrorReporter::new(&setup.connection, target.url()),
        target,
        files,
    }))
}

/// How files are sent to an OpenAI-style server; uploaded files are below the same base URL as its models.
pub(crate) fn openai_files(
    setup: &ModelSetup,
    http: &HttpClient,
    shape: MessageShape,
    target: &RequestTarget,
) -> Result<Arc<FileSender>, Problem> {
    let url = setup.connection.address("/files")?;
    let place = UploadAddress { upload: url.clone(), files: url, headers: target.headers().clone() };
    Ok(Arc::new(FileSender::new(&setup.connection, http, shape, place)))
}

/// A URL of an OpenAI-style server, with its key in the form that the server expects.
pub(crate) fn openai_target(
    connection: &ProviderConnection,
    path: &str,
    delivery: crate::http_model::AnswerDelivery,
) -> Result<RequestTarget, Problem> {
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
    RequestTarget::new(connection.address(path)?, headers)
}
