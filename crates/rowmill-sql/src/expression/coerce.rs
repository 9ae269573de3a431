//! Converts expressions to types: exactly where DuckDB casts implicitly.

use rowmill_types::settings::TYPES;

use super::evaluate::evaluate_expression;
use super::refusal::{BindResult, QueryPosition, QueryRefusal};
use super::typed::{ComparisonKind, ExpressionNode, TypedExpression};
use crate::values::cast::{CastMode, can_cast};
use crate::values::common_type::{common_type, compared_decimal};
use crate::values::date_text::{parse_date, parse_time};
use crate::values::datum::Datum;
use crate::values::json_normal::normalized;
use crate::values::sql_type::SqlType;

/// Evaluates a constant expression.
pub(crate) fn fold_constant(typed: TypedExpression) -> BindResult<TypedExpression> {
    let is_known = |part: &&TypedExpression| part.known_value().is_some();
    let is_repeatable = !matches!(&typed.node, ExpressionNode::Call(call) if !call.is_repeatable);
    let parts = typed.parts();
    let has_parts = !parts.is_empty() || matches!(typed.node, ExpressionNode::Call(_));
    if !has_parts || !is_repeatable || !parts.iter().all(is_known) {
        return Ok(typed);
    }
    let datum = evaluate_expression(&typed, &[]).map_err(|failure| {
        let refusal = QueryRefusal::new(failure.message, failure.place);
        match failure.hint {
            Some(hint) => refusal.hint(hint),
            None => refusal,
        }
    })?;
    let datum = datum.into_owned();
    Ok(TypedExpression { node: ExpressionNode::Constant(datum), kind: typed.kind, place: typed.place })
}

/// An explicit cast, or one to a common type.
pub(crate) fn cast_to(typed: TypedExpression, kind: &SqlType, mode: CastMode) -> BindResult<TypedExpression> {
    if typed.kind == *kind {
        // A literal that was cast is no longer a literal.
        let node = match typed.node {
            ExpressionNode::Literal(datum) => ExpressionNode::Constant(datum),
            node => node,
        };
        return Ok(TypedExpression { node, ..typed });
    }
    if !can_cast(&typed.kind, kind) {
        return Err(cannot_cast(&typed, kind));
    }
    let place = typed.place;
    fold_constant(TypedExpression {
        node: ExpressionNode::Cast(Box::new(typed), mode),
        kind: kind.clone(),
        place,
    })
}

fn cannot_cast(typed: &TypedExpression, kind: &SqlType) -> QueryRefusal {
    let refusal = QueryRefusal::new(format!("{} cannot be cast to {kind}", typed.kind), typed.place);
    match (&typed.kind, kind) {
        (from, SqlType::Varchar) if from.is_nested() => {
            refusal.hint("use `to_json(x)` to write lists and objects as JSON")
        }
        (SqlType::TimestampTz, _) => refusal.hint("write `x AT TIME ZONE 'UTC'` first"),
        (SqlType::Varchar, SqlType::List(_)) => {
            refusal.hint("use `string_split(x, ',')` to make a list of text")
        }
        (from, SqlType::Date | SqlType::Timestamp) if from.is_number() => {
            refusal.hint("`make_timestamp(x)` takes microseconds since 1970, `epoch_ms(x)` milliseconds")
        }
        _ => refusal.hint("see `docs/sql.md` for the supported casts"),
    }
}

/// Whether a value may be converted to a type without an explicit cast.
pub(crate) fn can_adapt(typed: &TypedExpression, kind: &SqlType) -> bool {
    match (&typed.kind, kind) {
        (from, to) if from == to => true,
        (SqlType::Null, _) => true,
        (SqlType::Varchar, to) => typed.literal_text().is_some() && can_cast(&SqlType::Varchar, to),
        (from, to) if from.is_whole() && to.is_whole() => {
            let known = typed.known_value().filter(|_| typed.is_literal()).and_then(Datum::as_whole);
            let range = to.whole_range();
            let fits =
                |number: i128| range.is_some_and(|(least, greatest)| number >= least && number <= greatest);
            known.is_some_and(fits) || common_type(from, to).as_ref() == Some(to)
        }
        (from, to) if from.is_number() && to.is_number() => {
            to.is_real() && !(from == &SqlType::Double)
                || matches!(to, SqlType::Decimal(..)) && from.is_whole()
        }
        (SqlType::Date, SqlType::Timestamp) | (SqlType::Json, SqlType::Varchar) => true,
        (SqlType::List(from), SqlType::List(to)) => {
            **from == SqlType::Null || common_type(from, to).as_ref() == Some(to)
        }
        _ => false,
    }
}

/// Converts an argument to the required type.
pub(crate) fn adapt_argument(typed: TypedExpression, kind: &SqlType) -> Option<BindResult<TypedExpression>> {
    can_adapt(&typed, kind).then(|| cast_to(typed, kind, CastMode::Fail))
}

/// The common type of several values; `purpose` says in messages what it is for.
pub(crate) fn common_argument_type(values: &[&TypedExpression], purpose: &str) -> BindResult<SqlType> {
    let mut met = SqlType::Null;
    let literals = |value: &&&TypedExpression| value.literal_text().is_none();
    for value in values.iter().filter(literals) {
        let adapted = value.is_literal() && value.kind.is_whole() && met.is_whole() && can_adapt(value, &met);
        if adapted {
            continue;
        }
        met = common_type(&met, &value.kind)
            .ok_or_else(|| cannot_meet(&met, value, purpose).with_column_notes(values))?;
    }
    // An integer literal in first position takes the type of the others as well.
    let others: Vec<_> = values.iter().filter(literals).filter(|value| !value.is_literal()).collect();
    if met.is_whole() && !others.is_empty() && others.len() < values.len() {
        let mut narrow = SqlType::Null;
        for value in others {
            narrow = common_type(&narrow, &value.kind).unwrap_or_else(|| met.clone());
        }
        if narrow.is_whole() && values.iter().all(|value| can_adapt(value, &narrow)) {
            met = narrow;
        }
    }
    let is_text = values.iter().any(|value| value.literal_text().is_some());
    if is_text && met == SqlType::Null {
        return Ok(SqlType::Varchar);
    }
    Ok(met)
}

