use std::time::Duration;

use jiff::Timestamp;
use rowmill_http::{HeaderMap, HeaderName, HeaderValue};
use rowmill_types::{RateLimitState, ReportedRateLimits};

use super::{has_zero_limit, rate_limits_from_headers};

type Pairs = &'static [(&'static str, &'static str)];

fn headers(pairs: Pairs) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    pairs.iter().map(pair).collect()
}

fn window(limit: u64, remaining: u64, reset: u64) -> Option<RateLimitState> {
    Some(RateLimitState { limit, remaining, reset: Duration::from_millis(reset) })
}

fn limits_from(pairs: Pairs) -> Option<ReportedRateLimits> {
    let now: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
    rate_limits_from_headers(&headers(pairs), now).map(|reported| *reported)
}

const NONE: ReportedRateLimits =
    ReportedRateLimits { requests: None, tokens: None, input_tokens: None, output_tokens: None };

#[test]
fn openai_and_those_like_it_tell_requests_and_tokens() {
    let openai: Pairs = &[
        ("x-ratelimit-limit-requests", "600"),
        ("x-ratelimit-limit-tokens", "60000"),
        ("x-ratelimit-remaining-requests", "599"),
        ("x-ratelimit-remaining-tokens", "59000"),
        ("x-ratelimit-reset-requests", "100ms"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    // Groq counts requests per day; the reset says how soon all of them are available again.
    let groq: Pairs = &[
        ("x-ratelimit-limit-requests", "14400"),
        ("x-ratelimit-remaining-requests", "14370"),
        ("x-ratelimit-reset-requests", "2m59.56s"),
        ("x-ratelimit-limit-tokens", "18000"),
        ("x-ratelimit-remaining-tokens", "17997"),
        ("x-ratelimit-reset-tokens", "7.66s"),
    ];
    let xai: Pairs = &[
        ("x-ratelimit-limit-requests", "480"),
        ("x-ratelimit-remaining-requests", "479"),
        ("x-ratelimit-limit-tokens", "2000000"),
        ("x-ratelimit-remaining-tokens", "1999000"),
    ];
    for (pairs, requests, tokens) in [
        (openai, window(600, 599, 100), window(60_000, 59_000, 360_000)),
        (groq, window(14_400, 14_370, 179_560), window(18_000, 17_997, 7660)),
        (xai, window(480, 479, 0), window(2_000_000, 1_999_000, 0)),
    ] {
        assert_eq!(limits_from(pairs), Some(ReportedRateLimits { requests, tokens, ..NONE }), "{pairs:?}");
    }
}

#[test]
fn every_dialect_is_understood() {
    let mistral: Pairs = &[
        ("x-ratelimit-limit-req-minute", "50"),
        ("x-ratelimit-remaining-req-minute", "49"),
        ("x-ratelimit-limit-tokens-minute", "50000"),
        ("x-ratelimit-remaining-tokens-minute", "47300"),
        ("x-ratelimit-limit-tokens-month", "4000000"),
        ("x-ratelimit-tokens-query-cost", "1300"),
    ];
    let mistral_before: Pairs = &[
        ("x-ratelimitbysize-limit-minute", "500000"),
        ("x-ratelimitbysize-remaining-minute", "499000"),
        ("x-ratelimitbysize-limit-month", "9"),
        ("x-ratelimitbysize-remaining-month", "9"),
        ("ratelimitbysize-reset", "43"),
    ];
    let cerebras: Pairs = &[
        ("x-ratelimit-limit-requests-day", "14400"),
        ("x-ratelimit-remaining-requests-day", "14000"),
        ("x-ratelimit-reset-requests-day", "33011.3"),
        ("x-ratelimit-limit-tokens-minute", "60000"),
        ("x-ratelimit-remaining-tokens-minute", "50"),
        ("x-ratelimit-reset-tokens-minute", "26.5"),
    ];
    let together: Pairs = &[
        ("x-ratelimit-limit", "10"),
        ("x-ratelimit-remaining", "9"),
        ("x-ratelimit-reset", "1"),
        ("x-tokenlimit-limit", "3000"),
        ("x-tokenlimit-remaining", "2900"),
    ];
    let fireworks: Pairs = &[
        ("x-ratelimit-limit-tokens-prompt", "60000"),
        ("x-ratelimit-remaining-tokens-prompt", "59000"),
        ("x-ratelimit-limit-tokens-generated", "36000"),
        ("x-ratelimit-remaining-tokens-generated", "35000"),
        ("x-ratelimit-over-limit", "no"),
    ];
    let gateway: Pairs = &[
        ("x-ratelimit-limit", "100, 100;w=60"),
        ("x-ratelimit-remaining", "99"),
        ("x-ratelimit-reset", "1772323230"),
    ];
    let (limits, two) = (Some, |requests, tokens| ReportedRateLimits { requests, tokens, ..NONE });
    for (pairs, expected) in [
        (mistral, limits(two(window(50, 49, 0), window(50_000, 47_300, 0)))),
        (mistral_before, limits(two(None, window(500_000, 499_000, 43_000)))),
        (cerebras, limits(two(None, window(60_000, 50, 26_500)))),
        (together, limits(two(window(10, 9, 1000), window(3000, 2900, 1000)))),
        (
            fireworks,
            limits(ReportedRateLimits {
                input_tokens: window(60_000, 59_000, 0),
                output_tokens: window(36_000, 35_000, 0),
                ..NONE
            }),
        ),
        (gateway, limits(two(window(100, 99, 30_000), None))),
    ] {
        assert_eq!(limits_from(pairs), expected, "{pairs:?}");
    }
}

#[test]
fn a_providers_own_word_counts_for_more_than_a_gateways() {
    let pairs: Pairs = &[
        ("x-ratelimit-limit-requests", "600"),
        ("x-ratelimit-remaining-requests", "599"),
        ("x-ratelimit-limit", "5"),
        ("x-ratelimit-remaining", "4"),
        ("x-ratelimit-reset", "50"),
        ("x-ratelimit-limit-tokens", "1000"),
        ("x-ratelimit-remaining-tokens", "900"),
    ];
    let expected = ReportedRateLimits { requests: window(600, 599, 0), tokens: window(1000, 900, 0), ..NONE };
    assert_eq!(limits_from(pairs), Some(expected));
}

#[test]
fn anthropic_tells_input_and_output_apart_by_its_own_clock() {
    let pairs: Pairs = &[
        ("date", "Sun, 01 Mar 2026 12:00:00 GMT"),
        ("anthropic-ratelimit-requests-limit", "4000"),
        ("anthropic-ratelimit-requests-remaining", "3999"),
        ("anthropic-ratelimit-requests-reset", "2026-03-01T12:00:01Z"),
        ("anthropic-ratelimit-input-tokens-limit", "2000000"),
        ("anthropic-ratelimit-input-tokens-remaining", "1900000"),
        ("anthropic-ratelimit-input-tokens-reset", "2026-03-01T12:00:03Z"),
        ("anthropic-ratelimit-output-tokens-limit", "400000"),
        ("anthropic-ratelimit-output-tokens-remaining", "399000"),
        ("anthropic-ratelimit-output-tokens-reset", "2026-03-01T11:00:00Z"),
        ("anthropic-ratelimit-tokens-limit", "2400000"),
        ("anthropic-ratelimit-tokens-remaining", "2299000"),
        ("anthropic-ratelimit-tokens-reset", "2026-03-01T12:00:03Z"),
        ("anthropic-priority-input-tokens-limit", "10000"),
    ];
    assert_eq!(
        limits_from(pairs),
        Some(ReportedRateLimits {
            requests: window(4000, 3999, 1000),
            tokens: None,
            input_tokens: window(2_000_000, 1_900_000, 3000),
            output_tokens: window(400_000, 399_000, 0),
        })
    );
    let together: Pairs = &[
        ("anthropic-ratelimit-tokens-limit", "80000"),
        ("anthropic-ratelimit-tokens-remaining", "79000"),
        ("anthropic-ratelimit-tokens-reset", "2026-03-01T00:00:03Z"),
    ];
    assert_eq!(
        limits_from(together),
        Some(ReportedRateLimits { tokens: window(80_000, 79_000, 3000), ..NONE })
    );
}

#[test]
fn limits_that_are_not_complete_are_not_reported() {
    let cases: [Pairs; 8] = [
        &[],
        &[("content-type", "application/json"), ("date", "Sun, 01 Mar 2026 12:00:00 GMT")],
        // Azure reports what remains but not the limit.
        &[("x-ratelimit-remaining-requests", "9"), ("x-ratelimit-remaining-tokens", "8000")],
        &[("x-ratelimit-limit-requests", "9")],
        &[("x-ratelimit-limit-requests", "n/a"), ("x-ratelimit-remaining-requests", "1")],
        &[("x-ratelimit-limit-requests", "9"), ("x-ratelimit-remaining-requests", "-1")],
        &[("x-ratelimit-limit-req-minute", "0"), ("x-ratelimit-remaining-req-minute", "0")],
        &[("ratelimit-limit", "9"), ("ratelimit-remaining", "9")],
    ];
    for pairs in cases {
        assert_eq!(limits_from(pairs), None, "{pairs:?}");
    }
}

#[test]
fn a_limit_of_zero_is_known_for_what_it_is() {
    assert!(has_zero_limit(&headers(&[("x-ratelimit-limit-req-minute", "0")])));
    assert!(!has_zero_limit(&headers(&[("x-ratelimit-remaining-req-minute", "0")])));
    assert!(!has_zero_limit(&headers(&[("x-ratelimit-limit-req-minute", "4")])));
    assert!(!has_zero_limit(&headers(&[])));
}
