//! A connection that is made when needed, and made again if it broke.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, watch};

use super::launch::Endpoint;
use super::session::Session;

/// The connection to a server, for all rows or for one.
#[derive(Debug)]
pub(super) struct Link {
    endpoint: Arc<Endpoint>,
    state: Mutex<State>,
    /// Held while a connection is made, so that all others wait for the same one.
    making: AsyncMutex<()>,
    closed: watch::Sender<bool>,
}

#[derive(Debug)]
enum State {
    Idle,
    Up(Arc<Session>),
    Closed,
}

/// Why there is no connection; follows "the tool failed: " in messages.
pub(super) type Away = String;

impl Link {
    /// A connection that is not made yet, or already is.
    pub(super) fn new(endpoint: Arc<Endpoint>, session: Option<Session>) -> Self {
        let state = session.map_or(State::Idle, |session| State::Up(Arc::new(session)));
        let (closed, _) = watch::channel(false);
        Self { endpoint, state: Mutex::new(state), making: AsyncMutex::new(()), closed }
    }

    /// The connection, made again if necessary.
    pub(super) async fn session(&self) -> Result<Arc<Session>, Away> {
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
    pub(super) fn lost(&self, session: &Arc<Session>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(&*state, State::Up(current) if Arc::ptr_eq(current, session)) {
            *state = State::Idle;
        }
    }

    /// Ends the connection for good.
    pub(super) async fn close(&self) {
        self.closed.send_replace(true);
        let state = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *state, State::Closed)
        };
        if let State::Up(session) = state {
            session.close().await;
        }
        // Once the lock is free, any other attempt to connect has given up.
        drop(self.making.lock().await);
    }

    /// The connection, if it is usable as far as is known.
    fn ready(&self) -> Result<Option<Arc<Session>>, Away> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Closed => Err(self.ended()),
            State::Up(session) if !session.is_over() => Ok(Some(Arc::clone(session))),
            State::Up(_) => {
                *state = State::Idle;
                Ok(None)
            }
            State::Idle => Ok(None),
        }
    }

    async fn make(&self) -> Result<Arc<Session>, Away> {
        let server = &self.endpoint.server;
        let mut why = String::new();
        for made in 0..server.reconnect.tries.max(1) {
            tokio::time::sleep(server.reconnect.wait(made)).await;
            match self.endpoint.open().await {
                Ok(session) => return self.adopt(session).await,
                Err(failure) => {
                    let what = format!("the MCP server `{}` {}", server.name, failure.what);
                    why = self.endpoint.shown.clean(&what);
                }
            }
        }
        self.endpoint.stays_away(&why);
        Err(why)
    }

    /// Makes a new connection the current one, unless the host has been closed in the meantime.
    async fn adopt(&self, session: Session) -> Result<Arc<Session>, Away> {
        let session = Arc::new(session);
        let open = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let open = !matches!(&*state, State::Closed);
            if open {
                *state = State::Up(Arc::clone(&session));
            }
            open
        };
        if open {
            return Ok(session);
        }
        session.close().await;
        Err(self.ended())
    }

    fn ended(&self) -> Away {
        format!("the connection with the MCP server `{}` was closed", self.endpoint.server.name)
    }
}
