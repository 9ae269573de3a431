//! Parts of dates and times, and arithmetic with them.

use super::catalog::{BoundFunction, FunctionCall};
use super::date_parts::{DatePart, truncate_timestamp};
use crate::expression::coerce::{adapt_argument, cast_to, fold_constant};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
use crate::values::calendar::{
    CivilDay, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, add_interval,
    split_timestamp,
};
use crate::values::cast::CastMode;
use crate::values::datum::Datum;
use crate::values::interval::{SqlInterval, singular_unit};
use crate::values::sql_type::SqlType;

pub(super) const FUNCTIONS: &[BoundFunction] = &[
    BoundFunction { names: &["date_part", "datepart"], bind: date_part },
    BoundFunction { names: &["date_trunc", "datetrunc"], bind: date_trunc },
    BoundFunction { names: &["date_diff", "datediff"], bind: date_diff },
    BoundFunction { names: &["date_add"], bind: date_add },
    BoundFunction { names: &["to_years"], bind: |call| span(call, "year") },
    BoundFunction { names: &["to_months"], bind: |call| span(call, "month") },
    BoundFunction { names: &["to_weeks"], bind: |call| span(call, "week") },
    BoundFunction { names: &["to_days"], bind: |call| span(call, "day") },
    BoundFunction { names: &["to_hours"], bind: |call| span(call, "hour") },
    BoundFunction { names: &["to_minutes"], bind: |call| span(call, "minute") },
    BoundFunction { names: &["to_seconds"], bind: |call| span(call, "second") },
];

const TOO_FAR: &str = "the date or time is out of range";

fn timestamp(arguments: EvaluatedArguments<'_, '_>, at: usize) -> i64 {
    match arguments.get(at).map(|datum| &**datum) {
        Some(Datum::Timestamp(timestamp)) => *timestamp,
        _ => 0,
    }
}

/// An argument that is a date or a time, as a timestamp.
fn moment(call: &FunctionCall, at: usize) -> BindResult<TypedExpression> {
    let found = call.arguments.get(at).cloned().ok_or_else(|| call.wrong_count("more"))?;
    if found.kind.is_date_or_timestamp() || found.kind == SqlType::Null {
        return cast_to(found, &SqlType::Timestamp, CastMode::Fail);
    }
    let hint = match found.kind {
        SqlType::TimestampTz => "write `x AT TIME ZONE 'UTC'`",
        _ => "write `CAST(x AS DATE)` or `CAST(x AS TIMESTAMP)`",
    };
    Err(call.wrong_types(hint))
}

/// The part that the first argument of a call names.
fn named_part(call: &FunctionCall) -> BindResult<DatePart> {
    let name = call.known_text(0)?;
    DatePart::named(&singular_unit(name)).ok_or_else(|| {
        let place = call.arguments.first().map_or(call.place, |argument| argument.place);
        QueryRefusal::new(format!("`{name}` is not a part of a date or time"), place)
            .hint("use `year`, `quarter`, `month`, `week`, `day`, `hour`, `minute`, `second` or others")
    })
}

fn date_part(call: &FunctionCall) -> BindResult<TypedExpression> {
    let part = named_part(call)?;
    let [_, _] = call.exact_arguments()?;
    let moment = moment(call, 1)?;
    let kind = if part == DatePart::Epoch { SqlType::Double } else { SqlType::BigInt };
    Ok(TypedExpression::call(
        move |arguments| Ok(part.of(timestamp(arguments, 0))),
        vec![moment],
        kind,
        call.place,
    ))
}

/// `EXTRACT(part FROM moment)`.
pub(crate) fn bind_extract(
    part: &str,
    moment: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let name = TypedExpression::constant(Datum::Text(part.to_owned()), SqlType::Varchar, place);
    let call = FunctionCall { name: "extract".to_owned(), arguments: vec![name, moment], place };
    date_part(&call).and_then(fold_constant)
}

fn date_trunc(call: &FunctionCall) -> BindResult<TypedExpression> {
    let part = named_part(call)?;
    let [_, _] = call.exact_arguments()?;
    if truncate_timestamp(part, 0).is_none() {
        return Err(QueryRefusal::new("times cannot be truncated to that", call.place));
    }
    let moment = moment(call, 1)?;
    let cut = move |arguments: EvaluatedArguments<'_, '_>| {
        truncate_timestamp(part, timestamp(arguments, 0))
            .map(Datum::Timestamp)
            .ok_or_else(|| TOO_FAR.to_owned())
    };
    Ok(TypedExpression::call(cut, vec![moment], SqlType::Timestamp, call.place))
}

fn date_diff(call: &FunctionCall) -> BindResult<TypedExpression> {
    let part = named_part(call)?;
    let [_, _, _] = call.exact_arguments()?;
    if boundaries(part, 0).is_none() {
        return Err(QueryRefusal::new("differences cannot be counted in that unit", call.place)
            .hint("count days: `date_diff('day', a, b) // 7`"));
    }
    let difference = move |arguments: EvaluatedArguments<'_, '_>| {
        let count = |at: usize| boundaries(part, timestamp(arguments, at)).unwrap_or_default();
        Ok(Datum::Whole(i128::from(count(1) - count(0))))
    };
    Ok(TypedExpression::call(
        difference,
        vec![moment(call, 1)?, moment(call, 2)?],
        SqlType::BigInt,
        call.place,
    ))
}

