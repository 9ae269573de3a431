//! Parses the values of flags, and formulates the errors.

use std::time::Duration;

use rowmill::{InputFormat, Lane, Money, RepairLane};

/// The number of rows at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParallelRows {
    Auto,
    AtMost(usize),
}

/// What to do when a quota is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaAction {
    Wait,
    Stop,
}

/// What is written to standard output at the end of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SummaryFormat {
    #[default]
    Auto,
    Text,
    Json,
}

/// A point in time, or a duration from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadlineValue {
    In(Duration),
    At(jiff::Timestamp),
}

pub(crate) fn parse_parallel_rows(text: &str) -> Result<ParallelRows, String> {
    match text {
        "auto" => Ok(ParallelRows::Auto),
        _ => parse_positive(text)
            .map(|rows| ParallelRows::AtMost(usize::try_from(rows).unwrap_or(usize::MAX)))
            .map_err(
                |what| if what == "must be a whole number" { format!("{what} or `auto`") } else { what },
            ),
    }
}

pub(crate) fn parse_lane(text: &str) -> Result<Lane, String> {
    match text {
        "live" => Ok(Lane::Live),
        "batch" => Ok(Lane::Batch),
        "auto" => Ok(Lane::Auto),
        _ => Err("must be `live`, `batch` or `auto`".to_owned()),
    }
}

pub(crate) fn parse_repair_lane(text: &str) -> Result<RepairLane, String> {
    match text {
        "live" => Ok(RepairLane::Live),
        "batch" => Ok(RepairLane::Batch),
        _ => Err("must be `live` or `batch`".to_owned()),
    }
}

pub(crate) fn parse_quota_action(text: &str) -> Result<QuotaAction, String> {
    match text {
        "wait" => Ok(QuotaAction::Wait),
        "stop" => Ok(QuotaAction::Stop),
        _ => Err("must be `wait` or `stop`".into()),
    }
}

pub(crate) fn parse_summary_format(text: &str) -> Result<SummaryFormat, String> {
    match text {
        "auto" => Ok(SummaryFormat::Auto),
        "text" => Ok(SummaryFormat::Text),
        "json" => Ok(SummaryFormat::Json),
        _ => Err("must be `auto`, `text` or `json`".into()),
    }
}

/// Parses `auto` or `off`.
pub(crate) fn parse_pace(text: &str) -> Result<bool, String> {
    match text {
        "auto" => Ok(true),
        "off" => Ok(false),
        _ => Err("must be `auto` or `off`".into()),
    }
}

pub(crate) fn parse_dollars(text: &str) -> Result<Money, String> {
    let wrong = || "must be an amount in dollars such as `5` or `0.25`".to_owned();
    let number = text.strip_prefix('$').unwrap_or(text).parse::<f64>().map_err(|_| wrong())?;
    Money::from_dollars(number).ok_or_else(wrong)
}

pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let wrong = || "must be a number from 0 to 1, such as `0.05`".to_owned();
    let share = text.parse::<f64>().map_err(|_| wrong())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(wrong()) }
}

pub(crate) fn parse_deadline(text: &str) -> Result<DeadlineValue, String> {
    let wrong =
        || "must be a duration such as `2h`, or a timestamp such as `2026-11-17T06:00:00Z`".to_owned();
    parse_duration(text)
        .map(DeadlineValue::In)
        .or_else(|_| text.parse().map(DeadlineValue::At).map_err(|_| wrong()))
}

pub(crate) fn parse_format(text: &str) -> Result<InputFormat, String> {
    let known = |format: &InputFormat| format.name() == text || format.extensions().contains(&text);
    InputFormat::ALL.iter().copied().find(known).ok_or_else(|| {
        let names: Vec<_> = InputFormat::ALL.iter().map(|format| format!("`{}`", format.name())).collect();
        format!("must be one of {}", names.join(", "))
    })
}

pub(crate) fn parse_u64(text: &str) -> Result<u64, String> {
    match text.parse::<i128>() {
        Ok(value) if value < 0 => Err("must be non-negative".into()),
        Ok(value) => u64::try_from(value).map_err(|_| "is too large".into()),
        Err(_) => Err("must be a whole number".into()),
    }
}

pub(crate) fn parse_u32(text: &str) -> Result<u32, String> {
    u32::try_from(parse_u64(text)?).map_err(|_| "is too large".into())
}

pub(crate) fn parse_positive(text: &str) -> Result<u64, String> {
    match text.parse::<i128>() {
        Ok(value) if value < 1 => Err("must be greater than zero".into()),
        _ => parse_u64(text),
    }
}

/// Parses a duration such as `500ms`, `90s`, `5m` or `1h 30m`; a bare number is in seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a duration such as `30` (seconds), `500ms`, `90s` or `5m`".to_owned();
    if text.starts_with(|first: char| first.is_ascii_digit())
        && let Ok(seconds) = text.parse::<f64>()
    {
        let time = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
        return Some(time).filter(|time| !time.is_zero()).ok_or_else(wrong);
    }
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(parsed).ok().filter(|time| !time.is_zero()).ok_or_else(wrong)
}

/// Parses a duration, or `0` for none.
pub(crate) fn parse_duration_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { parse_duration(text) }
}
