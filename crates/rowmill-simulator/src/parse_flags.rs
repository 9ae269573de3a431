//! Parses the parts of a script from the text of flags.

use std::time::Duration;

use rowmill_core::cost::{Price, TokenPrices};
use rowmill_core::time_span;
use rowmill_types::Money;
use serde_json::Value;

use crate::call_marker;
use crate::conditions::SimulatorConditionChange;
use crate::distribution::RandomDistribution;
use crate::fault::SimulatedFault;
use crate::limits::LimitKind;

/// Parses a duration such as `20ms`, `1.5s` or `2m`.
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    time_span::parse_single_unit_duration(text)
        .ok_or_else(|| format!("`{text}` is not a duration; write `20ms`, `1.5s` or `2m`"))
}

/// Parses a fault and the share of calls it affects, such as `503=0.02` or `429=2%,retry-after=1`.
///
/// ```
/// # use rowmill_simulator::{SimulatedFault, parse_flags};
/// let (fault, rate) = parse_flags::parse_fault_rate("429=2%,retry-after=1").unwrap();
/// assert_eq!((fault, rate), (SimulatedFault::from_status(429).with_header("retry-after", "1"), 0.02));
/// ```
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_fault_rate(text: &str) -> Result<(SimulatedFault, f64), String> {
    let (rule, headers) = text.split_once(',').map_or((text, None), |(rule, rest)| (rule, Some(rest)));
    let (name, rate) = rule.split_once('=').ok_or("write a fault as KIND=RATE, such as `503=0.02`")?;
    let mut fault = SimulatedFault::from_name(name).ok_or_else(|| format!("`{name}` is not a fault"))?;
    for header in headers.into_iter().flat_map(|headers| headers.split(',')) {
        let (name, value) =
            header.split_once('=').filter(|_| matches!(fault, SimulatedFault::Status { .. })).ok_or_else(
                || format!("`{header}` is not a header of an error status, such as `retry-after=1`"),
            )?;
        fault = fault.with_header(name.trim(), value.trim());
    }
    Ok((fault, parse_share(rate)?))
}

/// Parses a share such as `0.02` or `2%`.
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    match number.parse::<f64>().map(|number| number / whole) {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is not a share between 0 and 1")),
    }
}

/// Parses the start and the length of an outage, such as `60s+30s`.
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_outage(text: &str) -> Result<(Duration, Duration), String> {
    let (start, length) = text.split_once('+').ok_or("write an outage as START+LENGTH, such as `60s+30s`")?;
    Ok((parse_duration(start)?, parse_duration(length)?))
}

/// Parses a time and its changes, such as `120s:rpm=300,tpm=30000` or `60s:outage=30s,outage-status=reset`.
///
/// ```
/// # use rowmill_simulator::{SimulatorConditionChange, LimitKind, parse_flags};
/// # use std::time::Duration;
/// let (after, changes) = parse_flags::parse_timed_condition_changes("2m:rpm=300,tpm=none").unwrap();
/// assert_eq!(after, Duration::from_secs(120));
/// assert_eq!(changes, [SimulatorConditionChange::Limit(LimitKind::Requests, Some(300)), SimulatorConditionChange::Limit(LimitKind::Tokens, None)]);
/// ```
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_timed_condition_changes(
    text: &str,
) -> Result<(Duration, Vec<SimulatorConditionChange>), String> {
    let (after, rest) =
        text.split_once(':').ok_or("write a change as TIME:KEY=VALUE,…, such as `120s:rpm=300,tpm=30000`")?;
    let after = parse_duration(after)?;
    let mut changes = Vec::new();
    let (mut length, mut status) = (None, None);
    for (key, value) in pairs(rest)? {
        match key {
            "outage" => length = Some(parse_duration(&value)?),
            "outage-status" => status = Some(value.parse()?),
            "quota" => changes.push(match value.as_str() {
                "exhausted" => SimulatorConditionChange::QuotaExhausted,
                "ok" => SimulatorConditionChange::QuotaRenewed,
                _ => return Err(format!("`{value}` is not a quota state; write `exhausted` or `ok`")),
            }),
            "latency" => {
                changes.push(SimulatorConditionChange::Latency(RandomDistribution::parse_durations(&value)?))
            }
            _ => {
                let measure = LimitKind::from_flag(key).ok_or_else(|| {
                    format!("`{key}` cannot change; write `rpm`, `tpm`, `itpm`, `otpm`, `outage`, `outage-status`, `quota` or `latency`")
                })?;
                changes.push(SimulatorConditionChange::Limit(measure, limit(&value)?));
            }
        }
    }
    match (length, status) {
        (Some(length), status) => changes.push(SimulatorConditionChange::Outage(length, status)),
        (None, Some(_)) => return Err("`outage-status` also needs `outage`".to_owned()),
        (None, None) => {}
    }
    Ok((after, changes))
}

