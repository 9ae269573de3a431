//! Accepts connections and serves their requests.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::answer_plan::PreparedAnswer;
use crate::batch::{self, BatchAnswer, BatchRoute, BatchServed, DownloadDamage, HoldMoment, StoredBytes};
use crate::canned_answers::{self, CannedAnswers};
use crate::deliver::{DeliveryOutcome, deliver_answer, reset};
use crate::fault::AnswerDelivery;
use crate::http_request::{self, HttpRequest, ReadFailure};
use crate::outage::OutageKind;
use crate::outgoing_answer::OutgoingAnswer;
use crate::protocol::VendorProtocol;
use crate::recorder::RecordedRequest;
use crate::simulator_state::SimulatorState;
use crate::websocket;

/// Enough for thousands of clients that connect at the same moment.
const BACKLOG: u32 = 4096;

/// After an outage, the port may be in use for a moment; then listening is retried after this.
const AGAIN: Duration = Duration::from_millis(20);

/// Listens on an address.
pub(crate) fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until dropped; all connections end with it.
pub(crate) async fn serve(listener: TcpListener, address: SocketAddr, shared: Arc<SimulatorState>) {
    let script = &shared.script;
    let canned = script.instant.as_deref().map(|text| Arc::new(CannedAnswers::new(text, script)));
    let mut connections = JoinSet::new();
    let mut listener = Some(listener);
    loop {
        let mut turn = turn(&shared);
        if turn.refuses {
            listener = None;
            connections.abort_all();
        } else if listener.is_none() {
            listener = listen(address).ok();
            let again = listener.is_none().then(|| Instant::now() + AGAIN);
            turn.next = turn.next.into_iter().chain(again).min();
        }
        tokio::select! {
            accepted = accept(listener.as_ref()) => {
                // A connection that failed while it was being accepted is the client's problem.
                let Ok((stream, _)) = accepted else { continue };
                // Without it small answers would be delayed; if it fails, they are.
                drop(stream.set_nodelay(true));
                shared.recorder.record_connection();
                connections.spawn(connection(stream, Arc::clone(&shared), canned.clone()));
            }
            Some(_) = connections.join_next() => {}
            () = shared.outage_changed.notified() => {}
            () = until(turn.next) => {}
        }
    }
}

/// Whether the server is not listening now, and when that may change.
#[derive(Debug)]
struct ListenState {
    refuses: bool,
    next: Option<Instant>,
}

fn turn(shared: &SimulatorState) -> ListenState {
    let conditions = shared.conditions();
    ListenState {
        refuses: conditions.outage() == Some(OutageKind::Refuse),
        next: conditions.next_change_at(),
    }
}

async fn accept(listener: Option<&TcpListener>) -> std::io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn connection(mut stream: TcpStream, shared: Arc<SimulatorState>, canned: Option<Arc<CannedAnswers>>) {
    let mut buffer = BytesMut::with_capacity(8 * 1024);
    if let Some(canned) = canned {
        let goes_on = canned_answers::serve(&mut stream, &mut buffer, &shared, &canned).await;
        if !goes_on {
            return;
        }
    }
    loop {
        let received = match receive(&mut stream, &mut buffer, &shared).await {
            Ok(received) => received,
            Err(ReadFailure::Closed) => return,
            Err(ReadFailure::Invalid(what)) => {
                let outgoing = OutgoingAnswer::json(400, &[], &json!({"error": {"message": what}}));
                let exchange = PreparedAnswer::whole(outgoing);
                write(&mut stream, &mut buffer, &shared, &exchange).await;
                return;
            }
        };
        if websocket::is_wanted(&received.incoming.request) {
            websocket::serve(stream, buffer, &shared, &received.incoming.request).await;
            return;
        }
        let keep_alive = received.incoming.keep_alive;
        let goes_on = serve_one(&mut stream, &mut buffer, &shared, received).await;
        if !goes_on || !keep_alive {
            return;
        }
    }
}

