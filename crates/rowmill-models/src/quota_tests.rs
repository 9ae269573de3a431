//! Original messages of vendors about used-up quotas and about rate limits.

use std::time::Duration;

use jiff::Timestamp;
use rowmill_http::{HeaderMap, HeaderName, HeaderValue};
use rowmill_types::CallFailure::{self, Malformed, QuotaExhausted, RateLimited, Refused, Server};
use rowmill_types::{CallError, CallRetryClass};

use crate::call_error::{from_error_body, from_status};
use crate::error_body::ErrorBody;

const NOW: &str = "2026-07-15T06:00:00Z";
const HOUR: u64 = 3_600_000;

fn call(status: u16, body: &str) -> CallError {
    from_status(status, &HeaderMap::new(), body.as_bytes(), NOW.parse().unwrap())
}

type Case = (u16, &'static str, CallFailure, Option<u64>);

/// Status and body, and the failure and the wait in milliseconds that they are mapped to.
const CASES: &[Case] = &[
    // OpenAI
    (
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        QuotaExhausted,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","param":null,"code":"billing_hard_limit_reached"}}"#,
        QuotaExhausted,
        None,
    ),
    (
        429,
        r#"{"error":{"message":"Your account is not active, please check your billing details on our website.","type":"billing_not_active","param":null,"code":"billing_not_active"}}"#,
        QuotaExhausted,
        None,
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 2500. Please try again in 3s. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
        RateLimited,
        Some(3000),
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in 120ms.","type":"requests","code":"rate_limit_exceeded"}}"#,
        RateLimited,
        Some(120),
    ),
    // OpenAI refills the daily requests continuously.
    (
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on requests per day (RPD): Limit 10000, Used 10000, Requested 1. Please try again in 8.64s.","type":"requests","code":"rate_limit_exceeded"}}"#,
        RateLimited,
        Some(8640),
    ),
    // Azure
    (
        429,
        r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-06-01 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 26 seconds."}}"#,
        RateLimited,
        Some(26_000),
    ),
    // Anthropic
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#,
        QuotaExhausted,
        None,
    ),
    (
        403,
        r#"{"type":"error","error":{"type":"billing_error","message":"This organization has a billing issue."}}"#,
        QuotaExhausted,
        None,
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-08-01 at 00:00 UTC."},"request_id":"req_1"}"#,
        QuotaExhausted,
        Some(16 * 24 * HOUR + 18 * HOUR),
    ),
    (
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"You have reached your specified workspace API usage limits. You will regain access on 2026-07-16."}}"#,
        QuotaExhausted,
        Some(18 * HOUR),
    ),
    (
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed the rate limit for your organization of 50 requests per minute."}}"#,
        RateLimited,
        None,
    ),
    (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Server, None),
    // Gemini: the day begins at midnight in California, an hour from now.
    (
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.\nPlease retry in 59.6s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"20"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"59s"}]}}"#,
        QuotaExhausted,
        Some(HOUR),
    ),
    (
        429,
        r#"[{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]},{"retryDelay":"39043s"}]}}]"#,
        QuotaExhausted,
        Some(39_043_000),
    ),
    (
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.\nPlease retry in 8.5s.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}]}}"#,
        RateLimited,
        Some(8500),
    ),
    (
        429,
        r#"{"error":{"code":429,"message":"Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.","status":"RESOURCE_EXHAUSTED"}}"#,
        QuotaExhausted,
        None,
    ),
    // Groq
    (
        429,
        r#"{"error":{"message":"Rate limit reached for model `m` in organization `org_1` service tier `on_demand` on tokens per day (TPD): Limit 200000, Used 199708, Requested 1214. Please try again in 6m38.304s. Need more tokens? Upgrade to Dev Tier today","type":"tokens","code":"rate_limit_exceeded"}}"#,
        QuotaExhausted,
        Some(398_304),
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit reached for model `m` on requests per day (RPD): Limit 1000, Used 1000, Requested 1. Please try again in 1h26m24s.","type":"requests","code":"rate_limit_exceeded"}}"#,
        QuotaExhausted,
        Some(5_184_000),
    ),
    // OpenRouter
    (
        429,
        r#"{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1784160000000"},"provider_name":null}},"user_id":"u"}"#,
        QuotaExhausted,
        Some(18 * HOUR),
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit exceeded: free-models-per-min. ","code":429,"metadata":{"headers":{"X-RateLimit-Reset":"1784095230000"}}}}"#,
        RateLimited,
        Some(30_000),
    ),
    (
        402,
        r#"{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/settings/credits","code":402}}"#,
        QuotaExhausted,
        None,
    ),
    // DeepSeek, xAI, Moonshot, Z.ai, Alibaba
    (
        402,
        r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
        QuotaExhausted,
        None,
    ),
    (402, "", QuotaExhausted, None),
    (
        429,
        r#"{"code":"Some resource has been exhausted","error":"Your team t has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit."}"#,
        QuotaExhausted,
        None,
    ),
    (
        403,
        r#"{"code":"The caller does not have permission to execute the specified operation","error":"Your newly created teams doesn't have any credits yet."}"#,
        QuotaExhausted,
        None,
    ),
    (
        429,
        r#"{"error":{"type":"exceeded_current_quota_error","message":"Your account is suspended, please check your plan and billing details"}}"#,
        QuotaExhausted,
        None,
    ),
    (
        429,
        r#"{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}"#,
        QuotaExhausted,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"Access denied, please make sure your account is in good standing.","type":"Arrearage","code":"Arrearage"}}"#,
        QuotaExhausted,
        None,
    ),
    // Errors that only look like a quota.
    (400, r#"{"error":{"message":"the balance of `tokens per day` is not a field"}}"#, Refused, None),
    (
        503,
        r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
        Server,
        None,
    ),
    (429, r#"{"error":{"message":"slow down, and try again in a moment"}}"#, RateLimited, None),
];

#[test]
fn a_used_up_quota_is_distinguished_from_a_rate() {
    for (status, body, failure, wait) in CASES {
        let error = call(*status, body);
        let expected = (*failure, wait.map(Duration::from_millis));
        assert_eq!((error.failure, error.retry_after), expected, "{body}");
    }
    let (status, body, ..) = CASES[0];
    assert_eq!(call(status, body).retry_class(), CallRetryClass::Exhausted { after: None });
}

#[test]
fn errors_within_a_good_answer_are_distinguished_too() {
    for (error, failure, wait) in [
        (r#"{"code":"insufficient_quota","message":"m"}"#, QuotaExhausted, None),
        (r#"{"type":"billing_error","message":"m"}"#, QuotaExhausted, None),
        (
            r#"{"code":"rate_limit_exceeded","message":"on tokens per day (TPD): try again in 7m12s"}"#,
            QuotaExhausted,
            Some(432),
        ),
        (r#"{"code":"rate_limit_exceeded","message":"Please try again in 2s."}"#, RateLimited, Some(2)),
        (r#"{"message":"something about credit"}"#, Malformed, None),
    ] {
        let read = from_error_body(Some(200), ErrorBody::from_error_field(error), NOW.parse().unwrap());
        assert_eq!((read.failure, read.retry_after), (failure, wait.map(Duration::from_secs)), "{error}");
    }
}

#[test]
fn a_header_says_more_than_the_words() {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("retry-after"), HeaderValue::from_static("400"));
    let body = br#"{"error":{"message":"on tokens per day (TPD): Limit 1. Please try again in 7m12s."}}"#;
    let error = from_status(429, &headers, body, NOW.parse().unwrap());
    assert_eq!((error.failure, error.retry_after), (QuotaExhausted, Some(Duration::from_secs(400))));
}

#[test]
fn a_limit_of_zero_is_no_rate_that_passes() {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static("x-ratelimit-limit-req-minute"), HeaderValue::from_static("0"));
    let error = from_status(429, &headers, br#"{"message":"Rate limit exceeded"}"#, NOW.parse().unwrap());
    assert_eq!(error.failure, QuotaExhausted);
    assert_eq!(error.message, "Rate limit exceeded (the account's limit for this model is 0)");
}

#[test]
fn googles_day_ends_at_midnight_in_california_in_summer_and_in_winter() {
    let body = br#"{"error":{"details":[{"violations":[{"quotaId":"XPerDay"}]}]}}"#;
    for (now, hours) in [
        ("2026-07-15T06:59:59Z", 1.0 / 3600.0),
        ("2026-07-15T07:00:00Z", 24.0),
        ("2026-01-15T07:00:00Z", 1.0),
        // The clocks go forward on 8 March: that day has 23 hours.
        ("2026-03-08T08:00:00Z", 23.0),
    ] {
        let now: Timestamp = now.parse().unwrap();
        let wait = from_status(429, &HeaderMap::new(), body, now).retry_after;
        assert_eq!(wait, Some(Duration::from_secs_f64(hours * 3600.0)), "{now}");
    }
}
