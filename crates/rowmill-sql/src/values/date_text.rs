//! Dates, times and intervals as text, in DuckDB's formats.

use std::fmt::Write as _;

use super::calendar::{
    CivilDay, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, midnight_of,
    split_timestamp,
};
use super::interval::SqlInterval;

/// Why a text is not a date or time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DateTextFailure {
    /// It is invalid.
    NotADate,
    /// It may be one, in a format that is interpreted differently in different places.
    Ambiguous,
    /// It is a time in a time zone other than UTC.
    HasZone,
}

type DateTextResult<T> = Result<T, DateTextFailure>;

/// Parses a date: `2024-05-01`; a time after it is ignored.
pub(crate) fn parse_date(text: &str) -> DateTextResult<i32> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r']);
    let (day, rest) = leading_day(trimmed)?;
    if !rest.is_empty() {
        parse_timestamp(trimmed)?;
    }
    i32::try_from(day.days()).map_err(|_| DateTextFailure::NotADate)
}

/// Parses a timestamp: `2024-05-01 10:30:00.5`, `2024-05-01T10:30:00Z`.
pub(crate) fn parse_timestamp(text: &str) -> DateTextResult<i64> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r']);
    let (day, rest) = leading_day(trimmed)?;
    let start = midnight_of(day.days()).ok_or(DateTextFailure::NotADate)?;
    if rest.is_empty() {
        return Ok(start);
    }
    let clock = rest.strip_prefix([' ', 'T']).ok_or(DateTextFailure::NotADate)?;
    let end = clock.find(|letter: char| !(letter.is_ascii_digit() || letter == ':' || letter == '.'));
    let (clock, zone) = clock.split_at(end.unwrap_or(clock.len()));
    let micros =
        parse_clock(clock).filter(|micros| *micros <= MICROS_PER_DAY).ok_or(DateTextFailure::NotADate)?;
    match zone.trim() {
        "" | "Z" | "UTC" | "+00" | "+00:00" | "+0000" => {
            start.checked_add(micros).ok_or(DateTextFailure::NotADate)
        }
        zone if zone.starts_with(['+', '-'])
            || zone.starts_with(|first: char| first.is_ascii_alphabetic()) =>
        {
            Err(DateTextFailure::HasZone)
        }
        _ => Err(DateTextFailure::NotADate),
    }
}

/// Parses a timestamp with an offset from UTC.
pub(crate) fn parse_instant(text: &str) -> DateTextResult<i64> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r']);
    let at =
        trimmed.get(10..).and_then(|rest| rest.rfind(['Z', '+', '-'])).ok_or(DateTextFailure::Ambiguous)?;
    let (local, zone) = trimmed.split_at(at + 10);
    let local = parse_timestamp(local)?;
    if zone == "Z" {
        return Ok(local);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone.chars().skip(1).filter(|letter| *letter != ':').collect();
    let is_offset = matches!(digits.len(), 2 | 4) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = digits.parse().ok().filter(|_| is_offset).ok_or(DateTextFailure::Ambiguous)?;
    let (hours, minutes) = if digits.len() == 2 { (number, 0) } else { (number / 100, number % 100) };
    let offset = sign * (hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE);
    local.checked_sub(offset).ok_or(DateTextFailure::NotADate)
}

/// Parses a time of day: `10:30`, `10:30:00.5`.
pub(crate) fn parse_time(text: &str) -> DateTextResult<i64> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r']);
    if leading_day(trimmed).is_ok() {
        return parse_timestamp(trimmed).map(|timestamp| split_timestamp(timestamp).1);
    }
    parse_clock(trimmed).filter(|micros| *micros <= MICROS_PER_DAY).ok_or(DateTextFailure::NotADate)
}

/// The date at the start of a text, and the rest.
fn leading_day(text: &str) -> DateTextResult<(CivilDay, &str)> {
    let lower = text.to_ascii_lowercase();
    let is_word = ["inf", "-inf", "+inf"].contains(&lower.as_str())
        || ["epoch", "infinity", "-infinity", "+infinity"].iter().any(|word| lower.starts_with(word));
    let has_sign = text.strip_prefix(['-', '+']).is_some_and(|rest| {
        let behind = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
        behind.len() < rest.len() && behind.starts_with(['-', '/', '\\', ' '])
    });
    if is_word || lower.contains("(bc)") || has_sign {
        return Err(DateTextFailure::Ambiguous);
    }
    let (year, rest) = leading_number(text, 6).ok_or(DateTextFailure::NotADate)?;
    let separator = rest.chars().next().filter(|letter| matches!(letter, '-' | '/' | '\\' | ' '));
    let separator = separator.ok_or(DateTextFailure::NotADate)?;
    let behind = |text: &'_ str| text.strip_prefix(separator).map(str::to_owned);
    let rest = behind(rest).ok_or(DateTextFailure::NotADate)?;
    let (month, rest) = leading_number(&rest, 2).ok_or(DateTextFailure::NotADate)?;
    let rest = behind(rest).ok_or(DateTextFailure::NotADate)?;
    let (day, rest) = leading_number(&rest, 2).ok_or(DateTextFailure::NotADate)?;
    let day = CivilDay::new(year, month, day).ok_or(DateTextFailure::NotADate)?;
    let behind = text.get(text.len() - rest.len()..).ok_or(DateTextFailure::NotADate)?;
    Ok((day, behind))
}