/// A request, and its body if that is on disk.
struct ReceivedRequest {
    incoming: HttpRequest,
    body: Option<StoredBytes>,
    hold: Option<HoldMoment>,
}

/// Larger bodies of batch APIs are written to disk.
const LARGE_BODY: usize = 1 << 20;

/// Reads one request.
async fn receive(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    shared: &SimulatorState,
) -> Result<ReceivedRequest, ReadFailure> {
    let head = http_request::read_head(stream, buffer).await?;
    let request = &head.incoming.request;
    let route = BatchRoute::read(request);
    let kind = route.and_then(|route| route.kind(&request.method));
    let hold = kind.and_then(|kind| shared.batches.holds.next(kind));
    let route = route.filter(|_| matches!(request.method.as_str(), "POST" | "PUT"));
    if hold == Some(HoldMoment::Within) && route.is_some() {
        head.read_half(stream, buffer).await;
        shared.batches.holds.hold((stream, buffer), &shared.recorder).await;
        reset(stream);
        return Err(ReadFailure::Closed);
    }
    if route.is_some_and(|route| route.is_upload()) && shared.cuts_next_upload() {
        head.read_half(stream, buffer).await;
        reset(stream);
        return Err(ReadFailure::Closed);
    }
    if !route.is_some_and(|route| route.takes_large_body()) || !head.may_exceed(LARGE_BODY) {
        return Ok(ReceivedRequest { incoming: head.read_body(stream, buffer).await?, body: None, hold });
    }
    let path = shared.batches.new_path()?;
    let mut file = File::create(&path)?;
    let incoming = head.write_body(stream, buffer, &mut file).await?;
    Ok(ReceivedRequest { incoming, body: Some(StoredBytes::whole(path)?), hold })
}

/// Serves one request; returns whether the connection can serve another one.
async fn serve_one(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    shared: &Arc<SimulatorState>,
    received: ReceivedRequest,
) -> bool {
    let ReceivedRequest { incoming: HttpRequest { mut request, .. }, mut body, hold } = received;
    if request.path != "/stats" {
        shared.recorder.keep(&request);
    }
    if BatchRoute::read(&request).is_some() {
        if !may_have_effect((stream, buffer), shared, hold).await {
            return false;
        }
        let served;
        (request, served) = serve_batch(shared, request, body).await;
        match served {
            BatchServed::Answer(answer) => {
                return deliver_held((stream, buffer), shared, answer, hold).await;
            }
            BatchServed::NotMine(held) => body = held,
        }
    }
    if let Some(body) = body {
        request.body = body.read().unwrap_or_default();
    }
    let request = &request;
    let path = request.path.split('?').next().unwrap_or_default();
    if let Some(outgoing) = shared.serve_file(request) {
        return deliver_whole(stream, buffer, shared, &PreparedAnswer::whole(outgoing)).await;
    }
    let protocol = VendorProtocol::from_path(&batch::live_path(path));
    let Some(protocol) = protocol.filter(|_| request.method == "POST") else {
        let exchange = PreparedAnswer::whole(document(shared, request, path, protocol.is_some()));
        return deliver_whole(stream, buffer, shared, &exchange).await;
    };
    let call = shared.recorder.begin();
    let answered = tokio::select! {
        biased;
        exchange = shared.answer(protocol, request, &call) => Some(exchange),
        () = http_request::closed(stream, buffer) => None,
    };
    match answered {
        Some(exchange) => write(stream, buffer, shared, &exchange).await,
        None => {
            shared.recorder.record_abandoned();
            false
        }
    }
}

/// Answers a request of a batch API on a thread that may wait for the disk.
async fn serve_batch(
    shared: &Arc<SimulatorState>,
    request: RecordedRequest,
    body: Option<StoredBytes>,
) -> (RecordedRequest, BatchServed) {
    let state = Arc::clone(shared);
    let served = tokio::task::spawn_blocking(move || {
        let served = state.serve_batch(&request, body);
        (request, served)
    });
    // It fails only if it panicked or the runtime ends; then the connection ends, too.
    served.await.unwrap_or_else(|_| (RecordedRequest::default(), BatchServed::Answer(BatchAnswer::Lost)))
}

