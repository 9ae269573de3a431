//! Date and time functions with fixed types.

use super::catalog::{BoundFunction, FunctionCall};
use super::fixed_types::FixedTypeFunction;
use crate::expression::coerce::adapt_argument;
use crate::expression::refusal::BindResult;
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
use crate::values::calendar::{
    CivilDay, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, days_in_month, iso_week, midnight_of,
    monday_of_week, split_timestamp, weekday,
};
use crate::values::datum::Datum;
use crate::values::decimal::divide_rounded;
use crate::values::sql_type::SqlType::{self, BigInt, Date, Double, Timestamp, Varchar};

/// A part of a date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatePart {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    YearWeek,
    Decade,
    Epoch,
}

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) fn weekday_name(days: i64) -> &'static str {
    usize::try_from(weekday(days)).ok().and_then(|at| WEEKDAYS.get(at)).copied().unwrap_or_default()
}

pub(super) fn month_name(month: i64) -> &'static str {
    usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at)).copied().unwrap_or_default()
}

impl DatePart {
    /// The part with this singular name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "year" | "yr" | "y" => Self::Year,
            "quarter" => Self::Quarter,
            "month" | "mon" => Self::Month,
            "week" | "w" => Self::Week,
            "day" | "d" | "dayofmonth" => Self::Day,
            "hour" | "hr" | "h" => Self::Hour,
            "minute" | "min" | "m" => Self::Minute,
            "second" | "sec" | "s" => Self::Second,
            "millisecond" | "ms" | "msec" => Self::Millisecond,
            "microsecond" | "us" | "usec" => Self::Microsecond,
            "dow" | "dayofweek" | "weekday" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" | "dayofyear" => Self::DayOfYear,
            "isoyear" => Self::IsoYear,
            "yearweek" => Self::YearWeek,
            "decade" => Self::Decade,
            "epoch" => Self::Epoch,
            _ => return None,
        })
    }

    /// The value of the part for a time.
    pub(super) fn of(self, timestamp: i64) -> Datum {
        let (days, clock) = split_timestamp(timestamp);
        let day = CivilDay::from_days(days);
        let number = match self {
            Self::Year => day.year,
            Self::Quarter => (day.month - 1) / 3 + 1,
            Self::Month => day.month,
            Self::Week => iso_week(days).1,
            Self::Day => day.day,
            Self::Hour => clock / MICROS_PER_HOUR,
            Self::Minute => clock / MICROS_PER_MINUTE % 60,
            Self::Second => clock / MICROS_PER_SECOND % 60,
            Self::Millisecond => clock % MICROS_PER_MINUTE / 1000,
            Self::Microsecond => clock % MICROS_PER_MINUTE,
            Self::DayOfWeek => weekday(days),
            Self::IsoDayOfWeek => (weekday(days) + 6) % 7 + 1,
            Self::DayOfYear => day.day_of_year(),
            Self::IsoYear => iso_week(days).0,
            Self::YearWeek => iso_week(days).0 * 100 + iso_week(days).1,
            Self::Decade => day.year / 10,
            Self::Epoch => return Datum::Real(timestamp as f64 / MICROS_PER_SECOND as f64),
        };
        Datum::Whole(number.into())
    }
}

/// The start of the part that contains a time; `None` if it has none.
pub(super) fn truncate_timestamp(part: DatePart, timestamp: i64) -> Option<i64> {
    let (days, _) = split_timestamp(timestamp);
    let day = CivilDay::from_days(days);
    let first = |year, month| midnight_of(CivilDay { year, month, day: 1 }.days());
    let unit = |unit: i64| Some(timestamp - timestamp.rem_euclid(unit));
    match part {
        DatePart::Year => first(day.year, 1),
        DatePart::Quarter => first(day.year, (day.month - 1) / 3 * 3 + 1),
        DatePart::Month => first(day.year, day.month),
        DatePart::Week => midnight_of(monday_of_week(days)),
        DatePart::Day => midnight_of(days),
        DatePart::Hour => unit(MICROS_PER_HOUR),
        DatePart::Minute => unit(MICROS_PER_MINUTE),
        DatePart::Second => unit(MICROS_PER_SECOND),
        DatePart::Millisecond => unit(1000),
        DatePart::Microsecond => Some(timestamp),
        DatePart::Decade => first(day.year.div_euclid(10) * 10, 1),
        _ => None,
    }
}

fn at(arguments: EvaluatedArguments<'_, '_>) -> i64 {
    match arguments.first().map(|datum| &**datum) {
        Some(Datum::Timestamp(timestamp)) => *timestamp,
        _ => 0,
    }
}

type ComputeResult = Result<Datum, String>;

