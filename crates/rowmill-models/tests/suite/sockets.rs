//! The Responses API over WebSockets: reuse, closed sockets, refusals and the fallback to HTTP.

use crate::server::{answer, ask, events, listen, model, serve};
use futures_util::{SinkExt, StreamExt};
use rowmill_types::CallFailure;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

const DELTA: &str = r#"{"type":"response.output_text.delta","delta":"Hello"}"#;
const END: &str = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}],"usage":{"input_tokens":1,"output_tokens":2}}}"#;

/// Accepts a socket and records the path and the key of the handshake.
async fn accept(listener: &TcpListener) -> (WebSocketStream<TcpStream>, String) {
    let (stream, _) = listener.accept().await.unwrap();
    let mut seen = String::new();
    let socket = accept_hdr_async(stream, |request: &Request, response: Response| {
        let key = request.headers().get("authorization").unwrap().to_str().unwrap();
        seen = format!("{} {key}", request.uri().path());
        Ok(response)
    })
    .await
    .unwrap();
    (socket, seen)
}

/// Waits for a request and answers it with events.
async fn reply(socket: &mut WebSocketStream<TcpStream>, events: &[&str]) -> String {
    let asked = socket.next().await.unwrap().unwrap();
    for event in events {
        socket.send(Message::text(*event)).await.unwrap();
    }
    asked.to_text().unwrap().to_owned()
}

#[tokio::test]
async fn calls_one_after_the_other_share_a_socket() {
    let (listener, address) = listen().await;
    let (model, notices) = model("responses.m?transport=ws", &format!("{address}/v1"));
    let ((seen, asked), completions) = tokio::join!(
        async {
            let (mut socket, seen) = accept(&listener).await;
            let first = reply(&mut socket, &[DELTA, END]).await;
            (seen, [first, reply(&mut socket, &[DELTA, END]).await])
        },
        async {
            let first = model.complete(&ask("one")).await.unwrap();
            (first, model.complete(&ask("two")).await.unwrap())
        }
    );
    assert_eq!(seen, "/v1/responses Bearer sk-secret");
    assert_eq!(
        asked[1],
        r#"{"type":"response.create","model":"m","input":[{"role":"user","content":"two"}],"store":false}"#
    );
    assert_eq!((completions.0.text.as_str(), completions.1.text.as_str()), ("Hello", "Hello"));
    assert!(completions.1.timing.first_token.is_some());
    assert!(notices.lock().unwrap().is_empty());
}

#[tokio::test]
async fn calls_at_the_same_time_have_a_socket_each() {
    let (listener, address) = listen().await;
    let (model, _) = model("responses.m?transport=ws", &address);
    let (one, two) = (ask("one"), ask("two"));
    let ((), first, second) = tokio::join!(
        async {
            let (mut first, _) = accept(&listener).await;
            let (mut second, _) = accept(&listener).await;
            reply(&mut second, &[DELTA, END]).await;
            reply(&mut first, &[DELTA, END]).await;
        },
        model.complete(&one),
        model.complete(&two)
    );
    assert_eq!((first.unwrap().text, second.unwrap().text), ("Hello".to_owned(), "Hello".to_owned()));
}

#[tokio::test]
async fn an_idle_socket_that_died_is_replaced() {
    let (listener, address) = listen().await;
    let (model, _) = model("responses.m?transport=ws", &address);
    let (closed, is_closed) = tokio::sync::oneshot::channel();
    let ((), second) = tokio::join!(
        async {
            let (mut socket, _) = accept(&listener).await;
            reply(&mut socket, &[DELTA, END]).await;
            socket.close(None).await.unwrap();
            drop(socket);
            closed.send(()).unwrap();
            let (mut socket, _) = accept(&listener).await;
            reply(&mut socket, &[DELTA, END]).await;
        },
        async {
            model.complete(&ask("one")).await.unwrap();
            is_closed.await.unwrap();
            model.complete(&ask("two")).await
        }
    );
    assert_eq!(second.unwrap().text, "Hello");
}

#[tokio::test]
async fn a_socket_that_ends_within_an_answer_is_broken_and_is_not_used_again() {
    let (listener, address) = listen().await;
    let (model, _) = model("responses.m?transport=ws", &address);
    let ((), errors) = tokio::join!(
        async {
            let (mut socket, _) = accept(&listener).await;
            reply(&mut socket, &[DELTA]).await;
            socket.close(None).await.unwrap();
            let error =
                r#"{"type":"error","status":429,"error":{"code":"rate_limit_exceeded","message":"slow"}}"#;
            let (mut socket, _) = accept(&listener).await;
            reply(&mut socket, &[error]).await;
        },
        async {
            let first = model.complete(&ask("one")).await.unwrap_err();
            (first, model.complete(&ask("two")).await.unwrap_err())
        }
    );
    assert_eq!(errors.0.failure, CallFailure::ConnectionBroken);
    assert_eq!((errors.1.failure, errors.1.message.as_str()), (CallFailure::RateLimited, "slow"));
}

#[tokio::test]
async fn a_socket_that_was_asked_for_and_refused_is_an_error() {
    let (listener, address) = listen().await;
    let (model, _) = model("responses.m?transport=ws", &address);
    let answers = [answer("401 Unauthorized", "", r#"{"error":{"message":"no, sk-secret"}}"#)];
    let request = ask("x");
    let (_, error) = tokio::join!(serve(&listener, &answers), model.complete(&request));
    let error = error.unwrap_err();
    let text = "no, *** (the key is the one in `OPENAI_API_KEY`)";
    assert_eq!((error.failure, error.message.as_str()), (CallFailure::Unauthorized, text));
    drop(listener);
    assert_eq!(model.complete(&request).await.unwrap_err().failure, CallFailure::Connect);
}

#[tokio::test]
async fn an_https_address_means_an_encrypted_socket() {
    let (listener, address) = listen().await;
    let (model, _) = model("responses.m?transport=ws", &address.replace("http", "https"));
    let request = ask("x");
    let (first, error) = tokio::join!(
        async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_u8().await.unwrap()
        },
        model.complete(&request)
    );
    assert_eq!(first, 22, "a TLS handshake starts with its record type");
    assert_eq!(error.unwrap_err().failure, CallFailure::Connect);
}

#[tokio::test]
async fn auto_falls_back_to_events_for_the_rest_of_the_run_and_says_so_once() {
    let (listener, address) = listen().await;
    let (model, notices) = model("responses.m?transport=auto", &address);
    let answers =
        [answer("404 Not Found", "", "no sockets here"), events(&[DELTA, END]), events(&[DELTA, END])];
    let (log, texts) = tokio::join!(serve(&listener, &answers), async {
        let first = model.complete(&ask("one")).await.unwrap().text;
        (first, model.complete(&ask("two")).await.unwrap().text)
    });
    assert_eq!(texts, ("Hello".to_owned(), "Hello".to_owned()));
    assert!(log.requests.iter().all(|seen| seen.path == "/v1/responses"));
    let methods: Vec<&str> = log.requests.iter().map(|seen| seen.method.as_str()).collect();
    assert_eq!(methods, ["GET", "POST", "POST"]);
    assert!(log.requests[2].body.ends_with(br#""store":false,"stream":true}"#));
    let notices = notices.lock().unwrap();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].starts_with("cannot open a WebSocket (no sockets here"), "{notices:?}");
}
