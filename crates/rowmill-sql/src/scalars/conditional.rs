//! Functions that select one of their arguments, or describe them.

use super::catalog::{BoundFunction, FunctionCall};
use crate::expression::coerce::{cast_to, comparison, condition, folded, meeting_type};
use crate::expression::refusal::{Bound, Refusal, TextPlace};
use crate::expression::typed::{Arguments, Node, Operator, Typed};
use crate::values::cast::CastMode;
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

pub(super) const FUNCTIONS: &[BoundFunction] = &[
    BoundFunction { names: &["coalesce", "ifnull"], bind: coalesce },
    BoundFunction { names: &["nullif"], bind: nullif },
    BoundFunction { names: &["if", "iif"], bind: choose },
    BoundFunction { names: &["greatest"], bind: |call| extreme(call, std::cmp::Ordering::Greater) },
    BoundFunction { names: &["least"], bind: |call| extreme(call, std::cmp::Ordering::Less) },
    BoundFunction { names: &["typeof"], bind: type_of },
];

/// All arguments, cast to their common type.
fn met(call: &FunctionCall) -> Bound<(Vec<Typed>, SqlType)> {
    let values: Vec<_> = call.arguments.iter().collect();
    let kind = meeting_type(&values, &format!("`{}`", call.name))?;
    let values = call.arguments.iter().map(|value| cast_to(value.clone(), &kind, CastMode::Fail));
    Ok((values.collect::<Bound<_>>()?, kind))
}

fn coalesce(call: &FunctionCall) -> Bound<Typed> {
    if call.arguments.is_empty() || (call.name == "ifnull" && call.arguments.len() != 2) {
        return Err(call.wrong_count("2"));
    }
    let (values, kind) = met(call)?;
    Ok(Typed { node: Node::Coalesce(values), kind, place: call.place })
}

fn nullif(call: &FunctionCall) -> Bound<Typed> {
    let [value, other] = call.exactly()?;
    let is_same = comparison(Operator::Equal, value.clone(), other, call.place)?;
    let kind = value.kind.clone();
    let null = Typed::constant(Datum::Null, kind.clone(), call.place);
    let value = cast_to(value, &kind, CastMode::Fail)?;
    Ok(Typed { node: Node::Case(vec![(is_same, null)], Some(Box::new(value))), kind, place: call.place })
}

fn choose(call: &FunctionCall) -> Bound<Typed> {
    let [test, then, otherwise] = call.exactly()?;
    case(vec![(test, then)], Some(otherwise), call.place)
}

/// `CASE WHEN … THEN … ELSE … END`.
pub(crate) fn case(
    branches: Vec<(Typed, Typed)>,
    otherwise: Option<Typed>,
    place: TextPlace,
) -> Bound<Typed> {
    let results: Vec<_> = branches.iter().map(|(_, result)| result).chain(&otherwise).collect();
    let kind = meeting_type(&results, "`CASE`")?;
    let result = |typed: Typed| cast_to(typed, &kind, CastMode::Fail);
    let branches: Vec<_> = branches
        .into_iter()
        .map(|(test, then)| Ok((condition(test)?, result(then)?)))
        .collect::<Bound<_>>()?;
    let otherwise = otherwise.map(|typed| result(typed).map(Box::new)).transpose()?;
    folded(Typed { node: Node::Case(branches, otherwise), kind, place })
}

/// The maximum or minimum of the arguments, ignoring nulls.
fn extreme(call: &FunctionCall, wanted: std::cmp::Ordering) -> Bound<Typed> {
    if call.arguments.is_empty() {
        return Err(call.wrong_count("at least 1"));
    }
    let (values, kind) = met(call)?;
    if !kind.is_ordered() {
        return Err(Refusal::new(format!("values of type {kind} have no order"), call.place));
    }
    let found = move |arguments: Arguments<'_, '_>| {
        let mut best: Option<&Datum> = None;
        for datum in arguments.iter().filter(|datum| !datum.is_null()) {
            if best.is_none_or(|best| datum.order(best) == wanted) {
                best = Some(datum);
            }
        }
        Ok(best.cloned().unwrap_or(Datum::Null))
    };
    Ok(Typed::call_with_nulls(found, values, kind, call.place))
}

fn type_of(call: &FunctionCall) -> Bound<Typed> {
    let [value] = call.exactly()?;
    Ok(Typed::constant(Datum::Text(value.kind.to_string()), SqlType::Varchar, call.place))
}
