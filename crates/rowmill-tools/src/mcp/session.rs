//! One connection to a server, from its handshake to its end.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientConfig, ClientRequest, ErrorData, RequestId,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RunningService, ServiceError};
use tokio::time::{Instant, timeout_at};

use super::call::{self, Lost};
use super::process::Process;
use super::sent::Sent;

/// How long closing a connection may take before its process is ended anyway.
const FAREWELL: Duration = Duration::from_secs(3);

/// The SDK's running service of a connection.
pub(super) type Running = RunningService<RoleClient, ClientConfig>;

/// A connection. Dropping it closes it, and kills its process.
pub(super) struct Session {
    peer: Peer<RoleClient>,
    sent: Sent,
    inner: Mutex<Inner>,
}

struct Inner {
    running: Option<Running>,
    process: Option<Process>,
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Session").field("over", &self.is_over()).finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn new(running: Running, process: Option<Process>, sent: Sent) -> Self {
        let peer = running.peer().clone();
        let inner = Inner { running: Some(running), process };
        Self { peer, sent, inner: Mutex::new(inner) }
    }

    /// The peer, for requests that do not go through [`Self::ask`].
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    /// Whether the connection has ended.
    pub(super) fn is_over(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Sends a request and waits for the answer, for at most `timeout`. Dropping the future cancels the
    /// request.
    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        timeout: Duration,
    ) -> Result<Result<ServerResult, ErrorData>, Lost> {
        let until = Instant::now() + timeout;
        let sending = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let mut handle = match timeout_at(until, sending).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(_)) => return Err(Lost::broken("the connection is closed", false)),
            Err(_) => return Err(Lost::TimedOut { maybe_ran: false }),
        };
        let mut pending = Pending { session: self, id: Some(handle.id.clone()) };
        let Ok(answer) = timeout_at(until, &mut handle.rx).await else {
            return Err(Lost::TimedOut { maybe_ran: pending.cancel() });
        };
        let left = pending.over();
        match answer {
            Ok(Ok(result)) => Ok(Ok(result)),
            Ok(Err(ServiceError::McpError(error))) => Ok(Err(error)),
            Ok(Err(ServiceError::TransportSend(error))) => Err(call::failed_to_send(&error, left)),
            Ok(Err(error)) => Err(Lost::broken(error.to_string(), left)),
            Err(_) => Err(Lost::broken("the connection broke", left)),
        }
    }

    /// Closes the connection and ends the process.
    pub(super) async fn close(&self) {
        let (running, process) = {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            (inner.running.take(), inner.process.take())
        };
        if let Some(mut running) = running {
            // Whether it closed in time makes no difference to what follows.
            drop(running.close_with_timeout(FAREWELL).await);
        }
        if let Some(mut process) = process {
            process.end().await;
        }
    }

    /// Kills the process and returns its last output.
    pub(super) async fn post_mortem(&self) -> Option<String> {
        let process = self.inner.lock().unwrap_or_else(PoisonError::into_inner).process.take();
        let mut process = process?;
        process.bury().await;
        process.last_words().await
    }
}

/// A pending request; dropping it cancels it.
struct Pending<'a> {
    session: &'a Session,
    id: Option<RequestId>,
}

impl Pending<'_> {
    /// Marks it as answered, or as never to be answered. Returns whether it had been sent.
    fn over(&mut self) -> bool {
        self.id.take().is_some_and(|id| self.session.sent.forget(&id))
    }

    /// Cancels it and notifies the server. Returns whether it had been sent.
    fn cancel(&mut self) -> bool {
        let Some(id) = self.id.take() else { return false };
        let left = self.session.sent.give_up(&id);
        let reason = Some("nobody waits for it any more".to_owned());
        let notification = CancelledNotification::new(CancelledNotificationParam::new(Some(id), reason));
        // The notification is queued at the first poll; nothing waits until it has been sent.
        drop(self.session.peer.send_notification(notification.into()).now_or_never());
        left
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.cancel();
    }
}
