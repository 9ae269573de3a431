//! Accepts connections, reads requests, writes answers and damages them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use rowmill_simulator::{RecordedRequest, read_request};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::answer::answer_hub_request;
use super::content::HubState;
use super::hub_answer::HubAnswer;

/// Which of the two ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubPort {
    /// The hub itself.
    Hub,
    /// The host of large files.
    Store,
}

/// The addresses of both ports.
#[derive(Debug, Clone, Copy)]
pub(super) struct HubAddresses {
    pub(super) hub: SocketAddr,
    pub(super) store: SocketAddr,
}

/// One request as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubRequest {
    /// The port that received it.
    pub host: HubPort,
    /// The request itself.
    pub seen: RecordedRequest,
}

/// Faults that are injected into some answers.
#[derive(Debug, Clone)]
pub struct ScriptedDamage {
    /// The affected port.
    pub host: HubPort,
    /// Affects only requests whose path contains this.
    pub path: String,
    /// The fault.
    pub damage: AnswerDamage,
    /// How many answers are affected; all if absent.
    pub times: Option<u32>,
}

/// A fault in an answer.
#[derive(Debug, Clone)]
pub enum AnswerDamage {
    /// The connection is closed after this many bytes of the body.
    CutAfter(usize),
    /// The connection is closed before this byte of the file.
    StopAt(u64),
    /// The first byte of the body is changed.
    WrongByte,
    /// Another status is returned.
    Status(u16, Vec<(String, String)>),
}

/// Serves both ports until dropped.
pub(super) async fn serve(
    hub: &TcpListener,
    store: &TcpListener,
    hosts: HubAddresses,
    state: &Arc<Mutex<HubState>>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (accepted, host) = tokio::select! {
            accepted = hub.accept() => (accepted, HubPort::Hub),
            accepted = store.accept() => (accepted, HubPort::Store),
            Some(_) = connections.join_next() => continue,
        };
        // A connection that failed while it was being accepted is the client's problem.
        if let Ok((stream, _)) = accepted {
            connections.spawn(connection(stream, host, hosts, Arc::clone(state)));
        }
    }
}

/// Serves one request.
async fn connection(mut stream: TcpStream, host: HubPort, hosts: HubAddresses, state: Arc<Mutex<HubState>>) {
    let Some(seen) = read_request(&mut stream, &mut BytesMut::new()).await else { return };
    let request = HubRequest { host, seen };
    let outgoing = {
        let mut state = lock(&state);
        state.requests.push(request.clone());
        let damage = damage(&mut state, &request);
        damaged(answer_hub_request(&state, hosts, &request), &request.seen, damage)
    };
    // The client may have disconnected.
    drop(stream.write_all(&outgoing).await);
    drop(stream.shutdown().await);
}

/// The damage that is to be done to the answer, if any.
fn damage(state: &mut HubState, request: &HubRequest) -> Option<AnswerDamage> {
    let trouble = state.troubles.iter_mut().find(|trouble| {
        let is_body = request.seen.method == "GET" || matches!(trouble.damage, AnswerDamage::Status(..));
        trouble.host == request.host
            && request.seen.path.contains(&trouble.path)
            && trouble.times != Some(0)
            && is_body
    })?;
    trouble.times = trouble.times.map(|times| times - 1);
    Some(trouble.damage.clone())
}

/// The bytes of an answer after the damage.
fn damaged(outgoing: HubAnswer, request: &RecordedRequest, damage: Option<AnswerDamage>) -> Vec<u8> {
    let HubAnswer { start, .. } = outgoing;
    let (outgoing, length) = match damage {
        Some(AnswerDamage::Status(status, headers)) => {
            (HubAnswer::new(status, headers, Vec::new()), usize::MAX)
        }
        Some(AnswerDamage::CutAfter(bytes)) => (outgoing, bytes),
        Some(AnswerDamage::StopAt(byte)) => {
            (outgoing, usize::try_from(byte - start.min(byte)).unwrap_or_default())
        }
        Some(AnswerDamage::WrongByte) => {
            let mut outgoing = outgoing;
            if let Some(first) = outgoing.body.first_mut() {
                *first ^= 1;
            }
            (outgoing, usize::MAX)
        }
        None => (outgoing, usize::MAX),
    };
    let mut bytes = outgoing.head();
    if request.method != "HEAD" {
        bytes.extend(outgoing.body.iter().take(length));
    }
    bytes
}

fn lock(state: &Mutex<HubState>) -> MutexGuard<'_, HubState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
