//! Intervals: months, days and microseconds, which are kept separate.

use super::calendar::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SqlInterval {
    pub(crate) months: i32,
    pub(crate) days: i32,
    pub(crate) micros: i64,
}

const DAYS_PER_MONTH: i64 = 30;

impl SqlInterval {
    /// An interval of one unit, such as `3 hours`; `None` if the unit is unknown or the result is too large.
    pub(crate) fn from_unit(count: i64, unit: &str) -> Option<Self> {
        let months = |each: i64| {
            let months = i32::try_from(count.checked_mul(each)?).ok()?;
            Some(Self { months, ..Self::default() })
        };
        let days = |each: i64| {
            let days = i32::try_from(count.checked_mul(each)?).ok()?;
            Some(Self { days, ..Self::default() })
        };
        let micros = |each: i64| Some(Self { micros: count.checked_mul(each)?, ..Self::default() });
        match singular_unit(unit).as_str() {
            "millennium" => months(12_000),
            "century" => months(1200),
            "decade" => months(120),
            "year" | "y" | "yr" => months(12),
            "quarter" => months(3),
            "month" | "mon" => months(1),
            "week" | "w" => days(7),
            "day" | "d" => days(1),
            "hour" | "h" | "hr" => micros(MICROS_PER_HOUR),
            "minute" | "m" | "min" => micros(MICROS_PER_MINUTE),
            "second" | "s" | "sec" => micros(MICROS_PER_SECOND),
            "millisecond" | "ms" | "msec" => micros(1000),
            "microsecond" | "us" | "usec" => micros(1),
            _ => None,
        }
    }

    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            micros: self.micros.checked_add(other.micros)?,
        })
    }

    pub(crate) fn checked_neg(self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }

    pub(crate) fn checked_mul(self, factor: i64) -> Option<Self> {
        let part = |number: i32| i32::try_from(i64::from(number).checked_mul(factor)?).ok();
        Some(Self {
            months: part(self.months)?,
            days: part(self.days)?,
            micros: self.micros.checked_mul(factor)?,
        })
    }

    /// The values by which intervals are compared: a month has 30 days, a day has 24 hours.
    pub(crate) fn normalized(self) -> (i64, i64, i64) {
        let days = i64::from(self.days) + self.micros / MICROS_PER_DAY;
        let micros = self.micros % MICROS_PER_DAY;
        let months = i64::from(self.months) + days / DAYS_PER_MONTH;
        (months, days % DAYS_PER_MONTH, micros)
    }

    /// Parses `1 year 2 months 04:05:06`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().peekable();
        let mut sum = Self::default();
        words.peek()?;
        while let Some(word) = words.next() {
            if word.contains(':') {
                let (sign, clock) = word.strip_prefix('-').map_or((1, word), |rest| (-1, rest));
                let micros = super::date_text::parse_clock(clock)?;
                sum = sum.checked_add(Self { micros: micros * sign, ..Self::default() })?;
                continue;
            }
            let digits = word.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(word.len());
            let (number, glued) = word.split_at_checked(digits)?;
            let unit = if glued.is_empty() { words.next()? } else { glued };
            sum = sum.checked_add(Self::from_unit(number.parse().ok()?, unit)?)?;
        }
        Some(sum)
    }
}

/// The singular of a unit, in lower case.
pub(crate) fn singular_unit(unit: &str) -> String {
    let unit = unit.to_ascii_lowercase();
    match unit.as_str() {
        "centuries" => "century".to_owned(),
        "millennia" | "millenniums" | "millenium" => "millennium".to_owned(),
        "s" | "us" | "ms" => unit,
        _ => unit.strip_suffix('s').map_or(unit.clone(), str::to_owned),
    }
}
