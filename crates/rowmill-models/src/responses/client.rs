//! The Responses API over HTTP, or over a WebSocket with HTTP as the fallback.

use std::sync::Arc;

use rowmill_core::ports::Model;
use rowmill_http::HttpClient;
use rowmill_types::Problem;

use super::socket::{Fallback, SocketModel, Sockets};
use super::wire::{Carrier, ResponsesWire, check};
use crate::build::{Setup, delivery};
use crate::call::Reporter;
use crate::chat::client::{files, target};
use crate::exchange::{Delivery, Exchange};
use crate::files::{Files, Shape};
use crate::settings::Key;

/// Builds a model that uses the Responses API.
pub(crate) fn build(setup: &Setup, http: &HttpClient) -> Result<Arc<dyn Model>, Problem> {
    let delivery = delivery(setup)?;
    check(setup)?;
    let transport = setup.model.settings.word(Key::Transport);
    if !matches!(transport, Some("ws" | "auto")) {
        return Ok(Arc::new(exchange(setup, http, delivery, None)?));
    }
    let target = target(&setup.connection, "/responses", Delivery::Stream)?;
    let files = files(setup, http, Shape::Responses, &target)?;
    let reporter = Reporter::new(&setup.connection, target.url());
    let fallback = match transport {
        Some("auto") => {
            let exchange = exchange(setup, http, Delivery::Stream, Some(Arc::clone(&files)))?;
            Some(Fallback::new(exchange, Arc::clone(&setup.notice)))
        }
        _ => None,
    };
    Ok(Arc::new(SocketModel {
        wire: ResponsesWire::new(setup, Carrier::Socket),
        sockets: Sockets::new(&target, http.timeouts())?,
        reporter,
        fallback,
        files,
    }))
}

fn exchange(
    setup: &Setup,
    http: &HttpClient,
    delivery: Delivery,
    shared: Option<Arc<Files>>,
) -> Result<Exchange<ResponsesWire>, Problem> {
    let target = target(&setup.connection, "/responses", delivery)?;
    let files = match shared {
        Some(files) => files,
        None => files(setup, http, Shape::Responses, &target)?,
    };
    let carrier = match delivery {
        Delivery::Whole => Carrier::Whole,
        Delivery::Stream => Carrier::Stream,
    };
    Ok(Exchange {
        http: http.clone(),
        wire: ResponsesWire::new(setup, carrier),
        delivery,
        idempotency: setup.connection.quirks.idempotency,
        reporter: Reporter::new(&setup.connection, target.url()),
        target,
        files,
    })
}
