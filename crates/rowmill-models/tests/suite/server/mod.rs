//! A server that returns predefined answers and records the requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rowmill_core::ports::Model;
use rowmill_http::{HttpClient, HttpTimeouts};
use rowmill_models::{
    ModelSetup, ModelString, ProviderConfig, ProviderConnection, ProviderRegistry, build_model,
};
use rowmill_testkit::{RecordedRequest, read_request};
use rowmill_types::{Message, Request};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// The end of an answer after which the connection is closed.
pub(crate) const CUT: &[u8] = b"(cut)";

/// What a server saw in all.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) connections: usize,
    pub(crate) requests: Vec<RecordedRequest>,
}

pub(crate) async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    (listener, address)
}

/// Returns one answer per request, on whichever connection the request arrives.
pub(crate) async fn serve(listener: &TcpListener, answers: &[Vec<u8>]) -> Log {
    let mut log = Log::default();
    let mut connections = FuturesUnordered::new();
    while log.requests.len() < answers.len() {
        let (mut stream, seen) = tokio::select! {
            accepted = listener.accept() => {
                log.connections += 1;
                connections.push(next_request(accepted.unwrap().0));
                continue;
            }
            Some((stream, seen)) = connections.next() => match seen {
                Some(seen) => (stream, seen),
                None => continue,
            },
        };
        let answer = &answers[log.requests.len()];
        log.requests.push(seen);
        stream.write_all(answer).await.unwrap();
        stream.flush().await.unwrap();
        if !answer.ends_with(CUT) {
            connections.push(next_request(stream));
        }
    }
    log
}

async fn next_request(mut stream: TcpStream) -> (TcpStream, Option<RecordedRequest>) {
    // A request comes when the one before it was answered, so nothing of it is read with that one.
    let seen = read_request(&mut stream, &mut BytesMut::new()).await;
    (stream, seen)
}

/// A whole answer.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A streamed response, to the end of the connection's chunk.
pub(crate) fn events(data: &[&str]) -> Vec<u8> {
    let body: String = data.iter().map(|data| format!("data: {data}\n\n")).collect();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    )
    .into_bytes()
}

/// The notices that were sent.
pub(crate) type Notices = Arc<Mutex<Vec<String>>>;

/// A model whose provider is at `base_url`, with the key `sk-secret`.
pub(crate) fn model(text: &str, base_url: &str) -> (Arc<dyn Model>, Notices) {
    model_within(text, base_url, HttpTimeouts::default())
}

/// The same with other timeouts.
pub(crate) fn model_within(text: &str, base_url: &str, timeouts: HttpTimeouts) -> (Arc<dyn Model>, Notices) {
    let name = text.split('.').next().unwrap().to_owned();
    let headers = BTreeMap::from([("x-team".to_owned(), "${TEAM}".to_owned())]);
    let config = ProviderConfig { base_url: Some(base_url.to_owned()), headers, ..ProviderConfig::default() };
    let providers = ProviderRegistry::with_config(BTreeMap::from([(name, config)])).unwrap();
    let model = ModelString::parse(text, &providers).unwrap();
    let environment = |name: &str| match name {
        "TEAM" => Some("red".to_owned()),
        _ => name.contains("KEY").then(|| "sk-secret".to_owned()),
    };
    let connection = ProviderConnection::resolve(&model, &providers, &environment).unwrap();
    let notices = Notices::default();
    let kept = Arc::clone(&notices);
    let notice = Arc::new(move |text| kept.lock().unwrap().push(text));
    let setup = ModelSetup {
        model,
        connection,
        instruction: None,
        schema: None,
        tools: Vec::new(),
        parallel_tool_calls: None,
        notice,
    };
    (build_model(setup, &HttpClient::new(&|_| None).with_timeouts(timeouts)).unwrap(), notices)
}

/// A request with one message.
pub(crate) fn ask(text: &str) -> Request {
    Request {
        key: format!("run-1/{text}"),
        row: 1,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages: vec![Message::user(text)],
    }
}
