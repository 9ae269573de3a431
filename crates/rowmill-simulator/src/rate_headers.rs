//! How vendors report their limits: headers, and the messages of rejections.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::bucket::BucketState;
use crate::limiter::{BucketStates, LimitExceeded};
use crate::limits::LimitKind;
use crate::outgoing_answer::Headers;
use crate::protocol::{RequestRefusal, VendorProtocol};

/// The headers in which a vendor reports the state of its limits.
pub(crate) fn headers(protocol: VendorProtocol, standings: &BucketStates, now: Timestamp) -> Headers {
    match protocol {
        VendorProtocol::Chat | VendorProtocol::Responses => openai(standings),
        VendorProtocol::Messages => anthropic(standings, now),
        // This vendor reports nothing until it rejects a call.
        VendorProtocol::Google => Headers::new(),
    }
}

/// The rejection of a call that exceeds a rate limit.
pub(crate) fn refusal(
    protocol: VendorProtocol,
    model: &str,
    limited: &LimitExceeded,
    now: Timestamp,
) -> RequestRefusal {
    let limit = limited.standings.iter().find(|(measure, _)| *measure == limited.by);
    let limit = limit.map_or(0, |(_, standing)| standing.limit);
    let mut refused = match protocol {
        VendorProtocol::Chat | VendorProtocol::Responses => {
            let (kind, unit) = match limited.by {
                LimitKind::Requests => ("requests", "requests per min (RPM)"),
                _ => ("tokens", "tokens per min (TPM)"),
            };
            let wait = span(limited.wait);
            let message = format!(
                "Rate limit reached for {model} in organization org-simulator on {unit}: Limit {limit}. Please try again in {wait}."
            );
            RequestRefusal { kind: Some(kind), ..RequestRefusal::new(429, message) }
        }
        VendorProtocol::Messages => {
            let unit = match limited.by {
                LimitKind::Requests => "requests",
                LimitKind::Tokens => "tokens",
                LimitKind::InputTokens => "input tokens",
                LimitKind::OutputTokens => "output tokens",
            };
            let message = format!(
                "This request would exceed your organization's rate limit of {limit} {unit} per minute."
            );
            RequestRefusal::new(429, message)
        }
        VendorProtocol::Google => {
            let unit = if limited.by == LimitKind::Requests { "Requests" } else { "InputTokens" };
            let failure = quota_failure(model, &format!("Generate{unit}PerMinutePerProjectPerModel"), limit);
            RequestRefusal {
                details: vec![failure, retry_info(limited.wait)],
                ..RequestRefusal::new(429, EXCEEDED)
            }
        }
    };
    refused.headers = headers(protocol, &limited.standings, now);
    if protocol != VendorProtocol::Google {
        let seconds = limited.wait.as_nanos().div_ceil(1_000_000_000);
        refused.headers.push(("retry-after".into(), seconds.to_string()));
    }
    if matches!(protocol, VendorProtocol::Chat | VendorProtocol::Responses) {
        let milliseconds = limited.wait.as_nanos().div_ceil(1_000_000);
        refused.headers.push(("retry-after-ms".into(), milliseconds.to_string()));
    }
    refused
}

/// The rejection of every call once the quota is used up; `wait` is the time until it is renewed.
pub(crate) fn quota_refusal(
    protocol: VendorProtocol,
    model: &str,
    quota: u64,
    wait: Option<Duration>,
) -> RequestRefusal {
    match protocol {
        VendorProtocol::Chat | VendorProtocol::Responses => RequestRefusal {
            kind: Some("insufficient_quota"),
            code: Some("insufficient_quota"),
            ..RequestRefusal::new(
                429,
                format!("{EXCEEDED} For more information on this error, read the docs."),
            )
        },
        VendorProtocol::Messages => RequestRefusal::new(
            400,
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        VendorProtocol::Google => {
            let failure = quota_failure(model, "GenerateRequestsPerDayPerProjectPerModel", quota);
            let details = [Some(failure), wait.map(retry_info)].into_iter().flatten().collect();
            RequestRefusal { details, ..RequestRefusal::new(429, EXCEEDED) }
        }
    }
}

const EXCEEDED: &str = "You exceeded your current quota, please check your plan and billing details.";

fn quota_failure(model: &str, id: &str, limit: u64) -> Value {
    json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
        "quotaId": id,
        "quotaDimensions": {"location": "global", "model": model},
        "quotaValue": limit.to_string()
    }]})
}

