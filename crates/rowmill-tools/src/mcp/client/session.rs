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

use super::lost_call::{self, LostCall};
use super::process::ServerProcess;
use super::sent_requests::SentRequests;

/// How long closing a connection may take before its process is ended anyway.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The SDK's running service of a connection.
pub(super) type RunningClient = RunningService<RoleClient, ClientConfig>;

/// A connection. Dropping it closes it, and kills its process.
pub(super) struct McpSession {
    peer: Peer<RoleClient>,
    sent: SentRequests,
    inner: Mutex<SessionParts>,
}

struct SessionParts {
    running: Option<RunningClient>,
    process: Option<ServerProcess>,
}

impl fmt::Debug for McpSession {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Session").field("over", &self.has_ended()).finish_non_exhaustive()
    }
}

impl McpSession {
    pub(super) fn new(running: RunningClient, process: Option<ServerProcess>, sent: SentRequests) -> Self {
        let peer = running.peer().clone();
        let inner = SessionParts { running: Some(running), process };
        Self { peer, sent, inner: Mutex::new(inner) }
    }

    /// The peer, for requests that do not go through [`Self::ask`].
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    /// Whether the connection has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Sends a request and waits for the answer, for at most `timeout`. Dropping the future cancels the
    /// request.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        timeout: Duration,
    ) -> Result<Result<ServerResult, ErrorData>, LostCall> {
        let until = Instant::now() + timeout;
        let sending = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let mut handle = match timeout_at(until, sending).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(_)) => return Err(LostCall::broken("the connection is closed", false)),
            Err(_) => return Err(LostCall::TimedOut { maybe_ran: false }),
        };
        let mut pending = PendingRequest { session: self, id: Some(handle.id.clone()) };
        let Ok(answer) = timeout_at(until, &mut handle.rx).await else {
            return Err(LostCall::TimedOut { maybe_ran: pending.cancel() });
        };
        let left = pending.over();
        match answer {
            Ok(Ok(result)) => Ok(Ok(result)),
            Ok(Err(ServiceError::McpError(error))) => Ok(Err(error)),
            Ok(Err(ServiceError::TransportSend(error))) => Err(lost_call::failed_to_send(&error, left)),
            Ok(Err(error)) => Err(LostCall::broken(error.to_string(), left)),
            Err(_) => Err(LostCall::broken("the connection broke", left)),
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
            drop(running.close_with_timeout(CLOSE_TIMEOUT).await);
        }
        if let Some(mut process) = process {
            process.end().await;
        }
    }

    /// Kills the process and returns its last output.
    pub(super) async fn kill_and_describe(&self) -> Option<String> {
        let process = self.inner.lock().unwrap_or_else(PoisonError::into_inner).process.take();
        let mut process = process?;
        process.kill_and_reap().await;
        process.last_output().await
    }
}

/// A pending request; dropping it cancels it.
struct PendingRequest<'a> {
    session: &'a McpSession,
    id: Option<RequestId>,
}

impl PendingRequest<'_> {
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

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.cancel();
    }
}
