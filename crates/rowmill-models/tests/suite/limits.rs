//! What the limiter learns from calls over real sockets: rates, quotas, and calls that hang.

use std::time::Duration;

use crate::server::{answer, ask, listen, model, model_within, serve};
use bytes::BytesMut;
use futures_util::{SinkExt, StreamExt};
use rowmill_http::HttpTimeouts;
use rowmill_testkit::read_request;
use rowmill_types::{CallError, CallFailure, RateLimitState, ReportedRateLimits};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

const CHAT: &str = r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;
const RESPONSE: &str = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]}"#;
const MESSAGE: &str = r#"{"content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn"}"#;
const OPENAI: &str = "x-ratelimit-limit-requests: 600\r\nx-ratelimit-remaining-requests: 599\r\nx-ratelimit-reset-requests: 100ms\r\n";
const ANTHROPIC: &str = "date: Sun, 01 Mar 2026 12:00:00 GMT\r\nanthropic-ratelimit-requests-limit: 600\r\nanthropic-ratelimit-requests-remaining: 599\r\nanthropic-ratelimit-requests-reset: 2026-03-01T12:00:00.1Z\r\n";

/// So short that waiting for it costs nothing; every test lets it pass on purpose.
const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(600);
const PATIENT: HttpTimeouts = HttpTimeouts { connect: LONG, first_byte: LONG, idle: LONG };

fn expected_limits() -> Option<ReportedRateLimits> {
    let window = RateLimitState { limit: 600, remaining: 599, reset: Duration::from_millis(100) };
    Some(ReportedRateLimits { requests: Some(window), ..ReportedRateLimits::default() })
}

