//! Casts, with DuckDB's semantics.

use super::calendar::{midnight_of, split_timestamp};
use super::cast_numbers::{real_to_decimal, real_to_whole};
use super::date_text::{
    DateTextFailure, date_text, interval_text, parse_date, parse_instant, parse_time, parse_timestamp,
    time_text, timestamp_text,
};
use super::datum::Datum;
use super::decimal;
use super::interval::SqlInterval;
use super::json::to_json;
use super::json_cast::cast_json;
use super::json_normal::normalized;
use super::number_text::{parse_boolean, parse_decimal, parse_real, parse_whole, real_text};
use super::sql_type::SqlType;

/// Why a value cannot be cast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CastFailure {
    /// It is not a valid value of the type: `TRY_CAST` returns null.
    NotConvertible,
    /// DuckDB's result is not known here: an error, also for `TRY_CAST`.
    Ambiguous(&'static str),
}

/// How a cast handles values that it cannot convert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CastMode {
    Fail,
    GiveNull,
}

/// The cast of a part of a list or struct: depending on the mode, a part that cannot be cast becomes null.
pub(super) fn cast_part(found: Result<Datum, CastFailure>, mode: CastMode) -> Result<Datum, CastFailure> {
    match found {
        Err(CastFailure::NotConvertible) if mode == CastMode::GiveNull => Ok(Datum::Null),
        found => found,
    }
}

/// Whether values of one type can be cast to another at all.
pub(crate) fn can_cast(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    match (from, to) {
        _ if from == to => true,
        (T::Null, _) | (T::Varchar, T::Blob) => true,
        (T::Varchar, to) => !to.is_nested() && !matches!(to, T::Other(_)),
        (T::Other("UUID"), T::Varchar) => true,
        (T::Other(_), _) | (_, T::Other(_) | T::Null) | (T::Blob, _) | (_, T::Blob) => false,
        (T::TimestampTz, _) | (_, T::TimestampTz) => false,
        (from, T::Varchar) => !from.is_nested(),
        (T::Json, T::List(item)) => matches!(**item, T::Varchar | T::Json) || can_cast(from, item),
        (T::Json, to) => !to.is_nested() && *to != T::Interval,
        (from, T::Json) => from.is_number() || matches!(from, T::Boolean),
        (from, T::Boolean) | (T::Boolean, from) => from.is_number(),
        (T::Date, to) | (to, T::Date) => *to == T::Timestamp,
        (T::Timestamp, to) => *to == T::Time,
        (T::List(from), T::List(to)) => can_cast(from, to),
        (from, to) => from.is_number() && to.is_number(),
    }
}

/// Casts a value that is not null; the mode applies to the parts of lists and structs.
pub(crate) fn cast(datum: Datum, from: &SqlType, to: &SqlType, mode: CastMode) -> Result<Datum, CastFailure> {
    if from == to || datum.is_null() {
        return Ok(datum);
    }
    match (datum, from, to) {
        (datum, _, SqlType::Varchar) => {
            to_text(&datum, from).map(Datum::Text).ok_or(CastFailure::NotConvertible)
        }
        (Datum::Text(text), SqlType::Json, SqlType::Json) => Ok(Datum::Text(text)),
        (Datum::Text(text), SqlType::Json, to) => cast_json(&text, to, mode),
        (Datum::Text(text), _, to) => from_text(text, to),
        (Datum::List(items), SqlType::List(from), SqlType::List(to)) => {
            let items = items.into_iter().map(|item| cast_part(cast(item, from, to, mode), mode));
            items.collect::<Result<_, _>>().map(Datum::List)
        }
        (Datum::Struct(values), SqlType::Struct(from), SqlType::Struct(to)) => {
            let values = values.into_iter().zip(from).zip(to);
            let values =
                values.map(|((value, (_, from)), (_, to))| cast_part(cast(value, from, to, mode), mode));
            values.collect::<Result<_, _>>().map(Datum::Struct)
        }
        (Datum::Date(days), _, _) => {
            midnight_of(i64::from(days)).map(Datum::Timestamp).ok_or(CastFailure::NotConvertible)
        }
        (Datum::Timestamp(timestamp), _, SqlType::Date) => i32::try_from(split_timestamp(timestamp).0)
            .map(Datum::Date)
            .map_err(|_| CastFailure::NotConvertible),
        (Datum::Timestamp(timestamp), _, _) => Ok(Datum::Time(split_timestamp(timestamp).1)),
        (datum, from, SqlType::Json) => {
            to_json(&datum, from).map(Datum::Text).ok_or(CastFailure::NotConvertible)
        }
        (datum, from, to) => cast_number(&datum, from, to).ok_or(CastFailure::NotConvertible),
    }
}

