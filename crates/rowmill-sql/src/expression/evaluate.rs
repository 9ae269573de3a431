//! Evaluates expressions.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::refusal::TextPlace;
use super::typed::{Node, NullRule, Operator, Typed};
use crate::values::cast::{CastFailure, CastMode, cast, to_text};
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

/// Why an expression has no value for some row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvaluationFailure {
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
    pub(crate) place: TextPlace,
}

type Evaluated<'d> = Result<Cow<'d, Datum>, EvaluationFailure>;

/// The value of an expression for some arguments.
pub(crate) fn evaluate<'d>(typed: &'d Typed, arguments: &'d [Datum]) -> Evaluated<'d> {
    match &typed.node {
        Node::Argument(at) => Ok(arguments.get(*at).map_or(Cow::Owned(Datum::Null), Cow::Borrowed)),
        Node::Literal(datum) | Node::Constant(datum) => Ok(Cow::Borrowed(datum)),
        Node::Leaf(_) => Ok(Cow::Owned(Datum::Null)),
        Node::Cast(part, mode) => {
            let datum = evaluate(part, arguments)?;
            evaluate_cast(datum, part, typed, *mode)
        }
        Node::And(parts) => all_of(parts, arguments, Some(false)),
        Node::Or(parts) => all_of(parts, arguments, Some(true)),
        Node::Not(part) => Ok(truth(evaluate(part, arguments)?.as_boolean().map(|truth| !truth))),
        Node::IsNull(part) => Ok(truth(Some(evaluate(part, arguments)?.is_null()))),
        Node::Compare(operator, left, right) => {
            let (left, right) = (evaluate(left, arguments)?, evaluate(right, arguments)?);
            Ok(truth(compare(*operator, &left, &right)))
        }
        Node::In(value, list) => {
            let value = evaluate(value, arguments)?;
            let mut found = Some(false);
            for item in list {
                let is_equal = compare(Operator::Equal, &value, evaluate(item, arguments)?.as_ref());
                match is_equal {
                    Some(true) => return Ok(truth(Some(true))),
                    Some(false) => {}
                    None => found = None,
                }
            }
            Ok(truth(found))
        }
        Node::Case(branches, otherwise) => {
            for (condition, result) in branches {
                if evaluate(condition, arguments)?.as_boolean() == Some(true) {
                    return evaluate(result, arguments);
                }
            }
            otherwise.as_ref().map_or(Ok(Cow::Owned(Datum::Null)), |result| evaluate(result, arguments))
        }
        Node::Coalesce(parts) => {
            for part in parts {
                let datum = evaluate(part, arguments)?;
                if !datum.is_null() {
                    return Ok(datum);
                }
            }
            Ok(Cow::Owned(Datum::Null))
        }
        Node::Call(call) => {
            let values: Vec<_> =
                call.arguments.iter().map(|part| evaluate(part, arguments)).collect::<Result<_, _>>()?;
            if call.nulls == NullRule::GiveNull && values.iter().any(|value| value.is_null()) {
                return Ok(Cow::Owned(Datum::Null));
            }
            let failure = |message| EvaluationFailure { message, hint: None, place: typed.place };
            (call.computation)(&values).map(Cow::Owned).map_err(failure)
        }
    }
}

/// `AND` and `OR`: evaluation stops at the first part that decides the result.
fn all_of<'d>(parts: &'d [Typed], arguments: &'d [Datum], decides: Option<bool>) -> Evaluated<'d> {
    let mut found = decides.map(|truth| !truth);
    for part in parts {
        let value = evaluate(part, arguments)?.as_boolean();
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
pub(crate) fn compare(operator: Operator, left: &Datum, right: &Datum) -> Option<bool> {
    let order = match operator {
        Operator::Distinct => return Some(left.order(right).is_ne()),
        Operator::NotDistinct => return Some(left.order(right).is_eq()),
        _ if left.is_null() || right.is_null() => return None,
        _ => left.order(right),
    };
    Some(match operator {
        Operator::Equal | Operator::NotDistinct => order == Ordering::Equal,
        Operator::NotEqual | Operator::Distinct => order != Ordering::Equal,
        Operator::Less => order == Ordering::Less,
        Operator::AtMost => order != Ordering::Greater,
        Operator::Greater => order == Ordering::Greater,
        Operator::AtLeast => order != Ordering::Less,
    })
}

fn evaluate_cast<'d>(datum: Cow<'d, Datum>, part: &Typed, typed: &Typed, mode: CastMode) -> Evaluated<'d> {
    if part.kind == typed.kind || datum.is_null() {
        return Ok(datum);
    }
    let shown = shown(&datum, &part.kind);
    match cast(datum.into_owned(), &part.kind, &typed.kind, mode) {
        Ok(found) => Ok(Cow::Owned(found)),
        Err(CastFailure::NotConvertible) if mode == CastMode::GiveNull => Ok(Cow::Owned(Datum::Null)),
        Err(CastFailure::NotConvertible) => {
            let message = format!("{shown} is not a valid {}", typed.kind);
            let hint = Some("use `TRY_CAST(x AS type)` to get null for values that cannot be cast");
            Err(EvaluationFailure { message, hint, place: typed.place })
        }
        Err(CastFailure::Unclear(hint)) => {
            let message = format!("{shown} cannot be cast to {}", typed.kind);
            Err(EvaluationFailure { message, hint: Some(hint), place: typed.place })
        }
    }
}

/// A value as shown in a message: short, with text in quotes.
pub(crate) fn shown(datum: &Datum, kind: &SqlType) -> String {
    const SHOWN: usize = 40;
    let text = to_text(datum, kind).unwrap_or_else(|| format!("a value of type {kind}"));
    let mut short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    if matches!(datum, Datum::Text(_)) { format!("'{short}'") } else { short }
}
