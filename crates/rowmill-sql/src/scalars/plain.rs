//! Functions with fixed argument and result types.

use super::catalog::FunctionCall;
use super::{moments, numbers, texts};
use crate::expression::coerce::adapted;
use crate::expression::refusal::{Bound, Refusal};
use crate::expression::typed::{Arguments, Typed};
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

/// A function with fixed types.
pub(super) struct PlainFunction {
    pub(super) names: &'static [&'static str],
    pub(super) parameters: &'static [SqlType],
    pub(super) result: SqlType,
    pub(super) compute: fn(Arguments<'_, '_>) -> Result<Datum, String>,
}

fn groups() -> [&'static [PlainFunction]; 3] {
    [texts::PLAIN, numbers::PLAIN, moments::PLAIN]
}

pub(super) fn names() -> impl Iterator<Item = &'static &'static str> {
    groups().into_iter().flatten().flat_map(|function| function.names)
}

/// Binds a call of a function with fixed types; `None` if there is none with that name.
pub(super) fn bind(call: &FunctionCall) -> Option<Bound<Typed>> {
    let named = |function: &&PlainFunction| function.names.contains(&call.name.as_str());
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

fn bind_one(call: &FunctionCall, function: &PlainFunction) -> Bound<Typed> {
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for (argument, wanted) in call.arguments.iter().zip(function.parameters) {
        match adapted(argument.clone(), wanted) {
            Some(bound) => arguments.push(bound?),
            None => {
                let message = format!("`{}` takes {wanted} here, not {}", call.name, argument.kind);
                let hint = format!("write `CAST(x AS {wanted})`");
                return Err(Refusal::new(message, argument.place).hint(hint));
            }
        }
    }
    Ok(Typed::call(function.compute, arguments, function.result.clone(), call.place))
}