fn retry_info(wait: Duration) -> Value {
    json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": seconds(whole_milliseconds(wait))})
}

fn openai(standings: &BucketStates) -> Headers {
    let mut headers = Headers::new();
    for (measure, standing) in standings {
        let unit = match measure {
            LimitKind::Requests => "requests",
            LimitKind::Tokens => "tokens",
            // This vendor has no limits on one direction.
            LimitKind::InputTokens | LimitKind::OutputTokens => continue,
        };
        headers.push((format!("x-ratelimit-limit-{unit}"), standing.limit.to_string()));
        headers.push((format!("x-ratelimit-remaining-{unit}"), standing.remaining.to_string()));
        headers.push((format!("x-ratelimit-reset-{unit}"), span(standing.reset)));
    }
    headers
}

fn anthropic(standings: &BucketStates, now: Timestamp) -> Headers {
    let of = |wanted: LimitKind| {
        standings.iter().find(|(measure, _)| *measure == wanted).map(|(_, standing)| *standing)
    };
    let combined = of(LimitKind::Tokens);
    let (input, output) = (of(LimitKind::InputTokens).or(combined), of(LimitKind::OutputTokens));
    let tightest = [combined, input, output].into_iter().flatten().min_by_key(|standing| standing.remaining);
    let mut headers = Headers::new();
    let mut tell = |unit: &str, standing: BucketState| {
        let place = |what: &str| format!("anthropic-ratelimit-{unit}-{what}");
        headers.push((place("limit"), standing.limit.to_string()));
        headers.push((place("remaining"), standing.remaining.to_string()));
        headers.push((place("reset"), moment(now, standing.reset)));
    };
    if let Some(requests) = of(LimitKind::Requests) {
        tell("requests", requests);
    }
    for (unit, standing) in [("input-tokens", input), ("output-tokens", output), ("tokens", tightest)] {
        if let Some(standing) = standing {
            tell(unit, BucketState { remaining: (standing.remaining + 500) / 1_000 * 1_000, ..standing });
        }
    }
    headers
}

/// The time `wait` from now as RFC 3339, in whole seconds and rounded up.
fn moment(now: Timestamp, wait: Duration) -> String {
    let nanoseconds = now.as_nanosecond() + i128::try_from(wait.as_nanos()).unwrap_or(0);
    let seconds =
        nanoseconds.div_euclid(1_000_000_000) + i128::from(nanoseconds.rem_euclid(1_000_000_000) > 0);
    let moment = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    moment.unwrap_or(now).to_string()
}

/// A duration in OpenAI's format: `120ms`, `1s`, `1.5s`, `6m0s`, `1h0m0s`.
fn span(time: Duration) -> String {
    let all = whole_milliseconds(time);
    let (hours, minutes, rest) = (all / 3_600_000, all / 60_000 % 60, all % 60_000);
    match (hours, minutes) {
        (0, 0) if (1..1_000).contains(&rest) => format!("{rest}ms"),
        (0, 0) => seconds(rest),
        (0, _) => format!("{minutes}m{}", seconds(rest)),
        _ => format!("{hours}h{minutes}m{}", seconds(rest)),
    }
}