/// Holds a request before it has an effect, if it is to be held then. Returns whether it may have its effect.
async fn may_have_effect(
    connection: (&mut TcpStream, &mut BytesMut),
    shared: &SimulatorState,
    hold: Option<HoldMoment>,
) -> bool {
    match hold {
        Some(HoldMoment::Before) => shared.batches.holds.hold(connection, &shared.recorder).await,
        Some(HoldMoment::Late) => {
            shared.batches.holds.hold_late(&shared.recorder).await;
            true
        }
        None | Some(HoldMoment::Within | HoldMoment::After) => true,
    }
}

/// Sends the answer of a batch API, held before or within it if it is to be held then.
async fn deliver_held(
    (stream, buffer): (&mut TcpStream, &mut BytesMut),
    shared: &SimulatorState,
    mut answer: BatchAnswer,
    hold: Option<HoldMoment>,
) -> bool {
    let holds = &shared.batches.holds;
    if hold == Some(HoldMoment::After) && !holds.hold((stream, buffer), &shared.recorder).await {
        return false;
    }
    match (&mut answer, hold) {
        (BatchAnswer::File(download), Some(HoldMoment::Within)) => {
            download.damage = DownloadDamage::Half;
            if deliver_batch(stream, buffer, shared, &answer).await {
                holds.hold((stream, buffer), &shared.recorder).await;
            }
            false
        }
        _ => deliver_batch(stream, buffer, shared, &answer).await,
    }
}

/// Sends the answer of a batch API, which does not count as an answer to a call.
async fn deliver_batch(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    shared: &SimulatorState,
    answer: &BatchAnswer,
) -> bool {
    match answer {
        BatchAnswer::Document(outgoing) => {
            let delivery = AnswerDelivery::Whole;
            let delivered = deliver_answer(stream, buffer, outgoing, delivery, &shared.gate).await;
            delivered == DeliveryOutcome::Complete
        }
        BatchAnswer::File(download) => batch::deliver_download(stream, buffer, download, &shared.gate).await,
        BatchAnswer::Lost => false,
    }
}

async fn write(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    shared: &SimulatorState,
    exchange: &PreparedAnswer,
) -> bool {
    let delivered = deliver_answer(stream, buffer, &exchange.outgoing, exchange.delivery, &shared.gate).await;
    match delivered {
        DeliveryOutcome::Complete => {
            shared.recorder.record_written(exchange.outgoing.status, exchange.asked.as_ref())
        }
        DeliveryOutcome::Abandoned => shared.recorder.record_abandoned(),
        DeliveryOutcome::Damaged => {}
    }
    delivered == DeliveryOutcome::Complete
}

/// Writes a response that is not a model's answer and does not count in the statistics.
async fn deliver_whole(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    shared: &SimulatorState,
    exchange: &PreparedAnswer,
) -> bool {
    let delivered = deliver_answer(stream, buffer, &exchange.outgoing, exchange.delivery, &shared.gate).await;
    delivered == DeliveryOutcome::Complete
}

fn document(
    shared: &SimulatorState,
    request: &RecordedRequest,
    path: &str,
    is_model_path: bool,
) -> OutgoingAnswer {
    let is_read = request.method == "GET";
    if is_model_path {
        return OutgoingAnswer::json(405, &[], &json!({"error": {"message": "the method must be POST"}}));
    }
    if is_read && path == "/stats" {
        // Plain data, so it can always be written as JSON.
        let body = serde_json::to_vec(&shared.stats()).unwrap_or_default();
        return OutgoingAnswer::with_body(200, "application/json", &[], body);
    }
    let text = path.strip_prefix("/text/").and_then(|name| shared.script.texts.get(name));
    match text.filter(|_| is_read) {
        Some(text) => OutgoingAnswer::text(200, text),
        None => {
            OutgoingAnswer::json(404, &[], &json!({"error": {"message": format!("no such path: {path}")}}))
        }
    }
}
