//! Dates and times as numbers, and the calendar.

use super::interval::SqlInterval;

pub(crate) const MICROS_PER_SECOND: i64 = 1_000_000;
pub(crate) const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
pub(crate) const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
pub(crate) const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;

/// A date of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CivilDay {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

impl CivilDay {
    /// The date this many days after 1970-01-01.
    pub(crate) fn from_days(days: i64) -> Self {
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self { year: era * 400 + year + i64::from(month <= 2), month, day }
    }

    /// A date, if it exists in the calendar.
    pub(crate) fn new(year: i64, month: i64, day: i64) -> Option<Self> {
        let there_is = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        there_is.then_some(Self { year, month, day })
    }

    /// The days since 1970-01-01.
    pub(crate) fn days(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let era = year.div_euclid(400);
        let of_era = year.rem_euclid(400);
        let month = if self.month > 2 { self.month - 3 } else { self.month + 9 };
        let of_year = (153 * month + 2) / 5 + self.day - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    pub(crate) fn day_of_year(self) -> i64 {
        self.days() - Self { month: 1, day: 1, ..self }.days() + 1
    }
}

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of the week: Sunday is 0.
pub(crate) fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// The Monday of a date's week.
pub(crate) fn monday_of_week(days: i64) -> i64 {
    days - (weekday(days) + 6) % 7
}

/// The ISO 8601 week number and its year.
pub(crate) fn iso_week(days: i64) -> (i64, i64) {
    let thursday = monday_of_week(days) + 3;
    let year = CivilDay::from_days(thursday).year;
    let first = CivilDay { year, month: 1, day: 1 }.days();
    (year, (thursday - first) / 7 + 1)
}

/// The day of a timestamp and the microseconds since its midnight.
pub(crate) fn split_timestamp(timestamp: i64) -> (i64, i64) {
    (timestamp.div_euclid(MICROS_PER_DAY), timestamp.rem_euclid(MICROS_PER_DAY))
}

/// The midnight of a date.
pub(crate) fn midnight_of(days: i64) -> Option<i64> {
    days.checked_mul(MICROS_PER_DAY)
}

/// A timestamp plus an interval: months first, where the day is limited to the last of the month.
pub(crate) fn add_interval(timestamp: i64, by: SqlInterval) -> Option<i64> {
    let (days, clock) = split_timestamp(timestamp);
    let mut days = days;
    if by.months != 0 {
        let day = CivilDay::from_days(days);
        let months = day.year * 12 + day.month - 1 + i64::from(by.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        days = CivilDay { year, month, day: day.day.min(days_in_month(year, month)) }.days();
    }
    let days = days.checked_add(i64::from(by.days))?;
    midnight_of(days)?.checked_add(clock)?.checked_add(by.micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_the_calendar_agree() {
        for days in (-800_000..2_000_000).step_by(53) {
            let day = CivilDay::from_days(days);
            assert_eq!(day.days(), days);
            assert_eq!(CivilDay::new(day.year, day.month, day.day), Some(day));
            let found = jiff::civil::Date::new(
                i16::try_from(day.year).unwrap(),
                i8::try_from(day.month).unwrap(),
                i8::try_from(day.day).unwrap(),
            )
            .unwrap();
            assert_eq!(weekday(days), i64::from(found.weekday().to_sunday_zero_offset()));
            let iso = found.iso_week_date();
            assert_eq!(iso_week(days), (i64::from(iso.year()), i64::from(iso.week())));
        }
    }

    #[test]
    fn a_month_later_is_no_later_than_the_last_day_of_the_month() {
        let at = |year, month, day| midnight_of(CivilDay { year, month, day }.days()).unwrap();
        let month = SqlInterval { months: 1, ..SqlInterval::default() };
        assert_eq!(add_interval(at(2024, 1, 31), month), Some(at(2024, 2, 29)));
        assert_eq!(
            add_interval(at(2023, 12, 31), SqlInterval { months: -10, days: 1, micros: 0 }),
            Some(at(2023, 3, 1))
        );
        assert_eq!(CivilDay::new(2023, 2, 29), None);
    }
}
