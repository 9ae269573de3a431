//! Expressions whose types are known.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::refusal::QueryPosition;
use crate::values::cast::CastMode;
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

/// The arguments of a function. None of them is null, unless the function handles nulls.
pub(crate) type EvaluatedArguments<'a, 'd> = &'a [Cow<'d, Datum>];

/// The implementation of a function; the error is what is wrong with its arguments.
pub(crate) type ComputeFn = Arc<dyn Fn(EvaluatedArguments<'_, '_>) -> Result<Datum, String> + Send + Sync>;

/// An expression and its type.
#[derive(Debug, Clone)]
pub(crate) struct TypedExpression {
    pub(crate) node: ExpressionNode,
    pub(crate) kind: SqlType,
    pub(crate) place: QueryPosition,
}

/// The kinds of expressions.
#[derive(Debug, Clone)]
pub(crate) enum ExpressionNode {
    /// A value that SQLite provides: a column, an aggregate, a subquery.
    Leaf(SqliteValue),
    /// An argument of a function that was made from an expression.
    Argument(usize),
    /// A literal of the query: it takes the type that its context needs.
    Literal(Datum),
    Constant(Datum),
    Cast(Box<TypedExpression>, CastMode),
    And(Vec<TypedExpression>),
    Or(Vec<TypedExpression>),
    Not(Box<TypedExpression>),
    Compare(ComparisonKind, Box<TypedExpression>, Box<TypedExpression>),
    IsNull(Box<TypedExpression>),
    In(Box<TypedExpression>, Vec<TypedExpression>),
    Case(Vec<(TypedExpression, TypedExpression)>, Option<Box<TypedExpression>>),
    Coalesce(Vec<TypedExpression>),
    Call(FunctionNode),
}

/// A value that SQLite provides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqliteValue {
    /// The SQL text of the value.
    pub(crate) sql: String,
    /// The SQL text of its JSON as in the input.
    pub(crate) raw: Option<String>,
    /// A note about its values for messages about its type.
    pub(crate) note: Option<String>,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComparisonKind {
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
pub(crate) struct FunctionNode {
    pub(crate) computation: ComputeFn,
    pub(crate) arguments: Vec<TypedExpression>,
    pub(crate) nulls: NullRule,
    pub(crate) is_repeatable: bool,
}

impl fmt::Debug for FunctionNode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Call").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

impl TypedExpression {
    pub(crate) fn constant(datum: Datum, kind: SqlType, place: QueryPosition) -> Self {
        Self { node: ExpressionNode::Constant(datum), kind, place }
    }

    pub(crate) fn leaf(sql: String, kind: SqlType, place: QueryPosition) -> Self {
        Self { node: ExpressionNode::Leaf(SqliteValue { sql, raw: None, note: None }), kind, place }
    }

    /// A call that returns null if an argument is null.
    pub(crate) fn call(
        computation: impl Fn(EvaluatedArguments<'_, '_>) -> Result<Datum, String> + Send + Sync + 'static,
        arguments: Vec<Self>,
        kind: SqlType,
        place: QueryPosition,
    ) -> Self {
        let computation: ComputeFn = Arc::new(computation);
        let call = FunctionNode { computation, arguments, nulls: NullRule::GiveNull, is_repeatable: true };
        Self { node: ExpressionNode::Call(call), kind, place }
    }

    /// A call that handles nulls.
    pub(crate) fn call_with_nulls(
        computation: impl Fn(EvaluatedArguments<'_, '_>) -> Result<Datum, String> + Send + Sync + 'static,
        arguments: Vec<Self>,
        kind: SqlType,
        place: QueryPosition,
    ) -> Self {
        let computation: ComputeFn = Arc::new(computation);
        let call = FunctionNode { computation, arguments, nulls: NullRule::PassOn, is_repeatable: true };
        Self { node: ExpressionNode::Call(call), kind, place }
    }

    pub(crate) fn not(self) -> Self {
        let place = self.place;
        Self { node: ExpressionNode::Not(Box::new(self)), kind: SqlType::Boolean, place }
    }

    /// The value, if it is known before any row is read.
    pub(crate) fn known_value(&self) -> Option<&Datum> {
        match &self.node {
            ExpressionNode::Constant(datum) | ExpressionNode::Literal(datum) => Some(datum),
            _ => None,
        }
    }

    /// The text of a string literal.
    pub(crate) fn literal_text(&self) -> Option<&str> {
        match &self.node {
            ExpressionNode::Literal(Datum::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_literal(&self) -> bool {
        matches!(self.node, ExpressionNode::Literal(_))
    }

    /// The JSON text of a column as in the input.
    pub(crate) fn raw(&self) -> Option<&str> {
        match &self.node {
            ExpressionNode::Leaf(leaf) => leaf.raw.as_deref(),
            _ => None,
        }
    }

    /// A note about the values of a column.
    pub(crate) fn note(&self) -> Option<&str> {
        match &self.node {
            ExpressionNode::Leaf(leaf) => leaf.note.as_deref(),
            _ => None,
        }
    }

    /// Whether any part of it depends on a row.
    pub(crate) fn uses_rows(&self) -> bool {
        matches!(self.node, ExpressionNode::Leaf(_) | ExpressionNode::Argument(_))
            || self.parts().into_iter().any(Self::uses_rows)
    }

    /// Its direct subexpressions.
    pub(crate) fn parts(&self) -> Vec<&Self> {
        match &self.node {
            ExpressionNode::Leaf(_)
            | ExpressionNode::Argument(_)
            | ExpressionNode::Literal(_)
            | ExpressionNode::Constant(_) => Vec::new(),
            ExpressionNode::Cast(part, _) | ExpressionNode::Not(part) | ExpressionNode::IsNull(part) => {
                vec![part]
            }
            ExpressionNode::And(parts) | ExpressionNode::Or(parts) | ExpressionNode::Coalesce(parts) => {
                parts.iter().collect()
            }
            ExpressionNode::Compare(_, left, right) => vec![left, right],
            ExpressionNode::In(value, list) => std::iter::once(&**value).chain(list).collect(),
            ExpressionNode::Case(branches, otherwise) => {
                let branches = branches.iter().flat_map(|(condition, result)| [condition, result]);
                branches.chain(otherwise.as_deref()).collect()
            }
            ExpressionNode::Call(call) => call.arguments.iter().collect(),
        }
    }

    /// Its direct subexpressions, for modification.
    pub(crate) fn parts_mut(&mut self) -> Vec<&mut Self> {
        match &mut self.node {
            ExpressionNode::Leaf(_)
            | ExpressionNode::Argument(_)
            | ExpressionNode::Literal(_)
            | ExpressionNode::Constant(_) => Vec::new(),
            ExpressionNode::Cast(part, _) | ExpressionNode::Not(part) | ExpressionNode::IsNull(part) => {
                vec![part]
            }
            ExpressionNode::And(parts) | ExpressionNode::Or(parts) | ExpressionNode::Coalesce(parts) => {
                parts.iter_mut().collect()
            }
            ExpressionNode::Compare(_, left, right) => vec![left, right],
            ExpressionNode::In(value, list) => std::iter::once(&mut **value).chain(list).collect(),
            ExpressionNode::Case(branches, otherwise) => {
                let branches = branches.iter_mut().flat_map(|(condition, result)| [condition, result]);
                branches.chain(otherwise.as_deref_mut()).collect()
            }
            ExpressionNode::Call(call) => call.arguments.iter_mut().collect(),
        }
    }
}
