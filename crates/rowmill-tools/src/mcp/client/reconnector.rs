//! A connection that is made when needed, and made again if it broke.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, watch};

use super::connect::McpEndpoint;
use super::session::McpSession;

/// The connection to a server, for all rows or for one.
#[derive(Debug)]
pub(super) struct Reconnector {
    endpoint: Arc<McpEndpoint>,
    state: Mutex<LinkState>,
    /// Held while a connection is made, so that all others wait for the same one.
    making: AsyncMutex<()>,
    closed: watch::Sender<bool>,
}

#[derive(Debug)]
enum LinkState {
    Idle,
    Up(Arc<McpSession>),
    Closed,
}

/// Why there is no connection; follows "the tool failed: " in messages.
pub(super) type ConnectionFailure = String;

impl Reconnector {
    /// A connection that is not made yet, or already is.
    pub(super) fn new(endpoint: Arc<McpEndpoint>, session: Option<McpSession>) -> Self {
        let state = session.map_or(LinkState::Idle, |session| LinkState::Up(Arc::new(session)));
        let (closed, _) = watch::channel(false);
        Self { endpoint, state: Mutex::new(state), making: AsyncMutex::new(()), closed }
    }

    /// The connection, made again if necessary.
    pub(super) async fn session(&self) -> Result<Arc<McpSession>, ConnectionFailure> {
        if let Some(session) = self.ready()? {
            return Ok(session);
        }
        let _making = self.making.lock().await;
        if let Some(session) = self.ready()? {
            return Ok(session);
        }
        if let Some(why) = self.endpoint.outage() {
            return Err(why);
        }
        let mut closed = self.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(self.ended()),
            made = self.make() => made,
        }
    }

    /// Marks the connection as broken; the next call makes a new one.
    pub(super) fn mark_broken(&self, session: &Arc<McpSession>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(&*state, LinkState::Up(current) if Arc::ptr_eq(current, session)) {
            *state = LinkState::Idle;
        }
    }

    /// Ends the connection for good.
    pub(super) async fn close(&self) {
        self.closed.send_replace(true);
        let state = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *state, LinkState::Closed)
        };
        if let LinkState::Up(session) = state {
            session.close().await;
        }
        // Once the lock is free, any other attempt to connect has given up.
        drop(self.making.lock().await);
    }

    /// The connection, if it is usable as far as is known.
    fn ready(&self) -> Result<Option<Arc<McpSession>>, ConnectionFailure> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            LinkState::Closed => Err(self.ended()),
            LinkState::Up(session) if !session.has_ended() => Ok(Some(Arc::clone(session))),
            LinkState::Up(_) => {
                *state = LinkState::Idle;
                Ok(None)
            }
            LinkState::Idle => Ok(None),
        }
    }

    async fn make(&self) -> Result<Arc<McpSession>, ConnectionFailure> {
        let server = &self.endpoint.server;
        let mut why = String::new();
        for made in 0..server.reconnect.tries.max(1) {
            tokio::time::sleep(server.reconnect.wait_before(made)).await;
            match self.endpoint.connect().await {
                Ok(session) => return self.adopt(session).await,
                Err(failure) => {
                    let what = format!("the MCP server `{}` {}", server.name, failure.what);
                    why = self.endpoint.shown.redact(&what);
                }
            }
        }
        self.endpoint.mark_down(&why);
        Err(why)
    }

    /// Makes a new connection the current one, unless the host has been closed in the meantime.
    async fn adopt(&self, session: McpSession) -> Result<Arc<McpSession>, ConnectionFailure> {
        let session = Arc::new(session);
        let open = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let open = !matches!(&*state, LinkState::Closed);
            if open {
                *state = LinkState::Up(Arc::clone(&session));
            }
            open
        };
        if open {
            return Ok(session);
        }
        session.close().await;
        Err(self.ended())
    }

    fn ended(&self) -> ConnectionFailure {
        format!("the connection with the MCP server `{}` was closed", self.endpoint.server.name)
    }
}
