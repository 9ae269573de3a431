//! `ORDER BY` and `LIMIT`.

use std::fmt;

use sqlparser::ast::{
    Expr, LimitClause, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, OrderBySort, Query, Spanned as _,
    UnaryOperator,
};

use super::QueryBinder;
use super::expressions::written_count;
use super::outputs::OutputItem;
use super::scope::{NameScope, QueryClause};
use super::windows::check_sortable;
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::TypedExpression;

/// A sort key of rows.
#[derive(Debug, Clone)]
pub(super) struct SortKey {
    pub(super) by: SortTarget,
    pub(super) direction: SortDirection,
}

/// The direction of a sort, and the position of nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SortDirection {
    is_descending: bool,
    puts_nulls_first: bool,
}

#[derive(Debug, Clone)]
pub(super) enum SortTarget {
    /// An entry of the select list.
    Output(usize),
    Expression(TypedExpression),
}

impl SortDirection {
    /// Nulls come last in both directions, unless specified otherwise.
    fn of(options: &OrderByOptions, place: QueryPosition) -> BindResult<Self> {
        let is_descending = match &options.sort {
            None | Some(OrderBySort::Asc) => false,
            Some(OrderBySort::Desc) => true,
            Some(OrderBySort::Using(_)) => return Err(QueryRefusal::new("`USING` is not supported", place)),
        };
        Ok(Self { is_descending, puts_nulls_first: options.nulls_first == Some(true) })
    }

    fn word(self) -> &'static str {
        if self.is_descending { "DESC" } else { "ASC" }
    }

    /// A term for the first sort key, whose values are texts or numbers to SQLite. SQLite compares those in a
    /// fraction of the time if nulls are where it would put them, before everything else. So if nulls are to
    /// come last, they are replaced by bytes: to SQLite these are greater than any text or number, and greater
    /// than the empty bytes that encode `NaN`.
    pub(super) fn first_term(self, column: &str) -> String {
        if self.is_descending == self.puts_nulls_first {
            format!("coalesce({column}, x'00') {}", self.word())
        } else {
            format!("{column} {self}")
        }
    }
}

impl fmt::Display for SortDirection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nulls = if self.puts_nulls_first { "FIRST" } else { "LAST" };
        write!(out, "{} NULLS {nulls}", self.word())
    }
}

impl QueryBinder<'_> {
    /// The terms of an `ORDER BY` inside a call or a window.
    pub(super) fn order_terms(&mut self, order: &[OrderByExpr], scope: &NameScope<'_>) -> BindResult<String> {
        let mut terms = Vec::new();
        for term in order {
            let place = QueryPosition::from(term.expr.span());
            let key = check_sortable(self.bind_expression(&term.expr, scope)?, "ORDER BY")?;
            terms.push(format!(
                "{} {}",
                self.emitted.expression_sql(&key)?,
                SortDirection::of(&term.options, place)?
            ));
        }
        Ok(terms.join(", "))
    }

    /// The sort keys of a query's rows.
    pub(super) fn sort_keys(
        &mut self,
        order: Option<&OrderBy>,
        items: &[OutputItem],
        scope: Option<&NameScope<'_>>,
    ) -> BindResult<Vec<SortKey>> {
        let terms = match order.map(|order| &order.kind) {
            None => return Ok(Vec::new()),
            Some(OrderByKind::All(options)) => {
                let direction = SortDirection::of(options, QueryPosition::default())?;
                for item in items {
                    check_sortable(item.typed.clone(), "ORDER BY")?;
                }
                let keys = (0..items.len()).map(|at| SortKey { by: SortTarget::Output(at), direction });
                return Ok(keys.collect());
            }
            Some(OrderByKind::Expressions(terms)) => terms,
        };
        let mut keys = Vec::new();
        for term in terms {
            let place = QueryPosition::from(term.expr.span());
            let by = match output_place(&term.expr, items, place)? {
                Some(at) => {
                    let item = items.get(at).map(|item| item.typed.clone());
                    item.map(|typed| check_sortable(TypedExpression { place, ..typed }, "ORDER BY"))
                        .transpose()?;
                    SortTarget::Output(at)
                }
                None => match scope {
                    Some(scope) => {
                        let bound =
                            self.bind_expression(&term.expr, &scope.in_clause(QueryClause::OrderBy))?;
                        if is_written_value(&term.expr) {
                            return Err(QueryRefusal::new("a constant cannot be sorted by", place)
                                .hint("use a column, or its number in the select list"));
                        }
                        SortTarget::Expression(check_sortable(bound, "ORDER BY")?)
                    }
                    None => {
                        return Err(QueryRefusal::new(
                            "only columns of the result can be sorted by here",
                            place,
                        )
                        .hint("wrap the query in `SELECT * FROM (…) ORDER BY …`"));
                    }
                },
            };
            keys.push(SortKey { by, direction: SortDirection::of(&term.options, place)? });
        }
        Ok(keys)
    }
}

/// Whether an expression is a literal, with or without a sign.
fn is_written_value(expression: &Expr) -> bool {
    match expression {
        Expr::Value(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
            is_written_value(inner)
        }
        _ => false,
    }
}

/// The entry of the select list to sort by, given by its number, its name, or its expression.
fn output_place(expression: &Expr, items: &[OutputItem], place: QueryPosition) -> BindResult<Option<usize>> {
    if let Some(number) = written_count(expression) {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let found = at.filter(|at| *at < items.len());
        let count = items.len();
        return found.map(Some).ok_or_else(|| {
            QueryRefusal::new(format!("there is no column {number}: the result has {count}"), place)
        });
    }
    if let Expr::Identifier(name) = expression {
        let named = |item: &OutputItem| item.name.eq_ignore_ascii_case(&name.value);
        let mut found = items.iter().enumerate().filter(|(_, item)| named(item)).map(|(at, _)| at);
        let first = found.next();
        let is_clear = found.next().is_none();
        return Ok(first.filter(|_| is_clear));
    }
    Ok(items.iter().position(|item| item.written.as_ref() == Some(expression)))
}

/// The text of `LIMIT` and `OFFSET`.
pub(super) fn limit_text(query: &Query) -> BindResult<String> {
    let count = |expression: &Expr, word: &str| {
        written_count(expression).filter(|count| *count <= i64::MAX.unsigned_abs()).ok_or_else(|| {
            QueryRefusal::new(format!("`{word}` must be followed by a whole number"), expression.span())
        })
    };
    let (limit, offset) = match &query.limit_clause {
        None => return Ok(String::new()),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
        Some(LimitClause::LimitOffset { .. }) => {
            return Err(QueryRefusal::new("`LIMIT … BY` is not supported", QueryPosition::default()));
        }
    };
    let limit = limit.map(|limit| count(limit, "LIMIT")).transpose()?;
    let offset = offset.map(|offset| count(offset, "OFFSET")).transpose()?;
    let limit = limit.map_or("-1".to_owned(), |limit| limit.to_string());
    Ok(match offset {
        Some(offset) => format!(" LIMIT {limit} OFFSET {offset}"),
        None => format!(" LIMIT {limit}"),
    })
}
