//! Parses the values of flags, and formulates the errors.

use std::time::Duration;

use rowmill::{Format, Money};

/// The number of rows at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    Auto,
    AtMost(usize),
}

/// What to do when a quota is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quota {
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
pub(crate) enum Deadline {
    In(Duration),
    At(jiff::Timestamp),
}

pub(crate) fn rows(text: &str) -> Result<Rows, String> {
    match text {
        "auto" => Ok(Rows::Auto),
        _ => positive(text).map(|rows| Rows::AtMost(usize::try_from(rows).unwrap_or(usize::MAX))).map_err(
            |what| if what == "must be a whole number" { format!("{what} or `auto`") } else { what },
        ),
    }
}

pub(crate) fn quota(text: &str) -> Result<Quota, String> {
    match text {
        "wait" => Ok(Quota::Wait),
        "stop" => Ok(Quota::Stop),
        _ => Err("must be `wait` or `stop`".into()),
    }
}

pub(crate) fn summary_format(text: &str) -> Result<SummaryFormat, String> {
    match text {
        "auto" => Ok(SummaryFormat::Auto),
        "text" => Ok(SummaryFormat::Text),
        "json" => Ok(SummaryFormat::Json),
        _ => Err("must be `auto`, `text` or `json`".into()),
    }
}

/// Parses `auto` or `off`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "auto" => Ok(true),
        "off" => Ok(false),
        _ => Err("must be `auto` or `off`".into()),
    }
}

pub(crate) fn dollars(text: &str) -> Result<Money, String> {
    let wrong = || "must be an amount in dollars such as `5` or `0.25`".to_owned();
    let number = text.strip_prefix('$').unwrap_or(text).parse::<f64>().map_err(|_| wrong())?;
    Money::from_dollars(number).ok_or_else(wrong)
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    let wrong = || "must be a number from 0 to 1, such as `0.05`".to_owned();
    let share = text.parse::<f64>().map_err(|_| wrong())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(wrong()) }
}

pub(crate) fn deadline(text: &str) -> Result<Deadline, String> {
    let wrong =
        || "must be a duration such as `2h`, or a timestamp such as `2026-11-17T06:00:00Z`".to_owned();
    duration(text).map(Deadline::In).or_else(|_| text.parse().map(Deadline::At).map_err(|_| wrong()))
}

pub(crate) fn format_name(text: &str) -> Result<Format, String> {
    let known = |format: &Format| format.name() == text || format.endings().contains(&text);
    Format::ALL.iter().copied().find(known).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.iter().map(|format| format!("`{}`", format.name())).collect();
        format!("must be one of {}", names.join(", "))
    })
}

pub(crate) fn whole(text: &str) -> Result<u64, String> {
    match text.parse::<i128>() {
        Ok(value) if value < 0 => Err("must be non-negative".into()),
        Ok(value) => u64::try_from(value).map_err(|_| "is too large".into()),
        Err(_) => Err("must be a whole number".into()),
    }
}

pub(crate) fn whole_u32(text: &str) -> Result<u32, String> {
    u32::try_from(whole(text)?).map_err(|_| "is too large".into())
}

pub(crate) fn positive(text: &str) -> Result<u64, String> {
    match text.parse::<i128>() {
        Ok(value) if value < 1 => Err("must be greater than zero".into()),
        _ => whole(text),
    }
}

/// Parses a duration such as `500ms`, `90s`, `5m` or `1h 30m`; a bare number is in seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
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
pub(crate) fn duration_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}
