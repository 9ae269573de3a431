//! Accepting connections and serving requests on them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::BytesMut;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::deliver::{Delivered, deliver};
use crate::exchange::{Exchange, Shared};
use crate::incoming::{self, ReadFailure};
use crate::instant::{self, Canned};
use crate::outgoing::Outgoing;
use crate::protocol::Protocol;
use crate::recorder::RequestSeen;
use crate::websocket;

/// Enough for thousands of clients that connect in one moment.
const BACKLOG: u32 = 4096;

/// Listens on the loopback address only.
pub(crate) fn listen(port: u16) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    socket.listen(BACKLOG)
}

/// Serves until dropped; every connection ends with it.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let script = &shared.script;
    let canned = script.instant.as_deref().map(|text| Arc::new(Canned::new(text, script.answer_bytes)));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A connection that failed while it was being accepted is the client's affair.
                let Ok((stream, _)) = accepted else { continue };
                // Without it small answers would wait; where it fails they merely do.
                drop(stream.set_nodelay(true));
                shared.recorder.connected();
                connections.spawn(connection(stream, Arc::clone(&shared), canned.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(mut stream: TcpStream, shared: Arc<Shared>, canned: Option<Arc<Canned>>) {
    let mut buffer = BytesMut::with_capacity(8 * 1024);
    if let Some(canned) = canned {
        let goes_on = instant::serve(&mut stream, &mut buffer, &shared, &canned).await;
        if !goes_on {
            return;
        }
    }
    loop {
        let incoming = match incoming::read(&mut stream, &mut buffer).await {
            Ok(incoming) => incoming,
            Err(ReadFailure::Closed) => return,
            Err(ReadFailure::Invalid(what)) => {
                let outgoing = Outgoing::json(400, &[], &json!({"error": {"message": what}}));
                let exchange = Exchange::whole(outgoing);
                write(&mut stream, &mut buffer, &shared, &exchange).await;
                return;
            }
        };
        if websocket::is_wanted(&incoming.request) {
            websocket::serve(stream, buffer, &shared, &incoming.request).await;
            return;
        }
        let goes_on = serve_one(&mut stream, &mut buffer, &shared, &incoming.request).await;
        if !goes_on || !incoming.keep_alive {
            return;
        }
    }
}

/// Serves one request; whether the connection can serve another one.
async fn serve_one(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    shared: &Shared,
    request: &RequestSeen,
) -> bool {
    let path = request.path.split('?').next().unwrap_or_default();
    if path != "/stats" {
        shared.recorder.keep(request);
    }
    let protocol = Protocol::of(path);
    let Some(protocol) = protocol.filter(|_| request.method == "POST") else {
        let exchange = Exchange::whole(document(shared, request, path, protocol.is_some()));
        return deliver_whole(stream, buffer, shared, &exchange).await;
    };
    let call = shared.recorder.begin();
    let answered = tokio::select! {
        biased;
        exchange = shared.answer(protocol, request, &call) => Some(exchange),
        () = incoming::closed(stream, buffer) => None,
    };
    match answered {
        Some(exchange) => write(stream, buffer, shared, &exchange).await,
        None => {
            shared.recorder.abandoned();
            false
        }
    }
}

async fn write(stream: &mut TcpStream, buffer: &mut BytesMut, shared: &Shared, exchange: &Exchange) -> bool {
    let delivered = deliver(stream, buffer, &exchange.outgoing, exchange.delivery, &shared.gate).await;
    match delivered {
        Delivered::Complete => shared.recorder.written(exchange.outgoing.status, exchange.prompt.as_deref()),
        Delivered::Abandoned => shared.recorder.abandoned(),
        Delivered::Damaged => {}
    }
    delivered == Delivered::Complete
}

/// Writes what is no model's answer, which the statistics do not count.
async fn deliver_whole(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    shared: &Shared,
    exchange: &Exchange,
) -> bool {
    let delivered = deliver(stream, buffer, &exchange.outgoing, exchange.delivery, &shared.gate).await;
    delivered == Delivered::Complete
}

fn document(shared: &Shared, request: &RequestSeen, path: &str, is_model_path: bool) -> Outgoing {
    let is_read = request.method == "GET";
    if is_model_path {
        return Outgoing::json(405, &[], &json!({"error": {"message": "the method must be POST"}}));
    }
    if is_read && path == "/stats" {
        return Outgoing::json(200, &[], &json!(shared.recorder.stats()));
    }
    let text = path.strip_prefix("/text/").and_then(|name| shared.script.texts.get(name));
    match text.filter(|_| is_read) {
        Some(text) => Outgoing::text(200, text),
        None => Outgoing::json(404, &[], &json!({"error": {"message": format!("no such path: {path}")}})),
    }
}