fn cannot_meet(met: &SqlType, value: &TypedExpression, purpose: &str) -> QueryRefusal {
    let message = format!("{met} and {} cannot be combined in {purpose} without a cast", value.kind);
    let refusal = QueryRefusal::new(message, value.place);
    match (met, &value.kind) {
        (SqlType::Varchar, other) | (other, SqlType::Varchar) if other.is_number() => refusal
            .hint(format!("write `TRY_CAST(x AS {})` for the text, or quote the number", double_for(other))),
        (SqlType::Varchar, other) | (other, SqlType::Varchar) if other.is_date_or_timestamp() => {
            refusal.hint(format!("write `TRY_CAST(x AS {other})` for the text"))
        }
        (SqlType::Json, _) | (_, SqlType::Json) => refusal.hint(format!(
            "the column has values of several types: write `TRY_CAST(x AS DOUBLE)`, or use {types}",
            types = TYPES.with_value("x=text")
        )),
        (SqlType::TimestampTz, _) | (_, SqlType::TimestampTz) => {
            refusal.hint("write `x AT TIME ZONE 'UTC'`, or quote a time with its UTC offset")
        }
        _ => refusal.hint("write `CAST(x AS type)` for one of them"),
    }
}

/// The best type for casting text that is used with a number.
fn double_for(number: &SqlType) -> &'static str {
    if number.is_whole() { "BIGINT" } else { "DOUBLE" }
}

/// Compares two values.
pub(crate) fn bind_comparison(
    operator: ComparisonKind,
    left: TypedExpression,
    right: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let met = comparison_type(&left, &right)?;
    let left = cast_to(left, &met, CastMode::Fail)?;
    let right = cast_to(right, &met, CastMode::Fail)?;
    let node = ExpressionNode::Compare(operator, Box::new(left), Box::new(right));
    fold_constant(TypedExpression { node, kind: SqlType::Boolean, place })
}

/// The type in which two values are compared.
pub(crate) fn comparison_type(left: &TypedExpression, right: &TypedExpression) -> BindResult<SqlType> {
    let with_truth = |truth: &TypedExpression, number: &TypedExpression| {
        truth.kind == SqlType::Boolean && number.kind.is_whole()
    };
    if with_truth(left, right) {
        return Ok(right.kind.clone());
    }
    if with_truth(right, left) {
        return Ok(left.kind.clone());
    }
    let met = common_argument_type(&[left, right], "a comparison")?;
    // Dates, times and booleans as text sort correctly only if all have the same format.
    let is_moment = |typed: &TypedExpression| typed.literal_text().is_some_and(is_day_time_or_truth);
    let compares_texts =
        left.note().is_some() && is_moment(right) || right.note().is_some() && is_moment(left);
    if met == SqlType::Varchar && compares_texts {
        let message = "a text column cannot be compared with a date, a time or a boolean";
        return Err(QueryRefusal::new(message, left.place).with_column_notes(&[left, right]));
    }
    if matches!(met, SqlType::Other(_)) {
        let refusal = QueryRefusal::new(format!("values of type {met} cannot be compared"), left.place);
        return Err(refusal.hint("write `CAST(x AS VARCHAR)`"));
    }
    if met == SqlType::Json {
        [left, right].into_iter().try_for_each(literal_is_json)?;
    }
    Ok(match met {
        SqlType::Decimal(..) => compared_decimal(&left.kind, &right.kind).unwrap_or(met),
        met => met,
    })
}

/// Rejects a string that is compared with JSON and is not valid JSON: it would equal nothing.
fn literal_is_json(typed: &TypedExpression) -> BindResult<()> {
    match typed.literal_text() {
        Some(text) if normalized(text).is_none() => {
            let message = format!("'{text}' is not JSON, but is compared with JSON");
            let hint = format!("`x ->> '$' = '{text}'` compares the text of strings");
            Err(QueryRefusal::new(message, typed.place).hint(hint))
        }
        _ => Ok(()),
    }
}

fn is_day_time_or_truth(text: &str) -> bool {
    let is_truth = ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word));
    is_truth || parse_date(text).is_ok() || parse_time(text).is_ok()
}

/// The type in which a value is compared with each of several others.
pub(crate) fn comparison_type_of_all(
    value: &TypedExpression,
    others: &[&TypedExpression],
) -> BindResult<SqlType> {
    let mut met: Option<TypedExpression> = None;
    for other in others {
        let kind = comparison_type(met.as_ref().unwrap_or(value), other)?;
        met = Some(TypedExpression::leaf(String::new(), kind, value.place));
    }
    Ok(met.map_or(SqlType::Null, |met| met.kind))
}

/// A condition: a boolean, or a number, which is false if it is 0.
pub(crate) fn as_condition(typed: TypedExpression) -> BindResult<TypedExpression> {
    match &typed.kind {
        SqlType::Boolean => Ok(typed),
        SqlType::Null => cast_to(typed, &SqlType::Boolean, CastMode::Fail),
        kind if kind.is_number() => cast_to(typed, &SqlType::Boolean, CastMode::Fail),
        kind => {
            let message = format!("a condition must be true or false, and this is {kind}");
            Err(QueryRefusal::new(message, typed.place).hint("use a comparison"))
        }
    }
}
