//! Durations as users write them in model strings and for the simulator.

use std::time::Duration;

/// A wait of more than a day is a mistake.
const LONGEST_MICROSECONDS: f64 = 86_400e6;

/// Parses a duration such as `20ms`, `1.5s`, `2m` or `2` (seconds).
///
/// ```
/// # use {rowmill_core::time_span::parse_single_unit_duration, std::time::Duration};
/// assert_eq!(parse_single_unit_duration("0.3s"), Some(Duration::from_millis(300)));
/// assert_eq!(parse_single_unit_duration("2 parsecs"), None);
/// ```
#[must_use]
pub fn parse_single_unit_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" | "" => number,
        "m" => number * 60.0,
        _ => return None,
    };
    // A millisecond written as a fraction of a second must not become 0.9999.
    let micros = (seconds * 1e6).round();
    (0.0..=LONGEST_MICROSECONDS).contains(&micros).then(|| Duration::from_secs_f64(micros / 1e6))
}