fn whole_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn seconds(milliseconds: u64) -> String {
    format!("{}s", milliseconds as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn standing(limit: u64, remaining: u64, reset: u64) -> BucketState {
        BucketState { limit, remaining, reset: Duration::from_millis(reset) }
    }

    fn text(headers: &Headers) -> String {
        headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }

    #[test]
    fn openai_tells_durations() {
        let standings = vec![
            (LimitKind::Requests, standing(600, 599, 100)),
            (LimitKind::Tokens, standing(60_000, 21_250, 38_750)),
        ];
        for protocol in [VendorProtocol::Chat, VendorProtocol::Responses] {
            assert_eq!(
                text(&headers(protocol, &standings, Timestamp::UNIX_EPOCH)),
                "x-ratelimit-limit-requests: 600\nx-ratelimit-remaining-requests: 599\nx-ratelimit-reset-requests: 100ms\n\
                 x-ratelimit-limit-tokens: 60000\nx-ratelimit-remaining-tokens: 21250\nx-ratelimit-reset-tokens: 38.75s\n"
            );
        }
    }

    #[test]
    fn anthropic_tells_moments_and_rounds_tokens() {
        let standings = vec![
            (LimitKind::Requests, standing(50, 49, 1_200)),
            (LimitKind::InputTokens, standing(30_000, 29_499, 1_001)),
            (LimitKind::OutputTokens, standing(8_000, 8_000, 0)),
        ];
        let now = at("2026-01-31T23:59:58.5Z");
        assert_eq!(
            text(&headers(VendorProtocol::Messages, &standings, now)),
            "anthropic-ratelimit-requests-limit: 50\nanthropic-ratelimit-requests-remaining: 49\n\
             anthropic-ratelimit-requests-reset: 2026-02-01T00:00:00Z\n\
             anthropic-ratelimit-input-tokens-limit: 30000\nanthropic-ratelimit-input-tokens-remaining: 29000\n\
             anthropic-ratelimit-input-tokens-reset: 2026-02-01T00:00:00Z\n\
             anthropic-ratelimit-output-tokens-limit: 8000\nanthropic-ratelimit-output-tokens-remaining: 8000\n\
             anthropic-ratelimit-output-tokens-reset: 2026-01-31T23:59:59Z\n\
             anthropic-ratelimit-tokens-limit: 8000\nanthropic-ratelimit-tokens-remaining: 8000\n\
             anthropic-ratelimit-tokens-reset: 2026-01-31T23:59:59Z\n"
        );
        let combined = vec![(LimitKind::Tokens, standing(30_000, 500, 59_000))];
        let printed = text(&headers(VendorProtocol::Messages, &combined, now));
        for unit in ["input-tokens", "tokens"] {
            assert!(printed.contains(&format!("anthropic-ratelimit-{unit}-remaining: 1000\n")), "{printed}");
        }
        assert!(!printed.contains("output"), "{printed}");
    }

    #[test]
    fn spans_are_written_as_openai_writes_them() {
        for (nanoseconds, written) in [
            (0, "0s"),
            (1, "1ms"),
            (120_000_000, "120ms"),
            (1_000_000_000, "1s"),
            (1_500_000_001, "1.501s"),
            (360_000_000_000, "6m0s"),
            (3_661_500_000_000, "1h1m1.5s"),
        ] {
            assert_eq!(span(Duration::from_nanos(nanoseconds)), written);
        }
    }

    #[test]
    fn a_refusal_tells_the_true_wait_in_the_vendors_words() {
        let limited = LimitExceeded {
            by: LimitKind::Requests,
            wait: Duration::from_millis(3_200),
            standings: vec![(LimitKind::Requests, standing(20, 0, 60_000))],
        };
        let of = |protocol| refusal(protocol, "m", &limited, Timestamp::UNIX_EPOCH);
        let openai = of(VendorProtocol::Chat);
        assert!(
            text(&openai.headers).ends_with("reset-requests: 1m0s\nretry-after: 4\nretry-after-ms: 3200\n")
        );
        assert!(openai.message.contains("on requests per min (RPM): Limit 20. Please try again in 3.2s."));
        let anthropic = of(VendorProtocol::Messages);
        assert!(text(&anthropic.headers).ends_with("reset: 1970-01-01T00:01:00Z\nretry-after: 4\n"));
        let google = of(VendorProtocol::Google);
        assert_eq!(google.headers, Headers::new());
        assert_eq!(
            google.details.last().unwrap(),
            &json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.2s"})
        );
    }
}