fn leading_number(text: &str, most: usize) -> Option<(i64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    ((1..=most).contains(&digits)).then(|| Some((number.parse().ok()?, rest)))?
}

/// Parses `10:30` and `10:30:00.5`; digits beyond six of a second's fraction are cut off.
pub(crate) fn parse_clock(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let number = |text: &str, most: i64| {
        let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|number| is_number && *number <= most)
    };
    let hours = number(parts.next()?, 999_999_999)?;
    let minutes = number(parts.next()?, 59)?;
    let (seconds, fraction) = match parts.next() {
        Some(seconds) => seconds.split_once('.').unwrap_or((seconds, "0")),
        None => ("0", "0"),
    };
    let seconds = number(seconds, 59)?;
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros: i64 = format!("{:0<6}", fraction.chars().take(6).collect::<String>()).parse().ok()?;
    Some(hours * MICROS_PER_HOUR + minutes * MICROS_PER_MINUTE + seconds * MICROS_PER_SECOND + micros)
}

/// Writing into a string cannot fail.
fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(what);
    debug_assert!(written.is_ok(), "strings take everything");
}

pub(crate) fn date_text(days: i64) -> String {
    let day = CivilDay::from_days(days);
    let mut out = String::new();
    if day.year > 0 {
        put(&mut out, format_args!("{:04}-{:02}-{:02}", day.year, day.month, day.day));
    } else {
        put(&mut out, format_args!("{:04}-{:02}-{:02} (BC)", 1 - day.year, day.month, day.day));
    }
    out
}

pub(crate) fn time_text(micros: i64) -> String {
    let mut out = String::new();
    write_clock(micros, &mut out);
    out
}

pub(crate) fn timestamp_text(timestamp: i64) -> String {
    let (days, micros) = split_timestamp(timestamp);
    format!("{} {}", date_text(days), time_text(micros))
}

fn write_clock(micros: i64, out: &mut String) {
    let seconds = micros / MICROS_PER_SECOND;
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    let rest = micros % MICROS_PER_SECOND;
    if rest != 0 {
        let digits = format!("{rest:06}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

pub(crate) fn interval_text(interval: SqlInterval) -> String {
    let mut parts = Vec::new();
    let mut part = |count: i32, unit: &str| {
        if count != 0 {
            parts.push(format!("{count} {unit}{}", if count.abs() == 1 { "" } else { "s" }));
        }
    };
    part(interval.months / 12, "year");
    part(interval.months % 12, "month");
    part(interval.days, "day");
    if interval.micros != 0 || parts.is_empty() {
        let mut clock = String::new();
        if interval.micros < 0 {
            clock.push('-');
        }
        write_clock(interval.micros.saturating_abs(), &mut clock);
        parts.push(clock);
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_duckdb_reads_them() {
        for (text, expected) in [
            ("2024-01-05 10:00", Ok("2024-01-05 10:00:00")),
            ("2024-1-5 1:2:3", Ok("2024-01-05 01:02:03")),
            ("2024/01/05", Ok("2024-01-05 00:00:00")),
            (" 2024-01-05T10:00:00Z ", Ok("2024-01-05 10:00:00")),
            ("2024-01-05 10:00:00.123456789", Ok("2024-01-05 10:00:00.123456")),
            ("2024-01-05 24:00:00", Ok("2024-01-06 00:00:00")),
            ("2024-01-05 10", Err(DateTextFailure::NotADate)),
            ("2024-01-05 25:00:00", Err(DateTextFailure::NotADate)),
            ("2024-02-30", Err(DateTextFailure::NotADate)),
            ("2024-01-05x", Err(DateTextFailure::NotADate)),
            ("x", Err(DateTextFailure::NotADate)),
            ("", Err(DateTextFailure::NotADate)),
            ("2024-01-05 10:00:00+02", Err(DateTextFailure::HasZone)),
            ("infinity", Err(DateTextFailure::Ambiguous)),
        ] {
            let found = parse_timestamp(text).map(timestamp_text);
            assert_eq!(found, expected.map(str::to_owned), "{text}");
        }
        assert_eq!(
            parse_date("2024-01-05T10:00:00").map(i64::from).map(date_text),
            Ok("2024-01-05".to_owned())
        );
        assert_eq!(
            parse_instant("2024-01-05 10:00:00+02:00").map(timestamp_text),
            Ok("2024-01-05 08:00:00".to_owned())
        );
        assert_eq!(parse_instant("2024-01-05 10:00:00"), Err(DateTextFailure::Ambiguous));
    }

    #[test]
    fn spans_are_written_as_duckdb_writes_them() {
        for (text, expected) in [
            ("1 year 2 months 3 days 04:05:06.7", "1 year 2 months 3 days 04:05:06.7"),
            ("0 days", "00:00:00"),
            ("36 hours", "36:00:00"),
            ("1 month -1 day", "1 month -1 day"),
            ("-1 hour", "-01:00:00"),
        ] {
            assert_eq!(SqlInterval::parse(text).map(interval_text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(SqlInterval::parse(""), None);
        assert_eq!(SqlInterval::parse("3"), None);
    }
}