#[tokio::test]
async fn every_protocol_tells_the_rates_with_answers_and_with_refusals() {
    for (text, headers, body) in
        [("openai.m", OPENAI, CHAT), ("responses.m", OPENAI, RESPONSE), ("anthropic.m", ANTHROPIC, MESSAGE)]
    {
        let (listener, address) = listen().await;
        let (model, _) = model(text, &address);
        let answers = [
            answer("200 OK", headers, body),
            answer("429 Too Many Requests", headers, r#"{"error":{"message":"slow"}}"#),
            answer("200 OK", headers, "no answer"),
            answer("200 OK", "", body),
        ];
        let (_, rates) = tokio::join!(serve(&listener, &answers), async {
            let first = model.complete(&ask("1")).await.unwrap().rate_limits;
            let refused = model.complete(&ask("2")).await.unwrap_err().rate_limits;
            let malformed = model.complete(&ask("3")).await.unwrap_err().rate_limits;
            [first, refused, malformed, model.complete(&ask("4")).await.unwrap().rate_limits]
        });
        let rates = rates.map(|rates| rates.map(|rates| *rates));
        assert_eq!(rates, [expected_limits(), expected_limits(), expected_limits(), None], "{text}");
    }
}

#[tokio::test]
async fn a_stream_tells_the_rates_of_its_head() {
    let (listener, address) = listen().await;
    let (model, _) = model("openai.m?stream=true", &address);
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n";
    let answers = [answer("200 OK", OPENAI, body)];
    let request = ask("x");
    let (_, completion) = tokio::join!(serve(&listener, &answers), model.complete(&request));
    assert_eq!(completion.unwrap().rate_limits.map(|rates| *rates), expected_limits());
}

#[tokio::test]
async fn a_used_up_quota_is_no_failure_of_the_row() {
    let (listener, address) = listen().await;
    let (model, _) = model("openai.m", &address);
    let body = r#"{"error":{"message":"Insufficient Balance"}}"#;
    let answers = [answer("402 Payment Required", "", body)];
    let request = ask("x");
    let (_, error) = tokio::join!(serve(&listener, &answers), model.complete(&request));
    let error = error.unwrap_err();
    assert_eq!((error.failure, error.status), (CallFailure::QuotaExhausted, Some(402)));
    assert!(!error.failure.may_be_billed());
}

/// Takes one request and answers it with `expected_limits`, then keeps the connection open.
async fn hang(listener: &TcpListener, reported: &[u8]) -> TcpStream {
    let mut stream = listener.accept().await.unwrap().0;
    assert!(read_request(&mut stream, &mut BytesMut::new()).await.is_some());
    stream.write_all(reported).await.unwrap();
    stream
}

fn timed_out(error: &CallError, what: &str) {
    assert_eq!(error.failure, CallFailure::Timeout, "{error}");
    assert!(error.message.starts_with("http://127.0.0.1:"), "{error}");
    assert!(error.message.ends_with(what), "{error}");
    assert!(error.failure.may_be_billed());
}

#[tokio::test]
async fn a_server_that_hangs_times_out() {
    let (listener, address) = listen().await;
    let (model, _) = model_within("openai.m", &address, HttpTimeouts { first_byte: SHORT, ..PATIENT });
    let request = ask("x");
    let (_open, error) = tokio::join!(hang(&listener, b""), model.complete(&request));
    let what = ": no response began within 50 ms; allow more with `first_byte_timeout`";
    timed_out(&error.unwrap_err(), what);
}

#[tokio::test]
async fn half_an_answer_that_stalls_times_out_whole_or_streamed() {
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"choices\"".as_slice();
    let streamed = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata: \r\n".as_slice();
    for (text, half) in [("openai.m", whole), ("openai.m?stream=true", streamed)] {
        let (listener, address) = listen().await;
        let (model, _) = model_within(text, &address, HttpTimeouts { idle: SHORT, ..PATIENT });
        let request = ask("x");
        let (_open, error) = tokio::join!(hang(&listener, half), model.complete(&request));
        let what = ": the response stalled: no data for 50 ms; allow more with `idle_timeout`";
        timed_out(&error.unwrap_err(), what);
    }
}

#[tokio::test]
async fn a_refusal_whose_body_stalls_is_still_a_refusal() {
    let (listener, address) = listen().await;
    let (model, _) = model_within("openai.m", &address, HttpTimeouts { idle: SHORT, ..PATIENT });
    let half = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\nContent-Length: 99\r\n\r\n{";
    let request = ask("x");
    let (_open, error) = tokio::join!(hang(&listener, half), model.complete(&request));
    let error = error.unwrap_err();
    assert_eq!((error.failure, error.retry_after), (CallFailure::RateLimited, Some(Duration::from_secs(2))));
}

#[tokio::test]
async fn a_socket_that_is_not_opened_is_no_connection() {
    let (_listener, address) = listen().await;
    let within = HttpTimeouts { connect: SHORT, ..PATIENT };
    let (model, _) = model_within("responses.m?transport=ws", &address, within);
    // The kernel accepts for the listener, so TCP connects and the handshake never ends.
    let error = model.complete(&ask("x")).await.unwrap_err();
    assert_eq!(error.failure, CallFailure::Connect);
    let what = "no connection within 50 ms; allow more with `connect_timeout`";
    assert!(error.message.ends_with(what), "{error}");
}

#[tokio::test]
async fn a_socket_that_falls_silent_times_out() {
    let begun = "no response began within 50 ms; allow more with `first_byte_timeout`";
    let stalled = "the response stalled: no data for 50 ms; allow more with `idle_timeout`";
    let delta = r#"{"type":"response.output_text.delta","delta":"He"}"#;
    for (within, events, what) in [
        (HttpTimeouts { first_byte: SHORT, ..PATIENT }, &[][..], begun),
        (HttpTimeouts { idle: SHORT, ..PATIENT }, &[delta][..], stalled),
    ] {
        let (listener, address) = listen().await;
        let (model, _) = model_within("responses.m?transport=ws", &address, within);
        let request = ask("x");
        let (_open, error) = tokio::join!(
            async {
                let (stream, _) = listener.accept().await.unwrap();
                let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
                socket.next().await.unwrap().unwrap();
                for event in events {
                    socket.send(Message::text(*event)).await.unwrap();
                }
                socket
            },
            model.complete(&request)
        );
        timed_out(&error.unwrap_err(), what);
    }
}
