//! Translates expressions to SQLite: directly if it can compute them, otherwise by functions.

use rusqlite::types::Value;

use super::refusal::{BindResult, QueryRefusal};
use super::typed::{ComparisonKind, ExpressionNode, SqliteValue, TypedExpression};
use crate::aggregates::AggregateCall;
use crate::values::encoding::{encode_value, is_plain};
use crate::values::sql_type::SqlType;

/// The maximum number of arguments of a function in SQLite.
const MOST_ARGUMENTS: usize = 100;

/// An expression that became a separate function.
#[derive(Debug, Clone)]
pub(crate) struct ComputedFunction {
    pub(crate) name: String,
    /// The types of its arguments.
    pub(crate) arguments: Vec<SqlType>,
    pub(crate) body: TypedExpression,
    pub(crate) is_repeatable: bool,
}

/// A table function that returns the elements of lists.
#[derive(Debug, Clone)]
pub(crate) struct ElementTable {
    pub(crate) name: String,
    pub(crate) item: SqlType,
}

/// What must be registered with SQLite before it can run a query.
#[derive(Debug, Clone, Default)]
pub(crate) struct EmittedSql {
    pub(crate) functions: Vec<ComputedFunction>,
    pub(crate) aggregates: Vec<AggregateCall>,
    pub(crate) element_tables: Vec<ElementTable>,
    /// The aliases under which tables are scanned, with the names of the tables.
    pub(crate) scans: Vec<(String, &'static str)>,
    /// The values of the parameters `?1`, `?2` and so on.
    pub(crate) parameters: Vec<Value>,
}

impl EmittedSql {
    /// The text of an expression.
    pub(crate) fn expression_sql(&mut self, typed: &TypedExpression) -> BindResult<String> {
        Ok(match &typed.node {
            ExpressionNode::Leaf(leaf) => leaf.sql.clone(),
            ExpressionNode::Literal(datum) | ExpressionNode::Constant(datum) => {
                match encode_value(datum.clone(), &typed.kind) {
                    Value::Null => "NULL".to_owned(),
                    value => self.parameter(value),
                }
            }
            ExpressionNode::And(parts) => self.joined(parts, " AND ")?,
            ExpressionNode::Or(parts) => self.joined(parts, " OR ")?,
            ExpressionNode::Not(part) => format!("(NOT {})", self.expression_sql(part)?),
            ExpressionNode::IsNull(part) => format!("({} IS NULL)", self.expression_sql(part)?),
            ExpressionNode::Compare(operator, left, right) if is_simple(left) && is_simple(right) => {
                format!(
                    "({} {} {})",
                    self.expression_sql(left)?,
                    sign(*operator),
                    self.expression_sql(right)?
                )
            }
            ExpressionNode::In(value, list) if is_simple(value) && list.iter().all(is_simple) => {
                format!("({} IN ({}))", self.expression_sql(value)?, self.expressions_sql(list)?)
            }
            _ => self.computed(typed)?,
        })
    }

    /// The text of an expression that is a column of a table, if its values are texts or numbers to SQLite.
    pub(crate) fn plain_column<'t>(&self, typed: &'t TypedExpression) -> Option<&'t str> {
        let ExpressionNode::Leaf(leaf) = &typed.node else { return None };
        let (alias, _) = leaf.sql.split_once('.')?;
        let is_scanned = self.scans.iter().any(|(known, _)| known == alias);
        (is_scanned && is_plain(&typed.kind)).then_some(leaf.sql.as_str())
    }

    /// The texts of expressions, separated by commas.
    pub(crate) fn expressions_sql(&mut self, parts: &[TypedExpression]) -> BindResult<String> {
        let parts: Vec<_> = parts.iter().map(|part| self.expression_sql(part)).collect::<BindResult<_>>()?;
        Ok(parts.join(", "))
    }

    fn joined(&mut self, parts: &[TypedExpression], with: &str) -> BindResult<String> {
        let parts: Vec<_> = parts.iter().map(|part| self.expression_sql(part)).collect::<BindResult<_>>()?;
        Ok(format!("({})", parts.join(with)))
    }

    fn parameter(&mut self, value: Value) -> String {
        let known = self.parameters.iter().position(|known| *known == value);
        let at = known.unwrap_or_else(|| {
            self.parameters.push(value);
            self.parameters.len() - 1
        });
        format!("?{}", at + 1)
    }

    /// Makes a function of an expression, whose arguments are values that SQLite has.
    fn computed(&mut self, typed: &TypedExpression) -> BindResult<String> {
        let mut leaves = Vec::new();
        let mut body = typed.clone();
        let is_repeatable = replace_leaves(&mut body, &mut leaves);
        if leaves.len() > MOST_ARGUMENTS {
            return Err(QueryRefusal::new("an expression uses too many columns", typed.place)
                .hint("compute parts of it in a subquery"));
        }
        let name = format!("x{}", self.functions.len());
        let texts: Vec<_> = leaves.iter().map(|(leaf, _)| leaf.sql.clone()).collect();
        let arguments = leaves.into_iter().map(|(_, kind)| kind).collect();
        let call = format!("{name}({})", texts.join(", "));
        self.functions.push(ComputedFunction { name, arguments, body, is_repeatable });
        Ok(call)
    }
}

/// Replaces leaves by argument numbers; returns whether the expression is deterministic.
fn replace_leaves(typed: &mut TypedExpression, leaves: &mut Vec<(SqliteValue, SqlType)>) -> bool {
    if let ExpressionNode::Leaf(leaf) = &typed.node {
        let at = leaves.iter().position(|(known, _)| known.sql == leaf.sql).unwrap_or_else(|| {
            leaves.push((leaf.clone(), typed.kind.clone()));
            leaves.len() - 1
        });
        typed.node = ExpressionNode::Argument(at);
        return true;
    }
    let own = !matches!(&typed.node, ExpressionNode::Call(call) if !call.is_repeatable);
    let parts = typed.parts_mut().into_iter().map(|part| replace_leaves(part, leaves));
    parts.fold(own, |all, one| all && one)
}

/// Whether SQLite can compare its encoded values.
fn is_simple(typed: &TypedExpression) -> bool {
    typed.kind.is_ordered()
        && matches!(
            typed.node,
            ExpressionNode::Leaf(_) | ExpressionNode::Literal(_) | ExpressionNode::Constant(_)
        )
}

fn sign(operator: ComparisonKind) -> &'static str {
    match operator {
        ComparisonKind::Equal => "=",
        ComparisonKind::NotEqual => "<>",
        ComparisonKind::Less => "<",
        ComparisonKind::AtMost => "<=",
        ComparisonKind::Greater => ">",
        ComparisonKind::AtLeast => ">=",
        ComparisonKind::Distinct => "IS NOT",
        ComparisonKind::NotDistinct => "IS",
    }
}
