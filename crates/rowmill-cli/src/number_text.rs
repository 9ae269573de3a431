//! Formats numbers for people.

use std::time::Duration;

pub(crate) use rowmill::group_digits;

/// `1 row`, `2 rows`.
pub(crate) fn count_phrase(count: u64, what: &str) -> String {
    format!("{} {what}{}", group_digits(count), if count == 1 { "" } else { "s" })
}

/// A rate with its significant digits.
pub(crate) fn rate_text(value: f64) -> String {
    if value >= 100.0 { group_digits(value.round() as u64) } else { format!("{value:.1}") }
}

/// A duration: `40ms`, `0.4s`, `12s`, `3m 05s`, `2h 10m`.
pub(crate) fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 if duration.as_millis() < 100 => format!("{}ms", duration.as_millis()),
        0..10 => format!("{:.1}s", duration.as_secs_f64()),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// A size: `512 B`, `4.2 kB`, `37 MB`, `1.5 GB`.
pub(crate) fn size_text(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "kB", "MB", "GB", "TB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    // A value that would be rounded up to 1000 is shown in the next unit.
    while let Some(larger) = (value >= 999.5).then(|| units.next()).flatten() {
        (value, unit) = (value / 1000.0, larger);
    }
    if value < 9.95 && unit != "B" { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!([0, 1, 2000].map(|rows| count_phrase(rows, "row")), ["0 rows", "1 row", "2,000 rows"]);
        assert_eq!([0.04, 12.34, 99.96, 8123.4].map(rate_text), ["0.0", "12.3", "100.0", "8,123"]);
        assert_eq!(
            [0, 999, 1000, 9_940, 37_000_000, 999_600_000, 1_500_000_000].map(size_text),
            ["0 B", "999 B", "1.0 kB", "9.9 kB", "37 MB", "1.0 GB", "1.5 GB"]
        );
        assert_eq!(
            [40, 400, 12_000, 185_000, 7_800_000].map(|ms| duration_text(Duration::from_millis(ms))),
            ["40ms", "0.4s", "12s", "3m 05s", "2h 10m"]
        );
    }
}
