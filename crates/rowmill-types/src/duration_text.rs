//! Durations in settings: exact, and written in a readable form.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How an unlimited time is written.
const UNLIMITED: &str = "unlimited";

/// Units and their nanoseconds, longest first.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A length of time that is written as `500ms`, `90s`, `1h 30m` or `unlimited`, or as a number of seconds.
///
/// ```
/// # use {rowmill_types::DurationText, std::time::Duration};
/// assert_eq!("1h 30m".parse(), Ok(DurationText(Duration::from_secs(5_400))));
/// assert_eq!(DurationText(Duration::from_millis(500)).to_string(), "500ms");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationText(pub Duration);

/// Uses the longest unit without a fraction.
impl fmt::Display for DurationText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        if self.0 == Duration::MAX {
            return out.write_str(UNLIMITED);
        }
        if nanoseconds == 0 {
            return out.write_str("0s");
        }
        // Whole days may be written in hours: nobody counts them in days.
        let units = UNITS.iter().skip(1);
        let whole = units.clone().find(|(_, length)| nanoseconds.is_multiple_of(*length));
        let (unit, length) = whole.copied().unwrap_or(("ns", 1));
        write!(out, "{}{unit}", nanoseconds / length)
    }
}

impl std::str::FromStr for DurationText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "must be a duration such as `500ms`, `90s`, `1h 30m` or `unlimited`".to_owned();
        let text = text.trim();
        if text == UNLIMITED {
            return Ok(Self(Duration::MAX));
        }
        let (mut rest, mut total) = (text, 0_u128);
        let mut is_empty = true;
        while !rest.is_empty() {
            let (part, after) = first_part(rest, is_empty).ok_or_else(wrong)?;
            total = total.checked_add(part).ok_or_else(wrong)?;
            (rest, is_empty) = (after.trim_start(), false);
        }
        let seconds = u64::try_from(total / 1_000_000_000).map_err(|_| wrong())?;
        let time = Duration::new(seconds, u32::try_from(total % 1_000_000_000).unwrap_or_default());
        if is_empty { Err(wrong()) } else { Ok(Self(time)) }
    }
}

/// The nanoseconds of the first part, and the rest. A plain number is seconds.
fn first_part(text: &str, is_first: bool) -> Option<(u128, &str)> {
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let (number, rest) = text.split_at(text.find(|letter| !is_number(letter)).unwrap_or(text.len()));
    let rest = rest.trim_start();
    let (unit, rest) =
        rest.split_at(rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len()));
    let length = match unit {
        "" if is_first && rest.is_empty() => 1_000_000_000,
        _ => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.parse::<u128>().ok()?.checked_mul(length)?;
    let fraction = match fraction {
        "" if number.contains('.') => return None,
        "" => 0,
        digits => {
            let scale = 10_u128.checked_pow(u32::try_from(digits.len()).ok()?)?;
            digits.parse::<u128>().ok()?.checked_mul(length)? / scale
        }
    };
    Some((whole.checked_add(fraction)?, rest))
}

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = DurationText;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number of seconds, or a duration such as `500ms`, `90s`, `1h 30m` or `unlimited`")
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<DurationText, E> {
        Ok(DurationText(Duration::from_secs(seconds)))
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<DurationText, E> {
        let time = Duration::try_from_secs_f64(seconds);
        time.map(DurationText).map_err(|_| E::custom("must be a non-negative number of seconds"))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<DurationText, E> {
        Err(E::custom("must be a non-negative number of seconds"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<DurationText, E> {
        text.parse().map_err(E::custom)
    }
}

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern":
                    r"^\s*(unlimited|[0-9]+(\.[0-9]+)?|([0-9]+(\.[0-9]+)?\s*(d|h|m|s|ms|us|ns)\s*)+)\s*$"},
            ]
        })
    }
}

/// Serializes a duration, for `#[serde(with = "duration_text")]`.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    DurationText(*time).serialize(serializer)
}

/// Deserializes a duration, for `#[serde(with = "duration_text")]`.
///
/// # Errors
///
/// It is not a duration.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    DurationText::deserialize(deserializer).map(|DurationText(time)| time)
}

/// The same for an optional duration.
pub mod option {
    use super::{Deserialize, Deserializer, Duration, DurationText, Serialize, Serializer};

    /// Serializes a duration, or null.
    ///
    /// # Errors
    ///
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(DurationText).serialize(serializer)
    }

    /// Deserializes a duration, or null.
    ///
    /// # Errors
    ///
    /// It is neither.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<DurationText>::deserialize(deserializer)?.map(|DurationText(time)| time))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, nanoseconds) in [
            ("90s", 90_000_000_000),
            ("1.5s", 1_500_000_000),
            ("1h 30m", 5_400_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("2", 2_000_000_000),
            ("0s", 0),
            ("1d", 86_400_000_000_000),
            ("250 ms", 250_000_000),
        ] {
            let time = text.parse::<DurationText>().map(|DurationText(time)| time.as_nanos());
            assert_eq!(time, Ok(nanoseconds), "{text}");
        }
        for wrong in ["", "s", "-1s", "1x", "1.s", "1s 2", "1 2", "none", "99999999999999999999999h"] {
            assert!(wrong.parse::<DurationText>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_written_in_the_longest_unit_without_a_fraction() {
        let time = |nanoseconds| DurationText(Duration::from_nanos(nanoseconds)).to_string();
        assert_eq!(time(0), "0s");
        assert_eq!(time(600_000_000_000), "10m");
        assert_eq!(time(86_400_000_000_000), "24h");
        assert_eq!(time(1_500_000_000), "1500ms");
        assert_eq!(time(7), "7ns");
        assert_eq!(DurationText(Duration::MAX).to_string(), "unlimited");
    }

    #[test]
    fn numbers_are_seconds_and_nothing_is_negative() {
        let read = |json: &str| serde_json::from_str::<DurationText>(json).map(|DurationText(time)| time);
        assert_eq!(read("2.5").unwrap(), Duration::from_millis(2_500));
        assert_eq!(read("60").unwrap(), Duration::from_secs(60));
        for wrong in ["-1", "-0.5", "true", "\"soon\"", "null"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_time_is_read_back_as_it_was(seconds: u64, nanoseconds in 0_u32..1_000_000_000) {
            let time = DurationText(Duration::new(seconds, nanoseconds));
            let json = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(serde_json::from_str::<DurationText>(&json).unwrap(), time);
        }
    }
}
