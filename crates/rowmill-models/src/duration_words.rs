//! Durations as providers write them: `1s`, `6m0s`, `2m59.56s`, `26 seconds`.

use std::time::Duration;

use jiff::Timestamp;

/// A plain number from here on is a timestamp in seconds since 1970, not a duration.
const EPOCH_SECONDS: f64 = 1e9;
/// A plain number from here on is a timestamp in milliseconds since 1970.
const EPOCH_MILLISECONDS: f64 = 1e11;

/// Parses the duration at the start of `text`, and returns the rest.
pub(crate) fn leading(text: &str) -> Option<(Duration, &str)> {
    let mut seconds = None;
    let mut rest = text;
    while let Some((part, after)) = part(rest.trim_start()) {
        seconds = Some(seconds.unwrap_or(0.0) + part);
        rest = after;
    }
    Some((Duration::try_from_secs_f64(seconds?).ok()?, rest))
}

/// The time until a reset, which is given as a duration, as seconds, or as a timestamp: in seconds or
/// milliseconds since 1970, or as RFC 3339. `clock` is called only for a timestamp.
pub(crate) fn until_reset(text: &str, clock: impl FnOnce() -> Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        let moment = if number >= EPOCH_MILLISECONDS { number / 1e3 } else { number };
        let seconds = if moment >= EPOCH_SECONDS {
            (moment - clock().as_duration().as_secs_f64()).max(0.0)
        } else {
            number
        };
        return Duration::try_from_secs_f64(seconds).ok();
    }
    if let Some((span, "")) = leading(text) {
        return Some(span);
    }
    Some(between(clock(), text.parse().ok()?))
}

/// The time from one timestamp to a later one; zero if it is past.
pub(crate) fn between(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO)
}

/// One number with its unit, in seconds, and the rest.
fn part(text: &str) -> Option<(f64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(digits);
    let rest = rest.trim_start();
    let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(letters);
    let unit = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" | "millisecond" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * unit, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        "2026-03-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn every_way_to_tell_a_reset_is_read() {
        for (text, milliseconds) in [
            ("1s", 1000),
            ("6m0s", 360_000),
            ("120ms", 120),
            ("2m59.56s", 179_560),
            ("1h2m3s", 3_723_000),
            ("1d", 86_400_000),
            ("26", 26_000),
            ("26.5", 26_500),
            (" 0 ", 0),
            ("1772323230", 30_000),
            ("1772323230000", 30_000),
            ("1772323100", 0),
            ("2026-03-01T00:00:12Z", 12_000),
            ("2026-03-01T01:00:12.5+01:00", 12_500),
            ("2026-02-01T00:00:00Z", 0),
        ] {
            assert_eq!(until_reset(text, now), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in
            ["", "soon", "-1", "NaN", "inf", "1.2.3s", "5 parsecs", "s", "1s!", ".", "1e400s", "12:00"]
        {
            assert_eq!(until_reset(text, now), None, "{text}");
        }
    }

    #[test]
    fn a_length_ends_where_it_no_longer_reads_as_one() {
        for (text, milliseconds, rest) in [
            ("1.2s. Visit", 1200, ". Visit"),
            ("26 seconds.", 26_000, "."),
            ("1 hour 5 minutes, then", 3_900_000, ", then"),
            ("7m12s 3 times", 432_000, " 3 times"),
        ] {
            assert_eq!(leading(text), Some((Duration::from_millis(milliseconds), rest)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in r"[0-9.:TZ+a-zµ é-]{0,40}") {
            leading(&text);
            until_reset(&text, now);
        }

        #[test]
        fn no_text_of_any_kind_makes_the_reader_panic(text in any::<String>()) {
            leading(&text);
            until_reset(&text, now);
        }

        #[test]
        fn a_length_written_in_parts_is_read_whole(hours in 0u64..100, minutes in 0u64..60, millis in 0u64..60_000) {
            let text = format!("{hours}h{minutes}m{}.{:03}s", millis / 1000, millis % 1000);
            let expected = Duration::from_millis((hours * 60 + minutes) * 60_000 + millis);
            let read = until_reset(&text, now).unwrap();
            prop_assert!(read.abs_diff(expected) < Duration::from_micros(1), "{text}: {read:?}");
        }
    }
}
