//! Looks up functions by name.

use super::{
    conditional, date_parts, dates, fixed_types, formats, json, lists, numbers, operators, regexes, rounding,
    texts,
};
use crate::expression::coerce::fold_constant;
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::TypedExpression;

/// A function with its name and its binder.
pub(super) struct BoundFunction {
    pub(super) names: &'static [&'static str],
    pub(super) bind: fn(&FunctionCall) -> BindResult<TypedExpression>,
}

/// A call whose arguments are already bound.
#[derive(Debug, Clone)]
pub(crate) struct FunctionCall {
    pub(crate) name: String,
    pub(crate) arguments: Vec<TypedExpression>,
    pub(crate) place: QueryPosition,
}

impl FunctionCall {
    /// The arguments, if their number is correct.
    pub(super) fn exact_arguments<const N: usize>(&self) -> BindResult<[TypedExpression; N]> {
        self.arguments.clone().try_into().map_err(|_| self.wrong_count(&N.to_string()))
    }

    pub(super) fn wrong_count(&self, wanted: &str) -> QueryRefusal {
        let found = self.arguments.len();
        QueryRefusal::new(format!("`{}` takes {wanted} arguments, not {found}", self.name), self.place)
    }

    /// The refusal for arguments of unsupported types.
    pub(super) fn wrong_types(&self, hint: &str) -> QueryRefusal {
        let kinds: Vec<_> = self.arguments.iter().map(|argument| argument.kind.to_string()).collect();
        QueryRefusal::new(format!("there is no `{}({})`", self.name, kinds.join(", ")), self.place).hint(hint)
    }

    /// An argument that must be a string literal.
    pub(super) fn known_text(&self, at: usize) -> BindResult<&str> {
        let text =
            self.arguments.get(at).and_then(TypedExpression::known_value).and_then(|datum| datum.as_text());
        text.ok_or_else(|| {
            let place = self.arguments.get(at).map_or(self.place, |argument| argument.place);
            QueryRefusal::new(
                format!("argument {} of `{}` must be a string in the query", at + 1, self.name),
                place,
            )
        })
    }
}

/// All groups of functions.
fn groups() -> [&'static [BoundFunction]; 10] {
    [
        texts::FUNCTIONS,
        regexes::FUNCTIONS,
        numbers::FUNCTIONS,
        rounding::FUNCTIONS,
        dates::FUNCTIONS,
        date_parts::FUNCTIONS,
        formats::FUNCTIONS,
        lists::FUNCTIONS,
        json::FUNCTIONS,
        conditional::FUNCTIONS,
    ]
}

/// The names of all functions.
pub(crate) fn function_names() -> Vec<&'static str> {
    let bound = groups().into_iter().flatten().flat_map(|function| function.names);
    bound.chain(fixed_types::names()).copied().chain(["mod"]).collect()
}

/// Binds a call; `None` if there is no function with that name.
pub(crate) fn bind_function(call: &FunctionCall) -> Option<BindResult<TypedExpression>> {
    let name = call.name.as_str();
    if name == "mod" {
        return Some(call.exact_arguments().and_then(|[left, right]| {
            operators::bind_arithmetic(operators::ArithmeticOperator::Remainder, left, right, call.place)
        }));
    }
    if let Some(bound) = fixed_types::bind(call) {
        return Some(bound.and_then(fold_constant));
    }
    let function = groups().into_iter().flatten().find(|function| function.names.contains(&name))?;
    Some((function.bind)(call).and_then(fold_constant))
}