fn limit(text: &str) -> Result<Option<u64>, String> {
    match text.parse() {
        _ if text == "none" => Ok(None),
        Ok(limit @ 1..) => Ok(Some(limit)),
        _ => Err(format!("`{text}` is not a limit; write a whole number from 1, or `none`")),
    }
}

/// Pairs of key and value. A part without `=` belongs to the value before it, because a distribution contains
/// a comma.
fn pairs(text: &str) -> Result<Vec<(&str, String)>, String> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for part in text.split(',') {
        match (part.split_once('='), pairs.last_mut()) {
            (Some((key, value)), _) => pairs.push((key.trim(), value.trim().to_owned())),
            (None, Some((_, value))) => value.push_str(&format!(",{part}")),
            (None, None) => return Err(format!("`{part}` is not KEY=VALUE")),
        }
    }
    Ok(pairs)
}

/// Parses a tool and its arguments, such as `search {"query": "otters"}` or `search`.
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_tool_call(text: &str) -> Result<(String, Value), String> {
    let wrong = || {
        format!("`{text}` is not a call; write a tool and its arguments: `search {{\"query\": \"otters\"}}`")
    };
    call_marker::parse(text).ok_or_else(wrong)
}

/// Parses prices in dollars per million tokens, such as `input=0.25,cached=0.025,output=2`.
///
/// Without prices of their own, cached and written tokens cost the same as other prompt tokens.
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_price(text: &str) -> Result<Price, String> {
    let (mut input, mut cached, mut cache_write, mut output) = (None, None, None, None);
    for (key, value) in pairs(text)? {
        let dollars: Option<f64> = value.parse().ok();
        let money = dollars.and_then(|dollars| Money::from_dollars(dollars / 1e6));
        let place = match key {
            "input" => &mut input,
            "cached" => &mut cached,
            "cache_write" => &mut cache_write,
            "output" => &mut output,
            _ => {
                return Err(format!(
                    "`{key}` has no price; write `input`, `cached`, `cache_write` or `output`"
                ));
            }
        };
        *place =
            Some(money.ok_or_else(|| format!("`{value}` is not a price in dollars per million tokens"))?);
    }
    let (Some(input), Some(output)) = (input, output) else {
        return Err("a price needs `input` and `output`, such as `input=0.25,output=2`".to_owned());
    };
    let tokens = TokenPrices {
        input,
        cached: cached.unwrap_or(input),
        cache_write: cache_write.unwrap_or(input),
        output,
        reasoning: output,
    };
    Ok(Price { tokens, long: None, batch_percent: None })
}

/// A longer job is a mistake.
const LONGEST_JOB: Duration = Duration::from_secs(366 * 86_400);

/// Parses a duration of a job, such as `10s`, `2h` or `3d`.
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_job_duration(text: &str) -> Result<Duration, String> {
    long_duration(text).ok_or_else(|| format!("`{text}` is not a duration; write `10s`, `20m`, `2h` or `3d`"))
}

fn long_duration(text: &str) -> Option<Duration> {
    let unit = text.strip_suffix('h').map(|number| (number, 3_600.0));
    let Some((number, seconds)) = unit.or_else(|| text.strip_suffix('d').map(|number| (number, 86_400.0)))
    else {
        return time_span::parse_single_unit_duration(text);
    };
    let duration = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
    (duration <= LONGEST_JOB).then_some(duration)
}

/// Parses the durations of jobs: `2h`, `uniform:1h..30h`, `lognormal:1h,0.6` or `exponential:1h`.
///
/// # Errors
///
/// The text is none of these; the message says what to write.
pub fn parse_job_duration_distribution(text: &str) -> Result<RandomDistribution, String> {
    let seconds = |text: &str| long_duration(text).map(|time| time.as_secs_f64());
    RandomDistribution::read(text, seconds).ok_or_else(|| {
        format!(
            "`{text}` is not a duration; write `2h`, `uniform:1h..30h`, `lognormal:1h,0.6` or `exponential:1h`"
        )
    })
}

/// Parses how many times as fast as real time the time of jobs passes, such as `3600`.
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_time_scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 1e9 => Ok(scale),
        _ => Err(format!("`{text}` is not a factor; write a number above 0, such as `3600`")),
    }
}

/// Parses a mistake in the input of jobs: its code and its line, such as `duplicate_custom_id:3`.
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_validation_error(text: &str) -> Result<(String, u64), String> {
    let parsed = text.split_once(':').and_then(|(code, line)| Some((code, line.parse().ok()?)));
    match parsed {
        Some((code, line)) if !code.is_empty() && line > 0 => Ok((code.to_owned(), line)),
        _ => Err(format!("`{text}` is not CODE:LINE, such as `duplicate_custom_id:3`")),
    }
}

