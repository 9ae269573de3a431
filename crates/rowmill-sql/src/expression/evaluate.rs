//! Evaluates expressions.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::refusal::QueryPosition;
use super::typed::{ComparisonKind, ExpressionNode, NullRule, TypedExpression};
use crate::values::cast::{CastFailure, CastMode, cast, to_text};
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

/// Why an expression has no value for some row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvaluationFailure {
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
    pub(crate) place: QueryPosition,
}

type EvaluationResult<'d> = Result<Cow<'d, Datum>, EvaluationFailure>;

/// The value of an expression for some arguments.
pub(crate) fn evaluate_expression<'d>(
    typed: &'d TypedExpression,
    arguments: &'d [Datum],
) -> EvaluationResult<'d> {
    match &typed.node {
        ExpressionNode::Argument(at) => Ok(arguments.get(*at).map_or(Cow::Owned(Datum::Null), Cow::Borrowed)),
        ExpressionNode::Literal(datum) | ExpressionNode::Constant(datum) => Ok(Cow::Borrowed(datum)),
        ExpressionNode::Leaf(_) => Ok(Cow::Owned(Datum::Null)),
        ExpressionNode::Cast(part, mode) => {
            let datum = evaluate_expression(part, arguments)?;
            evaluate_cast(datum, part, typed, *mode)
        }
        ExpressionNode::And(parts) => all_of(parts, arguments, Some(false)),
        ExpressionNode::Or(parts) => all_of(parts, arguments, Some(true)),
        ExpressionNode::Not(part) => {
            Ok(truth(evaluate_expression(part, arguments)?.as_boolean().map(|truth| !truth)))
        }
        ExpressionNode::IsNull(part) => Ok(truth(Some(evaluate_expression(part, arguments)?.is_null()))),
        ExpressionNode::Compare(operator, left, right) => {
            let (left, right) =
                (evaluate_expression(left, arguments)?, evaluate_expression(right, arguments)?);
            Ok(truth(compare_values(*operator, &left, &right)))
        }
        ExpressionNode::In(value, list) => {
            let value = evaluate_expression(value, arguments)?;
            Ok(truth(is_in(&value, list, arguments)?))
        }
        ExpressionNode::Case(branches, otherwise) => {
            for (condition, result) in branches {
                if evaluate_expression(condition, arguments)?.as_boolean() == Some(true) {
                    return evaluate_expression(result, arguments);
                }
            }
            otherwise
                .as_ref()
                .map_or(Ok(Cow::Owned(Datum::Null)), |result| evaluate_expression(result, arguments))
        }
        ExpressionNode::Coalesce(parts) => {
            for part in parts {
                let datum = evaluate_expression(part, arguments)?;
                if !datum.is_null() {
                    return Ok(datum);
                }
            }
            Ok(Cow::Owned(Datum::Null))
        }
        ExpressionNode::Call(call) => {
            let values: Vec<_> = call
                .arguments
                .iter()
                .map(|part| evaluate_expression(part, arguments))
                .collect::<Result<_, _>>()?;
            if call.nulls == NullRule::GiveNull && values.iter().any(|value| value.is_null()) {
                return Ok(Cow::Owned(Datum::Null));
            }
            let failure = |message| EvaluationFailure { message, hint: None, place: typed.place };
            (call.computation)(&values).map(Cow::Owned).map_err(failure)
        }
    }
}

/// Whether a list has a value; `None` if it has nulls instead.
fn is_in(
    value: &Datum,
    list: &[TypedExpression],
    arguments: &[Datum],
) -> Result<Option<bool>, EvaluationFailure> {
    let mut found = Some(false);
    for item in list {
        let item = evaluate_expression(item, arguments)?;
        match compare_values(ComparisonKind::Equal, value, &item) {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => found = None,
        }
    }
    Ok(found)
}

/// `AND` and `OR`: evaluation stops at the first part that decides the result.
fn all_of<'d>(
    parts: &'d [TypedExpression],
    arguments: &'d [Datum],
    decides: Option<bool>,
) -> EvaluationResult<'d> {
    let mut found = decides.map(|truth| !truth);
    for part in parts {
        let value = evaluate_expression(part, arguments)?.as_boolean();
        if value == decides {
            return Ok(truth(decides));
        }
        if value.is_none() {
            found = None;
        }
    }
    Ok(truth(found))
}

fn truth(truth: Option<bool>) -> Cow<'static, Datum> {
    Cow::Owned(truth.map_or(Datum::Null, Datum::Boolean))
}

/// Compares two values of the same type.
pub(crate) fn compare_values(operator: ComparisonKind, left: &Datum, right: &Datum) -> Option<bool> {
    let order = match operator {
        ComparisonKind::Distinct => return Some(left.order(right).is_ne()),
        ComparisonKind::NotDistinct => return Some(left.order(right).is_eq()),
        _ if left.is_null() || right.is_null() => return None,
        _ => left.order(right),
    };
    Some(match operator {
        ComparisonKind::Equal | ComparisonKind::NotDistinct => order == Ordering::Equal,
        ComparisonKind::NotEqual | ComparisonKind::Distinct => order != Ordering::Equal,
        ComparisonKind::Less => order == Ordering::Less,
        ComparisonKind::AtMost => order != Ordering::Greater,
        ComparisonKind::Greater => order == Ordering::Greater,
        ComparisonKind::AtLeast => order != Ordering::Less,
    })
}

fn evaluate_cast<'d>(
    datum: Cow<'d, Datum>,
    part: &TypedExpression,
    typed: &TypedExpression,
    mode: CastMode,
) -> EvaluationResult<'d> {
    if part.kind == typed.kind || datum.is_null() {
        return Ok(datum);
    }
    let shown = value_for_message(&datum, &part.kind);
    match cast(datum.into_owned(), &part.kind, &typed.kind, mode) {
        Ok(found) => Ok(Cow::Owned(found)),
        Err(CastFailure::NotConvertible) if mode == CastMode::GiveNull => Ok(Cow::Owned(Datum::Null)),
        Err(CastFailure::NotConvertible) => {
            let message = format!("{shown} is not a valid {}", typed.kind);
            let hint = Some(hint_for_invalid(part, &typed.kind));
            Err(EvaluationFailure { message, hint, place: typed.place })
        }
        Err(CastFailure::Ambiguous(hint)) => {
            let message = format!("{shown} cannot be cast to {}", typed.kind);
            Err(EvaluationFailure { message, hint: Some(hint), place: typed.place })
        }
    }
}

/// What to do about a value that is not valid for a type. `TRY_CAST` of a text in the query would always be null.
fn hint_for_invalid(part: &TypedExpression, kind: &SqlType) -> &'static str {
    if part.literal_text().is_none() {
        return "use `TRY_CAST(x AS type)` to get null for values that cannot be cast";
    }
    match kind {
        SqlType::Date | SqlType::Timestamp => "write a whole and valid date, such as `2026-03-01`",
        SqlType::Time => "write the time as `10:30:00`",
        SqlType::Boolean => "write `true` or `false`",
        kind if kind.is_number() => "write a number, without quotes; names of columns go into double quotes",
        _ => "correct the text in quotes",
    }
}

/// A value as shown in a message: short, with text in quotes.
pub(crate) fn value_for_message(datum: &Datum, kind: &SqlType) -> String {
    const SHOWN: usize = 40;
    let text = to_text(datum, kind).unwrap_or_else(|| format!("a value of type {kind}"));
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    if matches!(datum, Datum::Text(_)) { format!("'{short}'") } else { short }
}
