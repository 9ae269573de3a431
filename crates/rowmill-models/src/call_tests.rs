use std::time::Duration;

use jiff::Timestamp;
use rowmill_http::{HeaderMap, HeaderName, HeaderValue, HttpFailure};
use rowmill_types::CallFailure::{RateLimited, Refused, Server, Unauthorized, UnknownModel, UnknownPath};
use rowmill_types::{CallError, CallFailure, CallRetryClass};

use super::{CallErrorReporter, from_status};
use crate::test_support::setup;
use crate::wire_protocol::UnreadableAnswer;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    pairs.iter().map(pair).collect()
}

fn call(status: u16, pairs: &[(&'static str, &'static str)], body: &str) -> CallError {
    let now: Timestamp = "2015-10-21T07:28:00Z".parse().unwrap();
    from_status(status, &headers(pairs), body.as_bytes(), now)
}

fn reporter() -> CallErrorReporter {
    let connection = setup("openai.m", None, None).connection;
    CallErrorReporter { connection, address: "http://host/v1/chat/completions".to_owned() }
}

type Case = (u16, &'static str, CallFailure, &'static str, Option<&'static str>);

/// Status and body, and the failure, message and code that they are mapped to.
const CASES: &[Case] = &[
    (
        401,
        r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
        Unauthorized,
        "Incorrect API key provided",
        Some("invalid_api_key"),
    ),
    (
        401,
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"r"}"#,
        Unauthorized,
        "invalid x-api-key",
        Some("authentication_error"),
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#,
        Unauthorized,
        "API key not valid. Please pass a valid API key.",
        Some("INVALID_ARGUMENT"),
    ),
    (
        403,
        r#"{"type":"error","error":{"type":"permission_error","message":"Your key lacks permission"}}"#,
        Unauthorized,
        "Your key lacks permission",
        Some("permission_error"),
    ),
    (
        403,
        r#"{"error":{"message":"input was flagged","code":403}}"#,
        Refused,
        "input was flagged",
        Some("403"),
    ),
    (
        404,
        r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","code":"model_not_found"}}"#,
        UnknownModel,
        "The model `x` does not exist",
        Some("model_not_found"),
    ),
    (404, "404 page not found\n", UnknownPath, "404 page not found", None),
    (404, r#"{"detail":"Not Found"}"#, UnknownPath, "Not Found", None),
    (404, "model 'x' not found", UnknownModel, "model 'x' not found", None),
    (
        404,
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}"#,
        UnknownModel,
        "model: claude-x",
        Some("not_found_error"),
    ),
    (
        400,
        r#"{"error":{"message":"x is not a valid model ID","code":400}}"#,
        UnknownModel,
        "x is not a valid model ID",
        Some("400"),
    ),
    (
        400,
        r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error","code":"invalid_request_error"}}"#,
        UnknownModel,
        "Model Not Exist",
        Some("invalid_request_error"),
    ),
    (
        400,
        r#"{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        Refused,
        "too long",
        Some("context_length_exceeded"),
    ),
    (
        429,
        r#"[{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED"}}]"#,
        RateLimited,
        "Quota",
        Some("RESOURCE_EXHAUSTED"),
    ),
    (
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Server,
        "Overloaded",
        Some("overloaded_error"),
    ),
    (
        422,
        r#"{"object":"error","message":{"detail":[{"type":"missing","loc":["body"],"msg":"Field required"}]},"type":"invalid_request_error"}"#,
        Refused,
        "Field required",
        Some("invalid_request_error"),
    ),
    (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, Refused, "field required", None),
    (400, r#"{"error":"input too large"}"#, Refused, "input too large", None),
    (408, "", Server, "the provider returned 408 without a reason", None),
    (409, "{}", Server, "the provider returned 409 without a reason", None),
    (425, "", Server, "the provider returned 425 without a reason", None),
    (502, "<html>\n <h1>Bad  Gateway</h1>", Server, "<html> <h1>Bad Gateway</h1>", None),
    (413, "", Refused, "the provider returned 413 without a reason", None),
];

#[test]
fn statuses_and_bodies_say_what_failed() {
    for (status, body, failure, message, code) in CASES {
        let error = call(*status, &[], body);
        assert_eq!(
            (error.failure, error.message.as_str(), error.code.as_deref(), error.status),
            (*failure, *message, *code, Some(*status)),
            "{body}"
        );
    }
}

#[test]
fn the_wait_that_the_provider_asks_for_is_kept() {
    for (pairs, expected) in [
        (&[("retry-after-ms", "1500"), ("retry-after", "9")][..], Some(1500)),
        (&[("retry-after", "9")][..], Some(9000)),
        (&[("retry-after", " 0.25 ")][..], Some(250)),
        (&[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT")][..], Some(30_000)),
        (
            &[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"), ("date", "Wed, 21 Oct 2015 07:28:10 GMT")][..],
            Some(20_000),
        ),
        (&[("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT")][..], Some(0)),
        (&[("retry-after", "10000000000000000000")][..], Some(366 * 86_400_000)),
        (&[("retry-after", "-1")][..], None),
        (&[("retry-after", "NaN")][..], None),
        (&[("retry-after", "soon")][..], None),
        (&[][..], None),
    ] {
        let wait = call(429, pairs, "").retry_after;
        assert_eq!(wait, expected.map(Duration::from_millis), "{pairs:?}");
    }
    let gemini = r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12.5s"}]}}"#;
    assert_eq!(
        call(429, &[], gemini).retry_class(),
        CallRetryClass::Throttled { after: Some(Duration::from_millis(12_500)) }
    );
}

#[test]
fn a_provider_that_says_not_to_retry_is_believed() {
    for (status, failure) in
        [(500, CallFailure::Refused), (409, CallFailure::Refused), (429, CallFailure::RateLimited)]
    {
        assert_eq!(call(status, &[("x-should-retry", "false")], "").failure, failure, "{status}");
    }
    assert_eq!(call(500, &[("x-should-retry", "true")], "").failure, CallFailure::Server);
}

#[test]
fn keys_are_taken_out_before_a_message_is_cut() {
    let long = format!("{}sk-secret tail", "x".repeat(496));
    let error = reporter().status_error(
        400,
        &HeaderMap::new(),
        format!(r#"{{"message":"{long}","code":"sk-secret"}}"#).as_bytes(),
    );
    assert_eq!(error.message, format!("{}*** …", "x".repeat(496)));
    assert_eq!(error.code.as_deref(), Some("***"));
}

#[test]
fn a_404_names_the_address_and_a_broken_answer_quotes_itself() {
    let error = reporter().status_error(404, &HeaderMap::new(), b"nope");
    assert_eq!(error.message, "nope (http://host/v1/chat/completions answered 404)");
    let error = reporter().unreadable_error(
        200,
        UnreadableAnswer::Malformed("cut off".to_owned()),
        b"{\"a\": sk-secret",
    );
    assert_eq!((error.message.as_str(), error.status), ("cut off: `{\"a\": ***`", Some(200)));
}

#[test]
fn failures_of_the_connection_name_the_address() {
    let refused = reporter().transport_error(&HttpFailure::Connect("Connection refused".to_owned()));
    assert_eq!(refused.failure, CallFailure::Connect);
    assert_eq!(refused.message, "no connection to http://host/v1/chat/completions: Connection refused");
    let broken = reporter().transport_error(&HttpFailure::Broken("reset".to_owned()));
    assert_eq!(broken.failure, CallFailure::ConnectionBroken);
    assert_eq!(broken.message, "the connection to http://host/v1/chat/completions was lost: reset");
    let silent = reporter().transport_error(&HttpFailure::TimedOut("nothing came".to_owned()));
    assert_eq!(silent.failure, CallFailure::Timeout);
    assert_eq!(silent.message, "http://host/v1/chat/completions: nothing came");
}

#[test]
fn a_refusal_tells_the_limits_too() {
    let pairs = [("x-ratelimit-limit-requests", "60"), ("x-ratelimit-remaining-requests", "0")];
    let rates = call(429, &pairs, "").rate_limits.unwrap();
    assert_eq!(rates.requests.map(|window| (window.limit, window.remaining)), Some((60, 0)));
    assert_eq!(call(429, &[], "").rate_limits, None);
}
