//! A connector with a timeout.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use tower_service::Service;

use crate::timeouts::HttpTimeouts;

/// Applies one limit to all of connecting: name resolution, TCP and TLS.
///
/// The limit of the TCP connector covers neither the name resolution nor the handshake after it.
#[derive(Debug, Clone)]
pub(crate) struct TimeoutConnector<C> {
    pub(crate) connector: C,
    pub(crate) timeouts: HttpTimeouts,
}

type BoxError = Box<dyn Error + Send + Sync>;

impl<C> Service<Uri> for TimeoutConnector<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    type Response = C::Response;
    type Error = BoxError;
    // A connection serves many calls, so this allocation does not slow each of them.
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let timeouts = self.timeouts;
        let connecting = self.connector.call(uri);
        Box::pin(async move {
            match tokio::time::timeout(timeouts.connect, connecting).await {
                Ok(connected) => connected.map_err(Into::into),
                Err(_) => Err(timeouts.connect_timeout_failure().into()),
            }
        })
    }
}
