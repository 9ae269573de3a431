//! The Responses API over HTTP, or over a WebSocket with HTTP as the fallback.

use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::HttpClient;
use rowmill_types::Problem;

use super::socket::{HttpFallback, SocketModel, SocketPool};
use super::wire::{RequestCarrier, ResponsesWire, check_settings};
use crate::build_model::{ModelSetup, delivery};
use crate::call_error::CallErrorReporter;
use crate::chat::client::{openai_files, openai_target};
use crate::files::{FileSender, MessageShape};
use crate::http_model::{AnswerDelivery, HttpModel};
use crate::model_settings::ModelSettingKey;

/// Builds a model that uses the Responses API.
pub(crate) fn build_responses_model(
    setup: &ModelSetup,
    http: &HttpClient,
) -> Result<Arc<dyn Model>, Problem> {
    let delivery = delivery(setup)?;
    check_settings(setup)?;
    let transport = setup.model.settings.word(ModelSettingKey::Transport);
    if !matches!(transport, Some("ws" | "auto")) {
        return Ok(Arc::new(exchange(setup, http, delivery, None)?));
    }
    let target = openai_target(&setup.connection, "/responses", AnswerDelivery::Stream)?;
    let files = openai_files(setup, http, MessageShape::Responses, &target)?;
    let reporter = CallErrorReporter::new(&setup.connection, target.url());
    let fallback = match transport {
        Some("auto") => {
            let exchange = exchange(setup, http, AnswerDelivery::Stream, Some(Arc::clone(&files)))?;
            Some(HttpFallback::new(exchange, Arc::clone(&setup.notice)))
        }
        _ => None,
    };
    Ok(Arc::new(SocketModel {
        wire: ResponsesWire::new(setup, RequestCarrier::Socket),
        sockets: SocketPool::new(&target, http.timeouts())?,
        reporter,
        fallback,
        files,
    }))
}

fn exchange(
    setup: &ModelSetup,
    http: &HttpClient,
    delivery: AnswerDelivery,
    shared: Option<Arc<FileSender>>,
) -> Result<HttpModel<ResponsesWire>, Problem> {
    let target = openai_target(&setup.connection, "/responses", delivery)?;
    let files = match shared {
        Some(files) => files,
        None => openai_files(setup, http, MessageShape::Responses, &target)?,
    };
    let carrier = match delivery {
        AnswerDelivery::Whole => RequestCarrier::Whole,
        AnswerDelivery::Stream => RequestCarrier::Stream,
    };
    Ok(HttpModel {
        http: http.clone(),
        wire: ResponsesWire::new(setup, carrier),
        delivery,
        idempotency: setup.connection.quirks.idempotency,
        reporter: CallErrorReporter::new(&setup.connection, target.url()),
        target,
        files,
    })
}