/// Parses how many creates fail, and with which status: `2` or `2:500`; the usual status is 503.
///
/// # Errors
///
/// The text is none; the message says what to write.
pub fn parse_failed_creates(text: &str) -> Result<(u64, u16), String> {
    let (count, status) = text.split_once(':').unwrap_or((text, "503"));
    match (count.parse(), status.parse()) {
        (Ok(count), Ok(status @ 400..=599)) => Ok((count, status)),
        _ => Err(format!("`{text}` is not N or N:STATUS, such as `2:500`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outage::OutageKind;

    #[test]
    fn every_change_can_be_written() {
        let (after, found) = parse_timed_condition_changes(
            "90s:latency=lognormal:800ms,0.6,outage=30s,outage-status=refuse,quota=ok,otpm=5",
        )
        .unwrap();
        assert_eq!(after, Duration::from_secs(90));
        assert_eq!(
            found,
            [
                SimulatorConditionChange::Latency(RandomDistribution::LogNormal { median: 0.8, sigma: 0.6 }),
                SimulatorConditionChange::QuotaRenewed,
                SimulatorConditionChange::Limit(LimitKind::OutputTokens, Some(5)),
                SimulatorConditionChange::Outage(Duration::from_secs(30), Some(OutageKind::Refuse)),
            ]
        );
        assert_eq!(
            parse_timed_condition_changes("1s:outage=2s").unwrap().1,
            [SimulatorConditionChange::Outage(Duration::from_secs(2), None)]
        );
    }

    #[test]
    fn what_cannot_be_read_is_reported() {
        for (text, message) in [
            ("rpm=1", "TIME:KEY=VALUE"),
            ("soon:rpm=1", "not a duration"),
            ("1s:rpm=0", "not a limit"),
            ("1s:weather=1", "cannot change"),
            ("1s:quota=half", "not a quota state"),
            ("1s:outage-status=503", "needs `outage`"),
            ("1s:outage=1s,outage-status=200", "not a kind of outage"),
            ("1s:latency=soon", "not a latency"),
            ("1s:300", "not KEY=VALUE"),
        ] {
            assert!(parse_timed_condition_changes(text).unwrap_err().contains(message), "{text}");
        }
        for text in ["", "search {", "search [1]", "search otters"] {
            assert!(parse_tool_call(text).unwrap_err().contains("not a call"), "{text}");
        }
        for (text, message) in [
            ("429", "KIND=RATE"),
            ("429=soon", "not a share"),
            ("429=101%", "not a share"),
            ("429=0.1,later", "not a header"),
            ("reset=0.1,retry-after=1", "not a header"),
        ] {
            assert!(parse_fault_rate(text).unwrap_err().contains(message), "{text}");
        }
        for text in ["60s", "60s+soon", "+"] {
            assert!(parse_outage(text).is_err(), "{text}");
        }
        for (text, message) in [
            ("input=1", "needs `input` and `output`"),
            ("input=1,output=-1", "not a price"),
            ("input=1,output=1,batch=1", "has no price"),
        ] {
            assert!(parse_price(text).unwrap_err().contains(message), "{text}");
        }
    }

    #[test]
    fn settings_of_jobs_can_be_written() {
        let hours = |count: u64| Duration::from_secs(count * 3_600);
        assert_eq!(parse_job_duration("2h"), Ok(hours(2)));
        assert_eq!(parse_job_duration("1.5d"), Ok(hours(36)));
        assert_eq!(parse_job_duration_distribution("30h"), Ok(RandomDistribution::Constant(108_000.0)));
        let uniform = RandomDistribution::Uniform { low: 3_600.0, high: 108_000.0 };
        assert_eq!(parse_job_duration_distribution("uniform:1h..30h"), Ok(uniform));
        assert_eq!(parse_validation_error("url_mismatch:3"), Ok(("url_mismatch".to_owned(), 3)));
        assert_eq!((parse_failed_creates("2"), parse_failed_creates("1:500")), (Ok((2, 503)), Ok((1, 500))));
        for text in ["h", "-1h", "999d", "soon"] {
            assert!(parse_job_duration(text).unwrap_err().contains("write `10s`"), "{text}");
        }
        for text in ["0", "-1", "fast", "inf"] {
            assert!(parse_time_scale(text).is_err(), "{text}");
        }
        for text in ["url_mismatch", ":1", "url_mismatch:0"] {
            assert!(parse_validation_error(text).is_err(), "{text}");
        }
        assert!(parse_failed_creates("2:200").is_err());
    }

    #[test]
    fn prices_are_per_million_tokens() {
        let tokens = parse_price("input=0.25,cached=0.025,cache_write=0.3,output=2").unwrap().tokens;
        let pico = [tokens.input, tokens.cached, tokens.cache_write, tokens.output].map(Money::pico);
        assert_eq!(pico, [250_000, 25_000, 300_000, 2_000_000]);
        assert_eq!(parse_price("input=1,output=2").unwrap().tokens.cached.pico(), 1_000_000);
    }
}
