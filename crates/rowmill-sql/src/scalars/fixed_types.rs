//! Functions with fixed argument and result types.

use super::catalog::FunctionCall;
use super::{date_parts, numbers, texts};
use crate::expression::coerce::adapt_argument;
use crate::expression::refusal::{BindResult, QueryRefusal};
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

/// A function with fixed types.
pub(super) struct FixedTypeFunction {
    pub(super) names: &'static [&'static str],
    pub(super) parameters: &'static [SqlType],
    pub(super) result: SqlType,
    pub(super) compute: fn(EvaluatedArguments<'_, '_>) -> Result<Datum, String>,
}

fn groups() -> [&'static [FixedTypeFunction]; 3] {
    [texts::PLAIN, numbers::PLAIN, date_parts::FIXED_FUNCTIONS]
}

pub(super) fn names() -> impl Iterator<Item = &'static &'static str> {
    groups().into_iter().flatten().flat_map(|function| function.names)
}

/// Binds a call of a function with fixed types; `None` if there is none with that name.
pub(super) fn bind(call: &FunctionCall) -> Option<BindResult<TypedExpression>> {
    let named = |function: &&FixedTypeFunction| function.names.contains(&call.name.as_str());
    let candidates: Vec<_> = groups().into_iter().flatten().filter(named).collect();
    if candidates.is_empty() {
        return None;
    }
    let count = call.arguments.len();
    let fitting = candidates.iter().find(|function| function.parameters.len() == count);
    Some(match fitting {
        Some(function) => bind_one(call, function),
        None => {
            let counts: Vec<_> =
                candidates.iter().map(|function| function.parameters.len().to_string()).collect();
            Err(call.wrong_count(&counts.join(" or ")))
        }
    })
}

fn bind_one(call: &FunctionCall, function: &FixedTypeFunction) -> BindResult<TypedExpression> {
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for (argument, wanted) in call.arguments.iter().zip(function.parameters) {
        match adapt_argument(argument.clone(), wanted) {
            Some(bound) => arguments.push(bound?),
            None => {
                let message = format!("`{}` takes {wanted} here, not {}", call.name, argument.kind);
                let hint = match (&argument.kind, wanted) {
                    (SqlType::TimestampTz, SqlType::Timestamp) => "write `x AT TIME ZONE 'UTC'`".to_owned(),
                    (SqlType::TimestampTz, _) => format!("write `CAST(x AT TIME ZONE 'UTC' AS {wanted})`"),
                    _ => format!("write `CAST(x AS {wanted})`"),
                };
                return Err(QueryRefusal::new(message, argument.place).hint(hint));
            }
        }
    }
    Ok(TypedExpression::call(function.compute, arguments, function.result.clone(), call.place))
}
