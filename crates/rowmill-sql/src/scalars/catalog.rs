//! Looks up functions by name.

use super::{
    conditional, dates, formats, json, lists, moments, numbers, operators, plain, regexes, rounding, texts,
};
use crate::expression::coerce::folded;
use crate::expression::refusal::{Bound, Refusal, TextPlace};
use crate::expression::typed::Typed;

/// A function with its name and its binder.
pub(super) struct BoundFunction {
    pub(super) names: &'static [&'static str],
    pub(super) bind: fn(&FunctionCall) -> Bound<Typed>,
}

/// A call whose arguments are already bound.
#[derive(Debug, Clone)]
pub(crate) struct FunctionCall {
    pub(crate) name: String,
    pub(crate) arguments: Vec<Typed>,
    pub(crate) place: TextPlace,
}

impl FunctionCall {
    /// The arguments, if their number is correct.
    pub(super) fn exactly<const N: usize>(&self) -> Bound<[Typed; N]> {
        self.arguments.clone().try_into().map_err(|_| self.wrong_count(&N.to_string()))
    }

    pub(super) fn wrong_count(&self, wanted: &str) -> Refusal {
        let found = self.arguments.len();
        Refusal::new(format!("`{}` takes {wanted} arguments, not {found}", self.name), self.place)
    }

    /// The refusal for arguments of unsupported types.
    pub(super) fn wrong_types(&self, hint: &str) -> Refusal {
        let kinds: Vec<_> = self.arguments.iter().map(|argument| argument.kind.to_string()).collect();
        Refusal::new(format!("there is no `{}({})`", self.name, kinds.join(", ")), self.place).hint(hint)
    }

    /// An argument that must be a string literal.
    pub(super) fn known_text(&self, at: usize) -> Bound<&str> {
        let text = self.arguments.get(at).and_then(Typed::known_value).and_then(|datum| datum.as_text());
        text.ok_or_else(|| {
            let place = self.arguments.get(at).map_or(self.place, |argument| argument.place);
            Refusal::new(
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
        moments::FUNCTIONS,
        formats::FUNCTIONS,
        lists::FUNCTIONS,
        json::FUNCTIONS,
        conditional::FUNCTIONS,
    ]
}

/// The names of all functions.
pub(crate) fn names() -> Vec<&'static str> {
    let bound = groups().into_iter().flatten().flat_map(|function| function.names);
    bound.chain(plain::names()).copied().chain(["mod"]).collect()
}

/// Binds a call; `None` if there is no function with that name.
pub(crate) fn bind_function(call: &FunctionCall) -> Option<Bound<Typed>> {
    let name = call.name.as_str();
    if name == "mod" {
        return Some(call.exactly().and_then(|[left, right]| {
            operators::arithmetic(operators::Arithmetic::Remainder, left, right, call.place)
        }));
    }
    if let Some(bound) = plain::bind(call) {
        return Some(bound.and_then(folded));
    }
    let function = groups().into_iter().flatten().find(|function| function.names.contains(&name))?;
    Some((function.bind)(call).and_then(folded))
}
