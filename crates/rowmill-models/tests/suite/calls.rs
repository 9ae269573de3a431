//! Calls over real sockets: what is sent, what is received, and how calls fail.

use std::time::Duration;

use crate::server::{CUT, answer, ask, events, listen, model, serve};
use rowmill_types::{CallFailure, FinishReason};

const CHAT: &str = r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#;

#[tokio::test]
async fn two_chat_calls_share_a_connection_and_carry_the_key() {
    let (listener, address) = listen().await;
    let (model, notices) = model("openai.gpt-x", &format!("{address}/v1/"));
    let answers = [answer("200 OK", "", CHAT), answer("200 OK", "", CHAT)];
    let (log, completions) = tokio::join!(serve(&listener, &answers), async {
        let first = model.complete(&ask("one")).await.unwrap();
        (first, model.complete(&ask("two")).await.unwrap())
    });
    assert_eq!((log.connections, log.requests.len()), (1, 2));
    let seen = &log.requests[1];
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(
        String::from_utf8_lossy(&seen.body),
        r#"{"model":"gpt-x","messages":[{"role":"user","content":"two"}]}"#
    );
    for (name, value) in [
        ("authorization", "Bearer sk-secret"),
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("idempotency-key", "run-1/two"),
        ("x-team", "red"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!((completions.0.text.as_str(), completions.1.finish), ("Hello", FinishReason::Complete));
    assert_eq!(completions.0.timing.first_token, None);
    assert!(notices.lock().unwrap().is_empty());
}

#[tokio::test]
async fn every_protocol_asks_at_its_own_place_with_its_own_header() {
    let anthropic = r#"{"content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn"}"#;
    let google = r#"{"candidates":[{"content":{"parts":[{"text":"Hello"}]},"finishReason":"STOP"}]}"#;
    let responses = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]}"#;
    for (text, base, line, header, value, body) in [
        ("vllm.org/m", "/v1", "/v1/chat/completions", "authorization", "Bearer sk-secret", CHAT),
        ("azure.m", "", "/openai/v1/chat/completions", "api-key", "sk-secret", CHAT),
        ("responses.m", "/v1", "/v1/responses", "idempotency-key", "run-1/x", responses),
        ("openresponses.m", "/v1", "/v1/responses", "authorization", "Bearer sk-secret", responses),
        ("anthropic.m", "", "/v1/messages", "x-api-key", "sk-secret", anthropic),
        (
            "anthropic.m?web_fetch=true",
            "",
            "/v1/messages",
            "anthropic-beta",
            "web-fetch-2025-09-10",
            anthropic,
        ),
        ("xai.m", "/v1", "/v1/chat/completions", "authorization", "Bearer sk-secret", CHAT),
        ("xai.m?x_search=true", "/v1", "/v1/responses", "authorization", "Bearer sk-secret", responses),
        ("anthropic.m", "/v1", "/v1/messages", "anthropic-version", "2023-06-01", anthropic),
        (
            "google.models/g-1",
            "",
            "/v1beta/models/g-1:generateContent",
            "x-goog-api-key",
            "sk-secret",
            google,
        ),
        ("google.g-1", "/v1", "/v1/models/g-1:generateContent", "x-goog-api-key", "sk-secret", google),
    ] {
        let (listener, address) = listen().await;
        let (model, _) = model(text, &format!("{address}{base}"));
        let answers = [answer("200 OK", "", body)];
        let request = ask("x");
        let (log, completion) = tokio::join!(serve(&listener, &answers), model.complete(&request));
        assert_eq!(completion.unwrap().text, "Hello", "{text}");
        let seen = &log.requests[0];
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", line), "{text}");
        assert_eq!(seen.header(header), Some(value), "{text}");
        let unknown = !text.starts_with("responses");
        assert_eq!(unknown, seen.header("idempotency-key").is_none(), "{text}");
    }
}