/// How many starts of a part are before a time, counted from a fixed origin.
fn boundaries(part: DatePart, timestamp: i64) -> Option<i64> {
    let (days, _) = split_timestamp(timestamp);
    let day = CivilDay::from_days(days);
    Some(match part {
        DatePart::Year => day.year,
        DatePart::Quarter => day.year * 4 + (day.month - 1) / 3,
        DatePart::Month => day.year * 12 + day.month,
        DatePart::Day => days,
        DatePart::Hour => timestamp.div_euclid(MICROS_PER_HOUR),
        DatePart::Minute => timestamp.div_euclid(MICROS_PER_MINUTE),
        DatePart::Second => timestamp.div_euclid(MICROS_PER_SECOND),
        DatePart::Millisecond => timestamp.div_euclid(1000),
        DatePart::Microsecond => timestamp,
        _ => return None,
    })
}

fn span(call: &FunctionCall, unit: &'static str) -> BindResult<TypedExpression> {
    let [count] = call.exact_arguments()?;
    let count = adapt_argument(count, &SqlType::BigInt)
        .ok_or_else(|| call.wrong_types("it takes a whole number: write `CAST(x AS BIGINT)`"))??;
    interval_from_unit(count, unit, call.place)
}

/// An interval of `count` units.
pub(crate) fn interval_from_unit(
    count: TypedExpression,
    unit: &'static str,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let made = move |arguments: EvaluatedArguments<'_, '_>| {
        let count = arguments.first().and_then(|datum| datum.as_whole()).unwrap_or_default();
        let span = i64::try_from(count).ok().and_then(|count| SqlInterval::from_unit(count, unit));
        span.map(Datum::Interval).ok_or_else(|| "the interval is too long".to_owned())
    };
    fold_constant(TypedExpression::call(made, vec![count], SqlType::Interval, place))
}

fn date_add(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [moment, by] = call.exact_arguments()?;
    if !moment.kind.is_date_or_timestamp() || by.kind != SqlType::Interval {
        return Err(call.wrong_types("it takes a date or time, and an interval"));
    }
    shift_by_interval(moment, by, 1, call.place)
}

/// A date, a time or an interval, plus or minus an interval.
pub(super) fn shift_by_interval(
    moment: TypedExpression,
    by: TypedExpression,
    sign: i64,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let is_span = moment.kind == SqlType::Interval;
    let kind = if is_span { SqlType::Interval } else { SqlType::Timestamp };
    let moment = cast_to(moment, &kind, CastMode::Fail)?;
    let computed = move |arguments: EvaluatedArguments<'_, '_>| {
        let Some(Datum::Interval(by)) = arguments.get(1).map(|datum| &**datum) else {
            return Ok(Datum::Null);
        };
        let by = by.checked_mul(sign).ok_or(TOO_FAR)?;
        match arguments.first().map(|datum| &**datum) {
            Some(Datum::Interval(span)) => {
                span.checked_add(by).map(Datum::Interval).ok_or_else(|| TOO_FAR.to_owned())
            }
            Some(Datum::Timestamp(at)) => {
                add_interval(*at, by).map(Datum::Timestamp).ok_or_else(|| TOO_FAR.to_owned())
            }
            _ => Ok(Datum::Null),
        }
    };
    Ok(TypedExpression::call(computed, vec![moment, by], kind, place))
}

pub(super) fn add_days(
    day: TypedExpression,
    count: TypedExpression,
    sign: i128,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let count = cast_to(count, &SqlType::Integer, CastMode::Fail)?;
    let computed = move |arguments: EvaluatedArguments<'_, '_>| {
        let (Some(Datum::Date(day)), Some(count)) =
            (arguments.first().map(|datum| &**datum), arguments.get(1).and_then(|datum| datum.as_whole()))
        else {
            return Ok(Datum::Null);
        };
        i32::try_from(i128::from(*day) + sign * count).map(Datum::Date).map_err(|_| TOO_FAR.to_owned())
    };
    Ok(TypedExpression::call(computed, vec![day, count], SqlType::Date, place))
}

pub(super) fn day_difference(
    left: TypedExpression,
    right: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let computed = |arguments: EvaluatedArguments<'_, '_>| {
        let day = |at: usize| match arguments.get(at).map(|datum| &**datum) {
            Some(Datum::Date(day)) => i128::from(*day),
            _ => 0,
        };
        Ok(Datum::Whole(day(0) - day(1)))
    };
    Ok(TypedExpression::call(computed, vec![left, right], SqlType::BigInt, place))
}

/// The interval between two times, in days and microseconds.
pub(super) fn timestamp_difference(
    left: TypedExpression,
    right: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let left = cast_to(left, &SqlType::Timestamp, CastMode::Fail)?;
    let right = cast_to(right, &SqlType::Timestamp, CastMode::Fail)?;
    let computed = |arguments: EvaluatedArguments<'_, '_>| {
        let micros = timestamp(arguments, 0).checked_sub(timestamp(arguments, 1)).ok_or(TOO_FAR)?;
        let days = i32::try_from(micros / MICROS_PER_DAY).map_err(|_| TOO_FAR)?;
        Ok(Datum::Interval(SqlInterval { months: 0, days, micros: micros % MICROS_PER_DAY }))
    };
    Ok(TypedExpression::call(computed, vec![left, right], SqlType::Interval, place))
}

pub(super) fn scaled_interval(
    span: TypedExpression,
    factor: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let factor = cast_to(factor, &SqlType::BigInt, CastMode::Fail)?;
    let computed = |arguments: EvaluatedArguments<'_, '_>| {
        let (Some(Datum::Interval(span)), Some(factor)) =
            (arguments.first().map(|datum| &**datum), arguments.get(1).and_then(|datum| datum.as_whole()))
        else {
            return Ok(Datum::Null);
        };
        let scaled = i64::try_from(factor).ok().and_then(|factor| span.checked_mul(factor));
        scaled.map(Datum::Interval).ok_or_else(|| "the interval is too long".to_owned())
    };
    Ok(TypedExpression::call(computed, vec![span, factor], SqlType::Interval, place))
}
