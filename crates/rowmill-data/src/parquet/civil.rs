//! Dates and times as ISO 8601 text, as Python's `isoformat` writes them.

use arrow_schema::TimeUnit;

const DAY: i64 = 86_400;

/// The length of a unit.
fn nanoseconds_of(unit: TimeUnit) -> u32 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Appends a date, given in days since 1970-01-01. Years with other than four digits get a sign.
pub(super) fn write_date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = year_month_day(days);
    if (0..=9999).contains(&year) {
        let mut text = *b"0000-00-00";
        set_date(&mut text, (year, month, day));
        out.extend_from_slice(&text);
        return;
    }
    out.push(if year < 0 { b'-' } else { b'+' });
    let digits = year.unsigned_abs().to_string();
    for _ in digits.len()..4 {
        out.push(b'0');
    }
    out.extend_from_slice(digits.as_bytes());
    out.push(b'-');
    push_two(month, out);
    out.push(b'-');
    push_two(day, out);
}

/// Appends a time of day, given as the time since midnight.
pub(super) fn write_time(value: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let (seconds, nanoseconds) = split(value, unit);
    write_clock(seconds, nanoseconds, out);
}

/// Appends a timestamp, counted from 1970-01-01T00:00:00.
pub(super) fn write_timestamp(value: i64, unit: TimeUnit, utc: bool, out: &mut Vec<u8>) {
    let (seconds, nanoseconds) = split(value, unit);
    let (days, clock) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = year_month_day(days);
    if (0..=9999).contains(&year) && nanoseconds % 1_000 == 0 {
        // The form of almost every timestamp, written at once.
        let mut text = *b"0000-00-00T00:00:00.000000";
        set_date(&mut text, (year, month, day));
        set_two(&mut text, 11, clock / 3600);
        set_two(&mut text, 14, clock / 60 % 60);
        set_two(&mut text, 17, clock % 60);
        let microseconds = nanoseconds / 1_000;
        set_two(&mut text, 20, microseconds / 10_000);
        set_two(&mut text, 22, microseconds / 100 % 100);
        set_two(&mut text, 24, microseconds % 100);
        let length = if microseconds == 0 { 19 } else { text.len() };
        out.extend_from_slice(text.get(..length).unwrap_or_default());
    } else {
        write_date(days, out);
        out.push(b'T');
        write_clock(clock, nanoseconds, out);
    }
    if utc {
        out.extend_from_slice(b"+00:00");
    }
}

/// Appends a duration: `P1DT2H3M4.5S`.
pub(super) fn write_duration(value: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let parts = u128::from(value.unsigned_abs()) * u128::from(nanoseconds_of(unit));
    if value < 0 {
        out.push(b'-');
    }
    out.push(b'P');
    let (days, rest) = (parts / 86_400_000_000_000, parts % 86_400_000_000_000);
    push_part(days, b'D', out);
    if rest != 0 || days == 0 {
        write_hours(rest, out);
    }
}

/// Appends the months, days and milliseconds of an interval: `P1M2DT0.5S`.
pub(super) fn write_interval(bytes: &[u8], out: &mut Vec<u8>) {
    let mut parts = [0u32; 3];
    for (part, bytes) in parts.iter_mut().zip(bytes.chunks_exact(4)) {
        *part = bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
    }
    let [months, days, milliseconds] = parts.map(u128::from);
    out.push(b'P');
    push_part(months / 12, b'Y', out);
    push_part(months % 12, b'M', out);
    push_part(days, b'D', out);
    if milliseconds != 0 || (months == 0 && days == 0) {
        write_hours(milliseconds * 1_000_000, out);
    }
}

/// Appends less than a day, or a number of milliseconds, after its `T`.
fn write_hours(nanoseconds: u128, out: &mut Vec<u8>) {
    let seconds = nanoseconds / 1_000_000_000;
    let fraction = nanoseconds % 1_000_000_000;
    out.push(b'T');
    push_part(seconds / 3600, b'H', out);
    push_part(seconds / 60 % 60, b'M', out);
    if !seconds.is_multiple_of(60) || fraction != 0 || seconds == 0 {
        out.extend_from_slice((seconds % 60).to_string().as_bytes());
        if fraction != 0 {
            let digits = format!("{fraction:09}");
            out.push(b'.');
            out.extend_from_slice(digits.trim_end_matches('0').as_bytes());
        }
        out.push(b'S');
    }
}

fn push_part(value: u128, letter: u8, out: &mut Vec<u8>) {
    if value != 0 {
        out.extend_from_slice(value.to_string().as_bytes());
        out.push(letter);
    }
}

/// Whole seconds, and the remaining nanoseconds.
fn split(value: i64, unit: TimeUnit) -> (i64, i64) {
    let length = i64::from(nanoseconds_of(unit));
    let per_second = 1_000_000_000 / length;
    (value.div_euclid(per_second), value.rem_euclid(per_second) * length)
}

