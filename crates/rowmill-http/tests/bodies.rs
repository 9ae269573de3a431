//! Bodies that are sent in pieces, and documents that are fetched, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test stops at its first surprise")]

use std::io;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use rowmill_http::{HeaderMap, HeaderValue, HttpClient, HttpFailure, Method, RequestTarget, SizedBody, Url};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The direct client, and the one for proxies.
fn clients() -> [HttpClient; 2] {
    let proxied = |name: &str| match name {
        "HTTP_PROXY" => Some("http://proxy.invalid".to_owned()),
        "NO_PROXY" => Some("127.0.0.1".to_owned()),
        _ => None,
    };
    [HttpClient::new(&|_| None), HttpClient::new(&proxied)]
}

async fn listener() -> (TcpListener, Url) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/v1", listener.local_addr().unwrap())).unwrap();
    (listener, url)
}

/// Reads one request up to `end`, or all that comes, and answers it.
async fn answer(listener: &TcpListener, end: &str, answer: &str) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(end.as_bytes()) && stream.read_buf(&mut seen).await.unwrap() > 0 {}
    stream.write_all(answer.as_bytes()).await.unwrap();
    String::from_utf8(seen).unwrap()
}

fn body(length: u64, pieces: &[&'static str]) -> SizedBody {
    let pieces: Vec<io::Result<Bytes>> = pieces.iter().map(|piece| Ok(Bytes::from(*piece))).collect();
    SizedBody::new(length, stream::iter(pieces).boxed())
}

const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn a_body_in_pieces_arrives_whole_with_its_length() {
    for client in clients() {
        let (listener, url) = listener().await;
        let target = RequestTarget::new(url, HeaderMap::new()).unwrap();
        let sending = client.send_sized(Method::POST, &target, body(10, &["one,", "", "two", ",\n3"]));
        let (seen, sent) = tokio::join!(answer(&listener, ",\n3", EMPTY), sending);
        assert_eq!(sent.unwrap().status(), 200);
        let (head, body) = seen.split_once("\r\n\r\n").unwrap();
        let head = head.to_lowercase();
        assert!(head.contains("content-length: 10") && !head.contains("transfer-encoding"), "{head}");
        assert_eq!(body, "one,two,\n3");
    }
}

#[tokio::test]
async fn a_body_of_another_length_is_never_a_complete_request() {
    for client in clients() {
        for pieces in [&["one"][..], &["one", "two", "three"]] {
            let (listener, url) = listener().await;
            let target = RequestTarget::new(url, HeaderMap::new()).unwrap();
            let sending = client.send_sized(Method::POST, &target, body(9, pieces));
            let (seen, sent) = tokio::join!(answer(&listener, "no end", ""), sending);
            assert!(matches!(sent.unwrap_err(), HttpFailure::Broken(_)));
            assert!(seen.split_once("\r\n\r\n").is_none_or(|(_, body)| body.len() < 9), "{seen}");
        }
    }
}

#[tokio::test]
async fn a_document_elsewhere_is_fetched_without_the_headers_of_its_first_server() {
    for client in clients() {
        let ((first, url), (second, elsewhere)) = (listener().await, listener().await);
        let headers = HeaderMap::from_iter([("x-key".parse().unwrap(), HeaderValue::from_static("secret"))]);
        let target = RequestTarget::new(url, headers).unwrap();
        let moved = format!("HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n");
        let stored = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthere";
        let (asked, passed, answer) = tokio::join!(
            answer(&first, "\r\n\r\n", &moved),
            answer(&second, "\r\n\r\n", stored),
            client.retrieve_target(&target),
        );
        assert!(asked.contains("x-key: secret") && !passed.contains("secret"), "{asked}{passed}");
        let answer = answer.unwrap();
        assert!(answer.marks_end());
        assert_eq!(answer.body(100).await.unwrap(), "there");
    }
}

#[tokio::test]
async fn a_body_that_ends_with_its_connection_is_known_as_such() {
    for client in clients() {
        let (listener, url) = listener().await;
        let target = RequestTarget::new(url, HeaderMap::new()).unwrap();
        let unmarked = "HTTP/1.1 200 OK\r\n\r\npart";
        let (_, fetched) =
            tokio::join!(answer(&listener, "\r\n\r\n", unmarked), client.retrieve_target(&target));
        assert!(!fetched.unwrap().marks_end());
    }
}
