//! Expressions whose types are known.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::refusal::TextPlace;
use crate::values::cast::CastMode;
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

/// The arguments of a function. None of them is null, unless the function handles nulls.
pub(crate) type Arguments<'a, 'd> = &'a [Cow<'d, Datum>];

/// The implementation of a function; the error is what is wrong with its arguments.
pub(crate) type Computation = Arc<dyn Fn(Arguments<'_, '_>) -> Result<Datum, String> + Send + Sync>;

/// An expression and its type.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub(crate) node: Node,
    pub(crate) kind: SqlType,
    pub(crate) place: TextPlace,
}

/// The kinds of expressions.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A value that SQLite provides: a column, an aggregate, a subquery.
    Leaf(Leaf),
    /// An argument of a function that was made from an expression.
    Argument(usize),
    /// A literal of the query: it takes the type that its context needs.
    Literal(Datum),
    Constant(Datum),
    Cast(Box<Typed>, CastMode),
    And(Vec<Typed>),
    Or(Vec<Typed>),
    Not(Box<Typed>),
    Compare(Operator, Box<Typed>, Box<Typed>),
    IsNull(Box<Typed>),
    In(Box<Typed>, Vec<Typed>),
    Case(Vec<(Typed, Typed)>, Option<Box<Typed>>),
    Coalesce(Vec<Typed>),
    Call(Call),
}

/// A value that SQLite provides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// The SQL text of the value.
    pub(crate) sql: String,
    /// The SQL text of its JSON as in the input.
    pub(crate) raw: Option<String>,
    /// A note about its values for messages about its type.
    pub(crate) note: Option<String>,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    /// Null is compared like any other value.
    Distinct,
    NotDistinct,
}

/// How a function handles null arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NullRule {
    /// Its result is null.
    GiveNull,
    /// The function receives them.
    PassOn,
}

/// A call of one of our functions.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) computation: Computation,
    pub(crate) arguments: Vec<Typed>,
    pub(crate) nulls: NullRule,
    pub(crate) is_repeatable: bool,
}

impl fmt::Debug for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Call").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

impl Typed {
    pub(crate) fn constant(datum: Datum, kind: SqlType, place: TextPlace) -> Self {
        Self { node: Node::Constant(datum), kind, place }
    }

    pub(crate) fn leaf(sql: String, kind: SqlType, place: TextPlace) -> Self {
        Self { node: Node::Leaf(Leaf { sql, raw: None, note: None }), kind, place }
    }

    /// A call that returns null if an argument is null.
    pub(crate) fn call(
        computation: impl Fn(Arguments<'_, '_>) -> Result<Datum, String> + Send + Sync + 'static,
        arguments: Vec<Self>,
        kind: SqlType,
        place: TextPlace,
    ) -> Self {
        let computation: Computation = Arc::new(computation);
        let call = Call { computation, arguments, nulls: NullRule::GiveNull, is_repeatable: true };
        Self { node: Node::Call(call), kind, place }
    }

    /// A call that handles nulls.
    pub(crate) fn call_with_nulls(
        computation: impl Fn(Arguments<'_, '_>) -> Result<Datum, String> + Send + Sync + 'static,
        arguments: Vec<Self>,
        kind: SqlType,
        place: TextPlace,
    ) -> Self {
        let computation: Computation = Arc::new(computation);
        let call = Call { computation, arguments, nulls: NullRule::PassOn, is_repeatable: true };
        Self { node: Node::Call(call), kind, place }
    }

    pub(crate) fn not(self) -> Self {
        let place = self.place;
        Self { node: Node::Not(Box::new(self)), kind: SqlType::Boolean, place }
    }

    /// The value, if it is known before any row is read.
    pub(crate) fn known_value(&self) -> Option<&Datum> {
        match &self.node {
            Node::Constant(datum) | Node::Literal(datum) => Some(datum),
            _ => None,
        }
    }

    /// The text of a string literal.
    pub(crate) fn literal_text(&self) -> Option<&str> {
        match &self.node {
            Node::Literal(Datum::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_literal(&self) -> bool {
        matches!(self.node, Node::Literal(_))
    }

    /// The JSON text of a column as in the input.
    pub(crate) fn raw(&self) -> Option<&str> {
        match &self.node {
            Node::Leaf(leaf) => leaf.raw.as_deref(),
            _ => None,
        }
    }

    /// A note about the values of a column.
    pub(crate) fn note(&self) -> Option<&str> {
        match &self.node {
            Node::Leaf(leaf) => leaf.note.as_deref(),
            _ => None,
        }
    }

    /// Whether any part of it depends on a row.
    pub(crate) fn uses_rows(&self) -> bool {
        matches!(self.node, Node::Leaf(_) | Node::Argument(_))
            || self.parts().into_iter().any(Self::uses_rows)
    }

    /// Its direct subexpressions.
    pub(crate) fn parts(&self) -> Vec<&Self> {
        match &self.node {
            Node::Leaf(_) | Node::Argument(_) | Node::Literal(_) | Node::Constant(_) => Vec::new(),
            Node::Cast(part, _) | Node::Not(part) | Node::IsNull(part) => vec![part],
            Node::And(parts) | Node::Or(parts) | Node::Coalesce(parts) => parts.iter().collect(),
            Node::Compare(_, left, right) => vec![left, right],
            Node::In(value, list) => std::iter::once(&**value).chain(list).collect(),
            Node::Case(branches, otherwise) => {
                let branches = branches.iter().flat_map(|(condition, result)| [condition, result]);
                branches.chain(otherwise.as_deref()).collect()
            }
            Node::Call(call) => call.arguments.iter().collect(),
        }
    }

    /// Its direct subexpressions, for modification.
    pub(crate) fn parts_mut(&mut self) -> Vec<&mut Self> {
        match &mut self.node {
            Node::Leaf(_) | Node::Argument(_) | Node::Literal(_) | Node::Constant(_) => Vec::new(),
            Node::Cast(part, _) | Node::Not(part) | Node::IsNull(part) => vec![part],
            Node::And(parts) | Node::Or(parts) | Node::Coalesce(parts) => parts.iter_mut().collect(),
            Node::Compare(_, left, right) => vec![left, right],
            Node::In(value, list) => std::iter::once(&mut **value).chain(list).collect(),
            Node::Case(branches, otherwise) => {
                let branches = branches.iter_mut().flat_map(|(condition, result)| [condition, result]);
                branches.chain(otherwise.as_deref_mut()).collect()
            }
            Node::Call(call) => call.arguments.iter_mut().collect(),
        }
    }
}
