//! Behaviour against a server that is there but does not answer, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test stops at its first surprise")]

use std::time::Duration;

use bytes::Bytes;
use rowmill_http::{HeaderMap, HttpClient, HttpFailure, HttpTimeouts, RequestTarget, Url};
use rowmill_types::DiagnosticText;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// So short that waiting for it is no burden; every test lets it pass on purpose.
const SHORT: Duration = Duration::from_millis(50);
/// So long that a test which waits for it is seen to hang.
const LONG: Duration = Duration::from_secs(600);
const PATIENT: HttpTimeouts = HttpTimeouts { connect: LONG, first_byte: LONG, idle: LONG };

/// The direct client, and the one for proxies.
fn clients(timeouts: HttpTimeouts) -> [HttpClient; 2] {
    let proxied = |name: &str| match name {
        "HTTP_PROXY" => Some("http://proxy.invalid".to_owned()),
        "NO_PROXY" => Some("127.0.0.1".to_owned()),
        _ => None,
    };
    [HttpClient::new(&|_| None), HttpClient::new(&proxied)].map(|client| client.with_timeouts(timeouts))
}

fn target(scheme: &str, listener: &TcpListener) -> RequestTarget {
    let url = format!("{scheme}://{}/v1", listener.local_addr().unwrap());
    RequestTarget::new(Url::parse(&url).unwrap(), HeaderMap::new()).unwrap()
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// Accepts a call and sends `told` to it.
async fn tell(listener: &TcpListener, reported: &[u8]) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut asked = [0; 1024];
    assert!(stream.read(&mut asked).await.unwrap() > 0);
    stream.write_all(reported).await.unwrap();
    stream
}

#[tokio::test]
async fn a_server_that_never_answers_is_silent() {
    for client in clients(HttpTimeouts { first_byte: SHORT, ..PATIENT }) {
        let listener = listener().await;
        let target = target("http", &listener);
        let (_open, answer) =
            tokio::join!(tell(&listener, b""), client.post(&target, None, Bytes::from_static(b"{}")));
        let expected = "no response began within 50 ms; allow more with `first_byte_timeout`";
        let failure = answer.unwrap_err();
        assert!(matches!(failure, HttpFailure::TimedOut(_)), "{failure:?}");
        assert_eq!(DiagnosticText::from(failure.to_string()), expected);
    }
}

#[tokio::test]
async fn an_answer_that_stops_in_the_middle_is_silent() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    for client in clients(HttpTimeouts { idle: SHORT, ..PATIENT }) {
        let listener = listener().await;
        let target = target("http", &listener);
        let (_open, answer) =
            tokio::join!(tell(&listener, half), client.post(&target, None, Bytes::from_static(b"{}")));
        let mut answer = answer.unwrap();
        assert_eq!(answer.chunk().await.unwrap().unwrap(), "hello");
        let expected = "the response stalled: no data for 50 ms; allow more with `idle_timeout`";
        let failure = answer.body(100).await.unwrap_err();
        assert!(matches!(failure, HttpFailure::TimedOut(_)), "{failure:?}");
        assert_eq!(DiagnosticText::from(failure.to_string()), expected);
    }
}

#[tokio::test]
async fn a_document_that_is_not_sent_is_silent_too() {
    for client in clients(HttpTimeouts { first_byte: SHORT, ..PATIENT }) {
        let listener = listener().await;
        let (_open, answer) =
            tokio::join!(tell(&listener, b""), client.get(target("http", &listener).url().clone()));
        assert!(matches!(answer, Err(HttpFailure::TimedOut(_))), "{answer:?}");
    }
}

#[tokio::test]
async fn a_handshake_that_nobody_answers_is_no_connection() {
    // The kernel accepts for the listener, so the TCP connection is made and TLS never starts.
    for client in clients(HttpTimeouts { connect: SHORT, ..PATIENT }) {
        let listener = listener().await;
        let failure = client.post(&target("https", &listener), None, Bytes::new()).await.unwrap_err();
        let expected = "no connection within 50 ms; allow more with `connect_timeout`";
        assert!(matches!(failure, HttpFailure::Connect(_)), "{failure:?}");
        assert_eq!(DiagnosticText::from(failure.to_string()), expected);
    }
}

#[tokio::test]
async fn a_server_that_accepts_no_more_connections_is_no_connection() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Connections that are never accepted fill the queue; the first that does not fit waits for ever.
    let mut queued = Vec::new();
    while let Ok(connected) = tokio::time::timeout(SHORT, TcpStream::connect(address)).await {
        queued.push(connected.unwrap());
    }
    for client in clients(HttpTimeouts { connect: SHORT, ..PATIENT }) {
        let failure = client.post(&target("http", &listener), None, Bytes::new()).await.unwrap_err();
        let expected = "no connection within 50 ms; allow more with `connect_timeout`";
        assert!(matches!(failure, HttpFailure::Connect(_)), "{failure:?}");
        assert_eq!(DiagnosticText::from(failure.to_string()), expected);
    }
}

#[tokio::test]
async fn an_answer_that_comes_is_not_hurried() {
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for client in clients(PATIENT) {
        assert_eq!(client.timeouts(), PATIENT);
        let listener = listener().await;
        let target = target("http", &listener);
        let (_open, answer) =
            tokio::join!(tell(&listener, whole), client.post(&target, None, Bytes::from_static(b"{}")));
        assert_eq!(answer.unwrap().body(100).await.unwrap(), "hello");
    }
}
