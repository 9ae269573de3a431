//! The wait that a provider asks for, in headers, body or message.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use rowmill_http::HeaderMap;

use crate::classify::SOON_RENEWED;
use crate::duration_words;
use crate::error_body::ErrorBody;

/// The time zone of Google's quota day, written as a rule so that no time zone database is needed.
const PACIFIC: &str = "PST8PDT,M3.2.0,M11.1.0";

/// Phrases before a wait in a message.
const LEADS: &[&str] = &["try again in ", "retry in ", "retry after "];

/// The longest plausible wait. Longer ones could not be added to a timestamp.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The wait that an error response asks for: in its headers, else in its body, else in its message.
pub(crate) fn requested_wait(headers: &HeaderMap, body: &ErrorBody, now: Timestamp) -> Option<Duration> {
    stated_wait(headers, body, now).map(|wait| wait.min(LONGEST))
}

fn stated_wait(headers: &HeaderMap, body: &ErrorBody, now: Timestamp) -> Option<Duration> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let wait = header("retry-after-ms").and_then(milliseconds);
    let wait = wait.or_else(|| {
        let value = header("retry-after")?;
        seconds(value)
            .or_else(|| Some(duration_words::between(provider_time(headers, now), http_date(value)?)))
    });
    let wait = wait.or_else(|| in_body(body, now));
    if body.day_used_up {
        // Google asks for a minute even if the daily quota is used up.
        return wait.filter(|wait| *wait > SOON_RENEWED).or_else(|| until_pacific_midnight(now));
    }
    wait
}

/// The provider's clock, if the response reports its time.
pub(crate) fn provider_time(headers: &HeaderMap, now: Timestamp) -> Timestamp {
    headers.get("date").and_then(|date| http_date(date.to_str().ok()?)).unwrap_or(now)
}

fn in_body(body: &ErrorBody, now: Timestamp) -> Option<Duration> {
    let reset = || duration_words::until_reset(body.reset.as_deref()?, || now);
    body.retry_after.or_else(reset).or_else(|| wait_from_text(&body.words, now))
}

/// A wait in a sentence: `please try again in 7m12s`, `you will regain access on 2026-08-01 at 00:00 utc`.
fn wait_from_text(words: &str, now: Timestamp) -> Option<Duration> {
    let after = |lead: &&str| words.split_once(*lead).map(|(_, after)| after);
    if let Some((wait, _)) = LEADS.iter().filter_map(after).find_map(duration_words::leading) {
        return Some(wait);
    }
    let (_, when) = words.split_once("regain access on ")?;
    let mut when = when.split_ascii_whitespace();
    let date: Date = when.next()?.trim_end_matches('.').parse().ok()?;
    let time = match (when.next(), when.next()) {
        (Some("at"), Some(time)) => time.parse().ok()?,
        _ => Time::midnight(),
    };
    let then = date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
    Some(duration_words::between(now, then.timestamp()))
}

fn until_pacific_midnight(now: Timestamp) -> Option<Duration> {
    let here = now.to_zoned(TimeZone::posix(PACIFIC).ok()?);
    let midnight = here.tomorrow().ok()?.start_of_day().ok()?;
    Some(duration_words::between(now, midnight.timestamp()))
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

fn milliseconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse::<f64>().ok()? / 1e3).ok()
}

fn http_date(text: &str) -> Option<Timestamp> {
    Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp())
}
