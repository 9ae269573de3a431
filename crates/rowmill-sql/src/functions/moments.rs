//! Dates and times as they stand in text.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Unit};
use rusqlite::types::ValueRef;

/// The number of the day, in the count that SQLite uses for dates, on which 1970 began.
const JULIAN_1970: f64 = 2_440_587.5;

/// A date, with a time if one was given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moment {
    pub(super) at: DateTime,
    pub(super) has_time: bool,
}

impl Moment {
    /// Reads `2024-05-01`, `2024-05-01 10:30:00.5`, the same with `T`, and with `Z` or an
    /// offset, which is taken off.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("now") {
            return Some(Self { at: Timestamp::now().to_zoned(TimeZone::UTC).datetime(), has_time: true });
        }
        if text.len() == 10 {
            let date: Date = text.parse().ok()?;
            return Some(Self { at: date.to_datetime(Time::midnight()), has_time: false });
        }
        let zoned =
            text.ends_with(['Z', 'z']) || text.get(10..).is_some_and(|time| time.contains(['+', '-']));
        let at = if zoned {
            text.parse::<Timestamp>().ok()?.to_zoned(TimeZone::UTC).datetime()
        } else {
            text.parse::<DateTime>().ok()?
        };
        Some(Self { at, has_time: true })
    }

    /// Reads a value as SQLite does: a number is a day in the Julian count.
    pub(super) fn of(value: ValueRef<'_>) -> Option<Self> {
        let days = match value {
            ValueRef::Text(bytes) => return Self::parse(std::str::from_utf8(bytes).ok()?),
            ValueRef::Integer(days) => days as f64,
            ValueRef::Real(days) => days,
            ValueRef::Null | ValueRef::Blob(_) => return None,
        };
        let milliseconds = ((days - JULIAN_1970) * 86_400_000.0).round();
        let at = Timestamp::from_millisecond(milliseconds as i64).ok()?.to_zoned(TimeZone::UTC).datetime();
        Some(Self { at, has_time: true })
    }

    /// Seconds since 1970 began.
    pub(super) fn epoch(self) -> Option<f64> {
        let at = self.at.to_zoned(TimeZone::UTC).ok()?.timestamp();
        Some(at.as_millisecond() as f64 / 1000.0)
    }

    /// As text, in the form that it came in.
    pub(super) fn text(self) -> String {
        let form = match (self.has_time, self.at.subsec_nanosecond()) {
            (false, _) => "%Y-%m-%d",
            (true, 0) => "%Y-%m-%d %H:%M:%S",
            (true, _) => "%Y-%m-%d %H:%M:%S%.f",
        };
        self.at.strftime(form).to_string()
    }

    /// A part as a number.
    pub(super) fn part(self, part: Part) -> Option<f64> {
        let date = self.at.date();
        let week = date.iso_week_date();
        Some(f64::from(match part {
            Part::Epoch => return self.epoch(),
            Part::Century => (date.year() - 1) / 100 + 1,
            Part::Decade => date.year() / 10,
            Part::Year => date.year(),
            Part::Quarter => i16::from((date.month() - 1) / 3 + 1),
            Part::Month => i16::from(date.month()),
            Part::Week => i16::from(week.week()),
            Part::Day => i16::from(date.day()),
            Part::DayOfYear => date.day_of_year(),
            Part::DayOfWeek => i16::from(date.weekday().to_sunday_zero_offset()),
            Part::IsoDay => i16::from(date.weekday().to_monday_one_offset()),
            Part::Hour => i16::from(self.at.hour()),
            Part::Minute => i16::from(self.at.minute()),
            Part::Second => i16::from(self.at.second()),
        }))
    }

    /// Its beginning of the year, month, … that it is in.
    pub(super) fn truncated(self, part: Part) -> Option<Self> {
        let date = self.at.date();
        let first = |year: i16, month: i8| Date::new(year, month, 1).ok();
        let date = match part {
            Part::Century => first((date.year() - 1) / 100 * 100 + 1, 1)?,
            Part::Decade => first(date.year() / 10 * 10, 1)?,
            Part::Year => first(date.year(), 1)?,
            Part::Quarter => first(date.year(), (date.month() - 1) / 3 * 3 + 1)?,
            Part::Month => first(date.year(), date.month())?,
            Part::Week => {
                let days = i64::from(date.weekday().to_monday_zero_offset());
                date.checked_sub(Span::new().days(days)).ok()?
            }
            Part::Day => date,
            Part::Hour | Part::Minute | Part::Second => {
                let (minute, second) = match part {
                    Part::Hour => (0, 0),
                    Part::Minute => (self.at.minute(), 0),
                    _ => (self.at.minute(), self.at.second()),
                };
                let time = Time::new(self.at.hour(), minute, second, 0).ok()?;
                return Some(Self { at: date.to_datetime(time), ..self });
            }
            Part::Epoch | Part::DayOfYear | Part::DayOfWeek | Part::IsoDay => return None,
        };
        Some(Self { at: date.to_datetime(Time::midnight()), ..self })
    }

    /// How many beginnings of years, months, … lie between this and a later one.
    pub(super) fn until(self, later: Self, part: Part) -> Option<i64> {
        let (from, to) = (self.at.date(), later.at.date());
        let years = i64::from(to.year()) - i64::from(from.year());
        let months = years * 12 + i64::from(to.month()) - i64::from(from.month());
        let quarter = |date: Date| (i64::from(date.month()) - 1) / 3;
        match part {
            Part::Century => Some((i64::from(to.year()) - 1) / 100 - (i64::from(from.year()) - 1) / 100),
            Part::Decade => Some(i64::from(to.year()) / 10 - i64::from(from.year()) / 10),
            Part::Year => Some(years),
            Part::Quarter => Some(years * 4 + quarter(to) - quarter(from)),
            Part::Month => Some(months),
            Part::Day | Part::Week | Part::Hour | Part::Minute | Part::Second => {
                let (from, to) = (self.truncated(part)?.at, later.truncated(part)?.at);
                let seconds = to.since((Unit::Second, from)).ok()?.get_seconds();
                let length = match part {
                    Part::Week => 7 * 86_400,
                    Part::Day => 86_400,
                    Part::Hour => 3600,
                    Part::Minute => 60,
                    _ => 1,
                };
                Some(seconds / length)
            }
            Part::Epoch | Part::DayOfYear | Part::DayOfWeek | Part::IsoDay => None,
        }
    }
}

/// A part of a date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Century,
    Decade,
    Year,
    Quarter,
    Month,
    Week,
    Day,
    DayOfYear,
    DayOfWeek,
    IsoDay,
    Hour,
    Minute,
    Second,
    Epoch,
}

impl Part {
    /// Reads its name, in the singular or the plural.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        Some(match name.strip_suffix('s').unwrap_or(&name) {
            "century" | "centurie" => Self::Century,
            "decade" => Self::Decade,
            "year" | "y" | "yr" => Self::Year,
            "quarter" => Self::Quarter,
            "month" | "mon" => Self::Month,
            "week" | "weekofyear" | "w" => Self::Week,
            "day" | "dayofmonth" | "d" => Self::Day,
            "dayofyear" | "doy" => Self::DayOfYear,
            "dayofweek" | "weekday" | "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDay,
            "hour" | "hr" | "h" => Self::Hour,
            "minute" | "min" | "m" => Self::Minute,
            "second" | "sec" | "" => Self::Second,
            "epoch" => Self::Epoch,
            _ => return None,
        })
    }
}
