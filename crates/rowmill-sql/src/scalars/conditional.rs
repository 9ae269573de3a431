//! Functions that select one of their arguments, or describe them.

use super::catalog::{BoundFunction, FunctionCall};
use crate::expression::coerce::{
    as_condition, bind_comparison, cast_to, common_argument_type, fold_constant,
};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{ComparisonKind, EvaluatedArguments, ExpressionNode, TypedExpression};
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
fn met(call: &FunctionCall) -> BindResult<(Vec<TypedExpression>, SqlType)> {
    let values: Vec<_> = call.arguments.iter().collect();
    let kind = common_argument_type(&values, &format!("`{}`", call.name))?;
    let values = call.arguments.iter().map(|value| cast_to(value.clone(), &kind, CastMode::Fail));
    Ok((values.collect::<BindResult<_>>()?, kind))
}

fn coalesce(call: &FunctionCall) -> BindResult<TypedExpression> {
    if call.arguments.is_empty() || (call.name == "ifnull" && call.arguments.len() != 2) {
        return Err(call.wrong_count("2"));
    }
    let (values, kind) = met(call)?;
    Ok(TypedExpression { node: ExpressionNode::Coalesce(values), kind, place: call.place })
}

fn nullif(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [value, other] = call.exact_arguments()?;
    let is_same = bind_comparison(ComparisonKind::Equal, value.clone(), other, call.place)?;
    let kind = value.kind.clone();
    let null = TypedExpression::constant(Datum::Null, kind.clone(), call.place);
    let value = cast_to(value, &kind, CastMode::Fail)?;
    Ok(TypedExpression {
        node: ExpressionNode::Case(vec![(is_same, null)], Some(Box::new(value))),
        kind,
        place: call.place,
    })
}

fn choose(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [test, then, otherwise] = call.exact_arguments()?;
    bind_case(vec![(test, then)], Some(otherwise), call.place)
}

/// `CASE WHEN … THEN … ELSE … END`.
pub(crate) fn bind_case(
    branches: Vec<(TypedExpression, TypedExpression)>,
    otherwise: Option<TypedExpression>,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let results: Vec<_> = branches.iter().map(|(_, result)| result).chain(&otherwise).collect();
    let kind = common_argument_type(&results, "`CASE`")?;
    let result = |typed: TypedExpression| cast_to(typed, &kind, CastMode::Fail);
    let branches: Vec<_> = branches
        .into_iter()
        .map(|(test, then)| Ok((as_condition(test)?, result(then)?)))
        .collect::<BindResult<_>>()?;
    let otherwise = otherwise.map(|typed| result(typed).map(Box::new)).transpose()?;
    fold_constant(TypedExpression { node: ExpressionNode::Case(branches, otherwise), kind, place })
}

/// The maximum or minimum of the arguments, ignoring nulls.
fn extreme(call: &FunctionCall, wanted: std::cmp::Ordering) -> BindResult<TypedExpression> {
    if call.arguments.is_empty() {
        return Err(call.wrong_count("at least 1"));
    }
    let (values, kind) = met(call)?;
    if !kind.is_ordered() {
        return Err(QueryRefusal::new(format!("values of type {kind} have no order"), call.place));
    }
    let found = move |arguments: EvaluatedArguments<'_, '_>| {
        let mut best: Option<&Datum> = None;
        for datum in arguments.iter().filter(|datum| !datum.is_null()) {
            if best.is_none_or(|best| datum.order(best) == wanted) {
                best = Some(datum);
            }
        }
        Ok(best.cloned().unwrap_or(Datum::Null))
    };
    Ok(TypedExpression::call_with_nulls(found, values, kind, call.place))
}

fn type_of(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [value] = call.exact_arguments()?;
    Ok(TypedExpression::constant(Datum::Text(value.kind.to_string()), SqlType::Varchar, call.place))
}
