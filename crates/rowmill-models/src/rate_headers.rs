//! The rate limits that a response reports in its headers.

use std::cell::OnceCell;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_http::HeaderMap;
use rowmill_types::{RateLimitState, ReportedRateLimits};

use crate::duration_words;
use crate::requested_wait::provider_time;

/// The limits in the headers of a response.
///
/// `now` is used to interpret a reset given as a point in time if the response has no date of its own. Daily
/// and monthly limits are left out: they are quotas and do not set a pace.
pub(crate) fn rate_limits_from_headers(
    headers: &HeaderMap,
    now: Timestamp,
) -> Option<Box<ReportedRateLimits>> {
    let limits = ReportedLimits::read(headers)?;
    let date = OnceCell::new();
    let clock = || *date.get_or_init(|| provider_time(headers, now));
    let window = |slot: &LimitHeaders<'_>| {
        Some(RateLimitState {
            // A limit of zero would cause a division by zero; `has_zero_limit` reports it.
            limit: slot.limit.filter(|limit| *limit > 0)?,
            remaining: slot.remaining?,
            reset: slot
                .reset
                .and_then(|text| duration_words::until_reset(text, clock))
                .unwrap_or(Duration::ZERO),
        })
    };
    let mut rates = ReportedRateLimits {
        requests: window(&limits.requests),
        tokens: window(&limits.tokens),
        input_tokens: window(&limits.input),
        output_tokens: window(&limits.output),
    };
    if rates.requests.is_none() {
        // Headers that do not say what they count are taken to count requests, unless others do. Together's
        // tokens share their reset.
        rates.requests = window(&limits.unnamed);
        let reset = limits.tokens.reset.or(limits.unnamed.reset);
        rates.tokens = window(&LimitHeaders { reset, ..limits.tokens });
    }
    if rates.input_tokens.is_some() && rates.output_tokens.is_some() {
        // The two separate limits are more precise than their sum, which for Anthropic is the tightest of
        // several limits.
        rates.tokens = None;
    }
    (!rates.is_empty()).then(|| Box::new(rates))
}

/// Whether a limit is zero: the account has no access to this model at all.
pub(crate) fn has_zero_limit(headers: &HeaderMap) -> bool {
    let Some(limits) = ReportedLimits::read(headers) else { return false };
    [limits.requests, limits.tokens, limits.input, limits.output].iter().any(|slot| slot.limit == Some(0))
}

/// What was reported about one limit.
#[derive(Debug, Clone, Copy, Default)]
struct LimitHeaders<'a> {
    limit: Option<u64>,
    remaining: Option<u64>,
    reset: Option<&'a str>,
}

#[derive(Debug, Default)]
struct ReportedLimits<'a> {
    requests: LimitHeaders<'a>,
    tokens: LimitHeaders<'a>,
    input: LimitHeaders<'a>,
    output: LimitHeaders<'a>,
    /// `x-ratelimit-limit` and similar headers, which do not say what they count.
    unnamed: LimitHeaders<'a>,
}

impl<'a> ReportedLimits<'a> {
    /// Reads the headers in one pass; `None` if none of them is about limits.
    fn read(headers: &'a HeaderMap) -> Option<Self> {
        let mut limits = None;
        for (name, value) in headers {
            let Some((measure, kind)) = place(name.as_str()) else { continue };
            let Ok(value) = value.to_str() else { continue };
            let slot = limits.get_or_insert_with(Self::default).slot(kind);
            match (slot, measure) {
                (Some(slot), "limit") => slot.limit = count(value),
                (Some(slot), "remaining") => slot.remaining = count(value),
                (Some(slot), "reset") => slot.reset = Some(value),
                _ => {}
            }
        }
        limits
    }

    fn slot(&mut self, kind: &str) -> Option<&mut LimitHeaders<'a>> {
        match kind {
            "requests" | "requests-minute" | "req-minute" => Some(&mut self.requests),
            "tokens" | "tokens-minute" => Some(&mut self.tokens),
            "input-tokens" | "tokens-prompt" => Some(&mut self.input),
            "output-tokens" | "tokens-generated" => Some(&mut self.output),
            "" => Some(&mut self.unnamed),
            _ => None,
        }
    }
}

/// Splits a header's name into the measure (`limit`, `remaining`, `reset`) and what it counts.
fn place(name: &str) -> Option<(&str, &str)> {
    if let Some(rest) = name.strip_prefix("anthropic-ratelimit-") {
        // The measure is the last part.
        return rest.rsplit_once('-').map(|(kind, measure)| (measure, kind));
    }
    let bare = name.strip_prefix("x-").unwrap_or(name);
    if let Some(rest) = bare.strip_prefix("ratelimit-").filter(|_| bare.len() < name.len()) {
        return Some(rest.split_once('-').unwrap_or((rest, "")));
    }
    // Mistral's older headers count tokens, as do Together's.
    let rest = bare.strip_prefix("ratelimitbysize-").or_else(|| bare.strip_prefix("tokenlimit-"))?;
    match rest.split_once('-').unwrap_or((rest, "")) {
        (measure, "" | "minute") => Some((measure, "tokens")),
        _ => None,
    }
}

/// A count, even if a gateway appends its policy: `100, 100;w=60`.
fn count(value: &str) -> Option<u64> {
    value.split([',', ';']).next()?.trim().parse().ok()
}

#[cfg(test)]
#[path = "rate_headers_tests.rs"]
mod tests;
