//! Intervals, structs, and times in a time zone.

use sqlparser::ast::Interval;

use super::QueryBinder;
use super::scope::NameScope;
use crate::expression::coerce::{adapt_argument, cast_to, fold_constant};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
use crate::scalars::interval_from_unit;
use crate::values::cast::CastMode;
use crate::values::datum::Datum;
use crate::values::interval::SqlInterval as Span;
use crate::values::sql_type::SqlType;

/// Units of intervals, by the beginning of their names.
const UNITS: &[&str] = &[
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "decade",
    "century",
];

impl QueryBinder<'_> {
    pub(super) fn bind_interval(
        &mut self,
        interval: &Interval,
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<TypedExpression> {
        let Some(unit) = &interval.leading_field else {
            let text = self.bind_expression(&interval.value, scope)?;
            return cast_to(text, &SqlType::Interval, CastMode::Fail);
        };
        let unit = unit.to_string().to_ascii_lowercase();
        let unit = UNITS.iter().copied().find(|known| unit.starts_with(*known));
        let wrong = QueryRefusal::new("that is not an interval unit", place);
        let unit = unit.filter(|unit| Span::from_unit(1, unit).is_some()).ok_or(wrong)?;
        let count = self.bind_expression(&interval.value, scope)?;
        let wrong = QueryRefusal::new("an interval must have a whole number of units", count.place)
            .hint("write `INTERVAL 3 DAY`");
        let count = adapt_argument(count, &SqlType::BigInt).ok_or(wrong)??;
        interval_from_unit(count, unit, place)
    }

    pub(super) fn bind_object(
        &mut self,
        fields: &[sqlparser::ast::DictionaryField],
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<TypedExpression> {
        let mut kinds = Vec::new();
        let mut values = Vec::new();
        for field in fields {
            let value = self.bind_expression(&field.value, scope)?;
            let kind = if value.kind == SqlType::Null { SqlType::Integer } else { value.kind.clone() };
            values.push(cast_to(value, &kind, CastMode::Fail)?);
            kinds.push((field.key.value.clone(), kind));
        }
        let made = |arguments: EvaluatedArguments<'_, '_>| {
            Ok(Datum::Struct(arguments.iter().map(|datum| datum.clone().into_owned()).collect()))
        };
        fold_constant(TypedExpression::call_with_nulls(made, values, SqlType::Struct(kinds), place))
    }
}

/// `x AT TIME ZONE 'UTC'`: converts between `TIMESTAMP` and `TIMESTAMPTZ`.
pub(super) fn at_utc(
    value: TypedExpression,
    zone: &TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    if zone.literal_text() != Some("UTC") {
        return Err(QueryRefusal::new("only the time zone 'UTC' is supported", zone.place)
            .hint("shift the time by an interval, such as `t + INTERVAL 2 HOUR`"));
    }
    let kind = match value.kind {
        SqlType::TimestampTz => SqlType::Timestamp,
        SqlType::Timestamp => SqlType::TimestampTz,
        _ => return Err(QueryRefusal::new(format!("{} has no time zone", value.kind), place)),
    };
    let same = |arguments: EvaluatedArguments<'_, '_>| {
        Ok(arguments.first().map_or(Datum::Null, |datum| datum.clone().into_owned()))
    };
    fold_constant(TypedExpression::call(same, vec![value], kind, place))
}