#[tokio::test]
async fn a_refusal_is_reported_without_the_key() {
    let (listener, address) = listen().await;
    let (model, _) = model("openai.m", &address);
    let answers = [
        answer(
            "401 Unauthorized",
            "",
            r#"{"error":{"message":"bad key sk-secret","code":"invalid_api_key"}}"#,
        ),
        answer("429 Too Many Requests", "retry-after: 2\r\n", r#"{"error":{"message":"slow down"}}"#),
    ];
    let (_, errors) = tokio::join!(serve(&listener, &answers), async {
        let first = model.complete(&ask("x")).await.unwrap_err();
        (first, model.complete(&ask("y")).await.unwrap_err())
    });
    let text = "bad key *** (the key is the one in `OPENAI_API_KEY`)";
    assert_eq!((errors.0.failure, errors.0.message.as_str()), (CallFailure::Unauthorized, text));
    assert_eq!(
        (errors.1.failure, errors.1.retry_after),
        (CallFailure::RateLimited, Some(Duration::from_secs(2)))
    );
    assert!(!format!("{model:?}").contains("sk-secret"));
}

#[tokio::test]
async fn nobody_at_the_address_is_distinguished_from_a_connection_that_breaks() {
    let (listener, address) = listen().await;
    let (model, _) = model("openai.m", &address);
    let mut half = answer("200 OK", "", CHAT);
    half.truncate(half.len() - 20);
    half.extend_from_slice(CUT);
    let answers = [half];
    let request = ask("x");
    let (_, broken) = tokio::join!(serve(&listener, &answers), model.complete(&request));
    let broken = broken.unwrap_err();
    assert_eq!(broken.failure, CallFailure::ConnectionBroken);
    assert!(broken.message.starts_with(&format!("the connection to {address}/v1/chat/completions was lost")));
    drop(listener);
    let refused = model.complete(&request).await.unwrap_err();
    assert_eq!(refused.failure, CallFailure::Connect);
    assert!(refused.message.starts_with(&format!("no connection to {address}/v1/chat/completions")));
}

#[tokio::test]
async fn a_good_status_with_a_bad_body_is_malformed() {
    let (listener, address) = listen().await;
    let (model, _) = model("openai.m", &address);
    let answers = [answer("200 OK", "", "<html>sign in</html>")];
    let request = ask("x");
    let (_, error) = tokio::join!(serve(&listener, &answers), model.complete(&request));
    let error = error.unwrap_err();
    assert_eq!((error.failure, error.status), (CallFailure::Malformed, Some(200)));
    assert!(error.message.ends_with(": `<html>sign in</html>`"), "{}", error.message);
}

#[tokio::test]
async fn half_a_surrogate_pair_does_not_lose_an_answer() {
    let (listener, address) = listen().await;
    let (model, _) = model("openai.m", &address);
    let answers = [answer("200 OK", "", r#"{"choices":[{"message":{"content":"ok \ud83d"}}]}"#)];
    let request = ask("x");
    let (_, completion) = tokio::join!(serve(&listener, &answers), model.complete(&request));
    assert_eq!(completion.unwrap().text, "ok \u{fffd}");
}

#[tokio::test]
async fn streams_share_a_connection() {
    let (listener, address) = listen().await;
    let (model, _) = model("openai.m?stream=true", &address);
    let answers = [(); 2].map(|()| events(&[r#"{"choices":[{"delta":{"content":"x"}}]}"#, "[DONE]"]));
    let (log, texts) = tokio::join!(serve(&listener, &answers), async {
        let first = model.complete(&ask("one")).await.unwrap().text;
        (first, model.complete(&ask("two")).await.unwrap().text)
    });
    assert_eq!((log.connections, texts), (1, ("x".to_owned(), "x".to_owned())));
}

#[tokio::test]
async fn a_stream_tells_when_its_first_token_came() {
    let (listener, address) = listen().await;
    let (model, _) = model("google.g-1?stream=true", &address);
    let answers = [events(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"He"}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"llo"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}"#,
    ])];
    let request = ask("x");
    let (log, completion) = tokio::join!(serve(&listener, &answers), model.complete(&request));
    let completion = completion.unwrap();
    let seen = &log.requests[0];
    assert_eq!(seen.method, "POST");
    assert_eq!(seen.path, "/v1beta/models/g-1:streamGenerateContent?alt=sse");
    assert_eq!(seen.header("accept"), Some("text/event-stream"));
    assert_eq!(completion.text, "Hello");
    assert!(completion.timing.first_token.is_some_and(|first| first <= completion.timing.response));
    assert_eq!(completion.usage.map(|usage| usage.output), Some(2));
}

#[tokio::test]
async fn a_stream_that_ends_too_soon_is_broken_and_one_with_an_error_fails() {
    let half = r#"{"choices":[{"delta":{"content":"half"}}]}"#;
    for (data, failure) in [
        (&[half][..], CallFailure::ConnectionBroken),
        (&[half, r#"{"error":{"message":"m","type":"server_error"}}"#][..], CallFailure::Server),
        (&[half, "{"][..], CallFailure::Malformed),
    ] {
        let (listener, address) = listen().await;
        let (model, _) = model("openai.m?stream=true", &address);
        let answers = [events(data)];
        let request = ask("x");
        let (_, error) = tokio::join!(serve(&listener, &answers), model.complete(&request));
        assert_eq!(error.unwrap_err().failure, failure, "{data:?}");
    }
}