/// Casts between numbers and booleans.
fn cast_number(datum: &Datum, from: &SqlType, to: &SqlType) -> Option<Datum> {
    let scale = |kind: &SqlType| kind.decimal_size().map_or(0, |(_, scale)| scale);
    Some(match (datum, to) {
        (Datum::Boolean(truth), to) => {
            return cast_number(&Datum::Whole(i128::from(*truth)), &SqlType::TinyInt, to);
        }
        (Datum::Whole(number) | Datum::Decimal(number), SqlType::Boolean) => Datum::Boolean(*number != 0),
        (Datum::Real(number), SqlType::Boolean) => Datum::Boolean(*number != 0.0),
        (Datum::Real(number), SqlType::Double) => Datum::Real(*number),
        (Datum::Real(number), SqlType::Float) => {
            let small = *number as f32;
            (small.is_finite() || !number.is_finite()).then(|| Datum::Real(f64::from(small)))?
        }
        (Datum::Real(number), SqlType::Decimal(digits, scale)) => {
            Datum::Decimal(real_to_decimal(*number, *digits, *scale)?)
        }
        (Datum::Real(number), to) => Datum::Whole(real_to_whole(*number, to)?),
        (Datum::Whole(number) | Datum::Decimal(number), SqlType::Double) => {
            let is_wide = matches!(from, SqlType::HugeInt | SqlType::Decimal(19.., 0));
            Datum::Real(if is_wide {
                decimal::wide_to_real(*number)
            } else {
                decimal::to_real(*number, scale(from))
            })
        }
        (Datum::Whole(number), SqlType::Float) => Datum::Real(f64::from(*number as f32)),
        (Datum::Decimal(number), SqlType::Float) => {
            Datum::Real(f64::from(decimal::to_real(*number, scale(from)) as f32))
        }
        (Datum::Whole(number) | Datum::Decimal(number), SqlType::Decimal(digits, to)) => {
            let moved = decimal::rescale(*number, scale(from), *to)?;
            decimal::fits_digits(moved, *digits).then_some(Datum::Decimal(moved))?
        }
        (Datum::Whole(number) | Datum::Decimal(number), to) => {
            let (least, greatest) = to.whole_range()?;
            let whole = decimal::rescale(*number, scale(from), 0)?;
            (whole >= least && whole <= greatest).then_some(Datum::Whole(whole))?
        }
        _ => return None,
    })
}

/// A value as DuckDB writes it; `None` if that is not known here.
pub(crate) fn to_text(datum: &Datum, kind: &SqlType) -> Option<String> {
    Some(match datum {
        Datum::Boolean(truth) => truth.to_string(),
        Datum::Whole(number) => number.to_string(),
        Datum::Real(number) => real_text(*number, kind),
        Datum::Decimal(number) => {
            let mut text = String::new();
            decimal::write(*number, kind.decimal_size()?.1, &mut text);
            text
        }
        Datum::Text(text) => text.clone(),
        Datum::Date(days) => date_text(i64::from(*days)),
        Datum::Time(micros) => time_text(*micros),
        Datum::Timestamp(timestamp) => timestamp_text(*timestamp),
        Datum::Interval(interval) => interval_text(*interval),
        Datum::Null | Datum::Bytes(_) | Datum::List(_) | Datum::Struct(_) => return None,
    })
}

fn from_text(text: String, to: &SqlType) -> Result<Datum, CastFailure> {
    const UNCLEAR: CastFailure =
        CastFailure::Ambiguous("its format is ambiguous; write it as `2024-05-01 10:30:00`");
    const ZONED: CastFailure = CastFailure::Ambiguous(
        "the text has a UTC offset or a time zone, and the type has none: write the time in UTC, without the \
         offset, or `CAST(x AS TIMESTAMPTZ) AT TIME ZONE 'UTC'`",
    );
    let moment = |failure| match failure {
        DateTextFailure::NotADate => CastFailure::NotConvertible,
        DateTextFailure::HasZone => ZONED,
        DateTextFailure::Ambiguous => UNCLEAR,
    };
    match to {
        SqlType::Date => return parse_date(&text).map(Datum::Date).map_err(moment),
        SqlType::Time => return parse_time(&text).map(Datum::Time).map_err(moment),
        SqlType::Timestamp => return parse_timestamp(&text).map(Datum::Timestamp).map_err(moment),
        SqlType::TimestampTz => {
            return parse_instant(&text).map(Datum::Timestamp).map_err(|_| {
                CastFailure::Ambiguous("write the UTC offset, such as `2024-05-01 10:30:00+00`")
            });
        }
        _ => {}
    }
    let converted = match to {
        SqlType::Boolean => parse_boolean(&text).map(Datum::Boolean),
        SqlType::Double => parse_real(&text).map(Datum::Real),
        SqlType::Float => parse_real(&text).map(|number| Datum::Real(f64::from(number as f32))),
        SqlType::Decimal(digits, scale) => parse_decimal(&text, *digits, *scale).map(Datum::Decimal),
        SqlType::Interval => match SqlInterval::parse(&text) {
            Some(interval) => Some(Datum::Interval(interval)),
            None => return Err(CastFailure::Ambiguous("write intervals as `3 days`, with whole numbers")),
        },
        SqlType::Blob if text.contains('\\') => {
            return Err(CastFailure::Ambiguous("bytes with `\\` cannot be read"));
        }
        SqlType::Blob => Some(Datum::Bytes(text.into_bytes())),
        SqlType::Json => normalized(&text).map(|_| Datum::Text(text)),
        whole => parse_whole(&text, whole).map(Datum::Whole),
    };
    converted.ok_or(CastFailure::NotConvertible)
}