pub(super) const FIXED_FUNCTIONS: &[FixedTypeFunction] = &[
    FixedTypeFunction {
        names: &["year"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::Year),
    },
    FixedTypeFunction {
        names: &["quarter"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::Quarter),
    },
    FixedTypeFunction {
        names: &["month"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::Month),
    },
    FixedTypeFunction {
        names: &["week", "weekofyear"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::Week),
    },
    FixedTypeFunction {
        names: &["yearweek"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::YearWeek),
    },
    FixedTypeFunction {
        names: &["day", "dayofmonth"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::Day),
    },
    FixedTypeFunction {
        names: &["dayofweek", "weekday"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::DayOfWeek),
    },
    FixedTypeFunction {
        names: &["isodow"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::IsoDayOfWeek),
    },
    FixedTypeFunction {
        names: &["dayofyear"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::DayOfYear),
    },
    FixedTypeFunction {
        names: &["hour"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::Hour),
    },
    FixedTypeFunction {
        names: &["minute"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::Minute),
    },
    FixedTypeFunction {
        names: &["second"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| part(a, DatePart::Second),
    },
    FixedTypeFunction {
        names: &["epoch"],
        parameters: &[Timestamp],
        result: Double,
        compute: |a| part(a, DatePart::Epoch),
    },
    FixedTypeFunction {
        names: &["epoch_us"],
        parameters: &[Timestamp],
        result: BigInt,
        compute: |a| Ok(Datum::Whole(at(a).into())),
    },
    FixedTypeFunction {
        names: &["dayname"],
        parameters: &[Timestamp],
        result: Varchar,
        compute: |a| Ok(Datum::Text(weekday_name(split_timestamp(at(a)).0).to_owned())),
    },
    FixedTypeFunction {
        names: &["monthname"],
        parameters: &[Timestamp],
        result: Varchar,
        compute: |a| {
            Ok(Datum::Text(month_name(CivilDay::from_days(split_timestamp(at(a)).0).month).to_owned()))
        },
    },
    FixedTypeFunction { names: &["last_day"], parameters: &[Timestamp], result: Date, compute: last_day },
    FixedTypeFunction {
        names: &["make_date"],
        parameters: &[BigInt, BigInt, BigInt],
        result: Date,
        compute: make_date,
    },
];

pub(super) const FUNCTIONS: &[BoundFunction] = &[
    BoundFunction { names: &["epoch_ms"], bind: epoch_ms },
    BoundFunction { names: &["make_timestamp"], bind: make_timestamp },
];

fn part(arguments: EvaluatedArguments<'_, '_>, part: DatePart) -> ComputeResult {
    Ok(part.of(at(arguments)))
}

fn last_day(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let day = CivilDay::from_days(split_timestamp(at(arguments)).0);
    date(CivilDay { day: days_in_month(day.year, day.month), ..day })
}

fn date(day: CivilDay) -> ComputeResult {
    i32::try_from(day.days()).map(Datum::Date).map_err(|_| "the date is out of range".to_owned())
}

fn make_date(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let number = |at: usize| super::texts::number(arguments, at);
    let (year, month, day) = (number(0), number(1), number(2));
    let there_is = (-200_000..=200_000).contains(&year).then(|| CivilDay::new(year, month, day)).flatten();
    date(there_is.ok_or_else(|| format!("there is no date {year}-{month}-{day}"))?)
}

/// A time from microseconds since 1970, or from year, month, day, hour, minute and second.
fn make_timestamp(call: &FunctionCall) -> BindResult<TypedExpression> {
    let adapt = |typed: TypedExpression, kind: &SqlType| {
        adapt_argument(typed, kind)
            .ok_or_else(|| call.wrong_types("it takes whole numbers, with the seconds last"))?
    };
    if let [count] = call.arguments.as_slice() {
        let count = adapt(count.clone(), &BigInt)?;
        return Ok(TypedExpression::call(
            |arguments| from_count(arguments, 1),
            vec![count],
            Timestamp,
            call.place,
        ));
    }
    let parts: [TypedExpression; 6] = call.exact_arguments()?;
    let kinds = [BigInt, BigInt, BigInt, BigInt, BigInt, SqlType::Double];
    let parts = parts.into_iter().zip(&kinds).map(|(part, kind)| adapt(part, kind));
    Ok(TypedExpression::call(from_parts, parts.collect::<BindResult<_>>()?, Timestamp, call.place))
}

fn from_parts(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let number = |at: usize| super::texts::number(arguments, at);
    let seconds = arguments.get(5).and_then(|datum| datum.as_real()).unwrap_or(f64::NAN);
    let Datum::Date(days) = make_date(arguments)? else { return Ok(Datum::Null) };
    let is_clock =
        (0..24).contains(&number(3)) && (0..60).contains(&number(4)) && (0.0..60.0).contains(&seconds);
    if !is_clock {
        return Err(format!("there is no time {}:{}:{seconds}", number(3), number(4)));
    }
    let micros = (seconds * MICROS_PER_SECOND as f64).round() as i64;
    let clock = number(3) * MICROS_PER_HOUR + number(4) * MICROS_PER_MINUTE + micros;
    let timestamp = midnight_of(i64::from(days)).and_then(|start| start.checked_add(clock));
    timestamp.map(Datum::Timestamp).ok_or_else(|| "the time is out of range".to_owned())
}

/// A time from a count since 1970.
fn from_count(arguments: EvaluatedArguments<'_, '_>, micros: i64) -> ComputeResult {
    let count = super::texts::number(arguments, 0);
    let timestamp = count.checked_mul(micros);
    timestamp.map(Datum::Timestamp).ok_or_else(|| "the time is out of range".to_owned())
}

/// Milliseconds since 1970, or the time for such a count.
fn epoch_ms(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [argument] = call.exact_arguments()?;
    if argument.kind.is_whole() {
        let count =
            adapt_argument(argument, &BigInt).ok_or_else(|| call.wrong_types("it takes a BIGINT"))??;
        return Ok(TypedExpression::call(
            |arguments| from_count(arguments, 1000),
            vec![count],
            Timestamp,
            call.place,
        ));
    }
    let is_moment = argument.kind.is_date_or_timestamp() || argument.kind == SqlType::Null;
    let moment = adapt_argument(argument, &Timestamp).filter(|_| is_moment);
    let moment = moment.ok_or_else(|| call.wrong_types("it takes a time, or milliseconds since 1970"))??;
    let count = |arguments: EvaluatedArguments<'_, '_>| {
        Ok(Datum::Whole(divide_rounded(i128::from(at(arguments)), 1000)))
    };
    Ok(TypedExpression::call(count, vec![moment], BigInt, call.place))
}
