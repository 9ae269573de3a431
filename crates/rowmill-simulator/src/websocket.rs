//! The Responses protocol over a WebSocket: many calls, one after the other.

use bytes::BytesMut;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::answer_plan::{AnswerPlan, CallRejection};
use crate::deliver;
use crate::fault::{AnswerDelivery, SimulatedFault};
use crate::outgoing_answer::OutgoingAnswer;
use crate::protocol::{RequestRefusal, VendorProtocol, responses};
use crate::recorder::RecordedRequest;
use crate::simulator_state::SimulatorState;

type Socket = WebSocketStream<TcpStream>;

/// Whether a request asks for a WebSocket on the path that supports it.
pub(crate) fn is_wanted(request: &RecordedRequest) -> bool {
    request.method == "GET"
        && request.path.split('?').next() == Some("/v1/responses")
        && request.header("upgrade").is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
}

/// Performs the handshake and serves until either side closes the socket.
pub(crate) async fn serve(
    mut stream: TcpStream,
    buffer: BytesMut,
    shared: &SimulatorState,
    request: &RecordedRequest,
) {
    shared.recorder.keep(request);
    if let Err(refused) = VendorProtocol::Responses.check_headers(request, shared.script.key.as_deref()) {
        let outgoing = OutgoingAnswer::json(refused.status, &[], &VendorProtocol::Responses.error(&refused));
        if stream.write_all(&[outgoing.head, outgoing.pieces.concat()].concat()).await.is_ok() {
            shared.recorder.record_written(refused.status, None);
        }
        return;
    }
    let accepted = derive_accept_key(request.header("sec-websocket-key").unwrap_or_default().as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {accepted}\r\n\r\n"
    );
    if stream.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    let mut socket = WebSocketStream::from_partially_read(stream, buffer.to_vec(), Role::Server, None).await;
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let message = RecordedRequest {
            method: "WEBSOCKET".to_owned(),
            path: request.path.clone(),
            headers: request.headers.clone(),
            body: text.as_bytes().to_vec(),
        };
        if !serve_one(&mut socket, shared, message).await {
            return;
        }
    }
}

/// Serves one `response.create`; returns whether the socket can serve another one.
async fn serve_one(socket: &mut Socket, shared: &SimulatorState, request: RecordedRequest) -> bool {
    shared.recorder.keep(&request);
    let call = shared.recorder.begin();
    let planned = match request.json().get("type").and_then(Value::as_str) {
        Some("response.create") => {
            let plan = shared.plan(VendorProtocol::Responses, &request, &call);
            tokio::select! {
                biased;
                planned = plan => planned,
                () = ended(socket) => {
                    shared.recorder.record_abandoned();
                    return false;
                }
            }
        }
        _ => Err(RequestRefusal::new(400, "the event must be `response.create`").into()),
    };
    match planned {
        Ok(plan) => answer(socket, shared, plan).await,
        Err(CallRejection::Reset) => {
            deliver::reset(socket.get_ref());
            false
        }
        Err(CallRejection::Refused(refused)) => {
            let sent = send(socket, &[responses::error_event(&refused)]).await;
            if sent.is_ok() {
                shared.recorder.record_written(refused.status, None);
            }
            sent.is_ok()
        }
    }
}

async fn answer(socket: &mut Socket, shared: &SimulatorState, mut plan: AnswerPlan<'_>) -> bool {
    let mut status = 200;
    let events = match plan.fault() {
        Some(SimulatedFault::Status { code, body, .. }) => {
            status = *code;
            let vendor = VendorProtocol::Responses.status_error(*code);
            let body = body.as_ref().and_then(|body| serde_json::from_str(body).ok()).unwrap_or(vendor);
            vec![json!({"type": "error", "status": code, "error": body["error"]})]
        }
        Some(SimulatedFault::Garbage) => vec![json!("<html>")],
        _ => {
            let reply = shared.generate(&mut plan);
            responses::events(&plan.ask, &reply)
        }
    };
    let fault = plan.fault();
    match AnswerDelivery::from_fault(fault) {
        AnswerDelivery::Whole => {}
        AnswerDelivery::Hang => {
            ended(socket).await;
            shared.recorder.record_abandoned();
            return false;
        }
        AnswerDelivery::Reset => {
            deliver::reset(socket.get_ref());
            return false;
        }
        AnswerDelivery::ResetMidway | AnswerDelivery::Truncate => {
            // The socket is about to be broken anyway.
            drop(send(socket, events.get(..events.len() / 2).unwrap_or_default()).await);
            if fault == Some(&SimulatedFault::ResetMidway) {
                deliver::reset(socket.get_ref());
            }
            return false;
        }
        AnswerDelivery::Drip => {
            for event in &events {
                shared.gate.wait_for_byte().await;
                if send(socket, std::slice::from_ref(event)).await.is_err() {
                    return false;
                }
            }
            shared.recorder.record_written(status, Some(&plan.asked));
            return true;
        }
    }
    let sent = send(socket, &events).await;
    match sent {
        Ok(()) => shared.recorder.record_written(status, Some(&plan.asked)),
        Err(_) => shared.recorder.record_abandoned(),
    }
    sent.is_ok()
}

async fn send(socket: &mut Socket, events: &[Value]) -> Result<(), Error> {
    for event in events {
        socket.feed(Message::text(event.to_string())).await?;
    }
    socket.flush().await
}

/// Waits until the client closes the socket; its messages until then are ignored.
async fn ended(socket: &mut Socket) {
    while let Some(Ok(_)) = socket.next().await {}
}