fn write_clock(seconds: i64, nanoseconds: i64, out: &mut Vec<u8>) {
    // Invalid times of day stay recognizable: more than 99 hours are written with all digits.
    let hours = seconds.div_euclid(3600);
    if (0..100).contains(&hours) {
        push_two(hours, out);
    } else {
        out.extend_from_slice(hours.to_string().as_bytes());
    }
    out.push(b':');
    push_two(seconds.rem_euclid(3600) / 60, out);
    out.push(b':');
    push_two(seconds.rem_euclid(60), out);
    if nanoseconds != 0 {
        out.push(b'.');
        push_two(nanoseconds / 10_000_000, out);
        push_two(nanoseconds / 100_000 % 100, out);
        push_two(nanoseconds / 1_000 % 100, out);
        let rest = nanoseconds % 1_000;
        if rest != 0 {
            out.push(digit(rest / 100));
            push_two(rest % 100, out);
        }
    }
}

/// Writes a date with a four-digit year into the first ten bytes.
fn set_date(text: &mut [u8], (year, month, day): (i64, i64, i64)) {
    set_two(text, 0, year / 100);
    set_two(text, 2, year % 100);
    set_two(text, 5, month);
    set_two(text, 8, day);
}

/// Writes a two-digit number.
fn set_two(text: &mut [u8], at: usize, value: i64) {
    let value = u8::try_from(value).unwrap_or(0) % 100;
    if let Some([tens, ones]) = text.get_mut(at..at + 2) {
        *tens = b'0' + value / 10;
        *ones = b'0' + value % 10;
    }
}

fn push_two(value: i64, out: &mut Vec<u8>) {
    out.push(digit(value / 10));
    out.push(digit(value % 10));
}

fn digit(value: i64) -> u8 {
    u8::try_from(value).ok().filter(|value| *value < 10).map_or(b'0', |value| b'0' + value)
}

/// The calendar date, computed in eras of 400 years that start in March, so that the leap day comes last.
fn year_month_day(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let mut day = jiff::civil::date(-400, 1, 1);
        let epoch = jiff::civil::date(1970, 1, 1);
        while day < jiff::civil::date(9990, 1, 1) {
            let days = i64::from((day - epoch).get_days());
            assert_eq!(
                year_month_day(days),
                (i64::from(day.year()), i64::from(day.month()), i64::from(day.day()))
            );
            day = day.checked_add(jiff::Span::new().days(97)).unwrap();
        }
        for (days, shown) in [
            (19_844, "2024-05-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (2_932_897, "+10000-01-01"),
        ] {
            assert_eq!(text(|out| write_date(days, out)), shown);
        }
    }

    #[test]
    fn times_have_a_fraction_only_where_there_is_one() {
        use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
        for (value, unit, shown) in [
            (0, Second, "00:00:00"),
            (36_000_250, Millisecond, "10:00:00.250000"),
            (86_399_999_999, Microsecond, "23:59:59.999999"),
            (1_001, Nanosecond, "00:00:00.000001001"),
            (1_000, Nanosecond, "00:00:00.000001"),
        ] {
            assert_eq!(text(|out| write_time(value, unit, out)), shown);
        }
        for (value, unit, utc, shown) in [
            (1_714_557_600, Second, false, "2024-05-01T10:00:00"),
            (1_714_557_600_000_001, Microsecond, true, "2024-05-01T10:00:00.000001+00:00"),
            (-1, Millisecond, false, "1969-12-31T23:59:59.999000"),
            (i64::MAX, Nanosecond, false, "2262-04-11T23:47:16.854775807"),
            (i64::MIN, Nanosecond, false, "1677-09-21T00:12:43.145224192"),
        ] {
            assert_eq!(text(|out| write_timestamp(value, unit, utc, out)), shown);
        }
        for extreme in [i64::MIN, i64::MAX] {
            assert!(!text(|out| write_timestamp(extreme, Second, true, out)).is_empty());
            assert!(!text(|out| write_date(extreme, out)).is_empty());
            assert!(!text(|out| write_time(extreme, Second, out)).is_empty());
            assert!(!text(|out| write_duration(extreme, Second, out)).is_empty());
        }
    }

    #[test]
    fn spans_are_iso_durations() {
        use TimeUnit::{Microsecond, Millisecond, Second};
        for (value, unit, shown) in [
            (0, Second, "PT0S"),
            (86_400, Second, "P1D"),
            (93_784_500, Millisecond, "P1DT2H3M4.5S"),
            (-1, Microsecond, "-PT0.000001S"),
            (3_600, Second, "PT1H"),
        ] {
            assert_eq!(text(|out| write_duration(value, unit, out)), shown);
        }
        for (parts, shown) in [
            ([0, 0, 0], "PT0S"),
            ([14, 3, 500], "P1Y2M3DT0.5S"),
            ([0, 2, 0], "P2D"),
            ([0, 0, 90_000_000], "PT25H"),
        ] {
            let bytes: Vec<u8> = parts.iter().flat_map(|part: &u32| part.to_le_bytes()).collect();
            assert_eq!(text(|out| write_interval(&bytes, out)), shown);
        }
    }
}
