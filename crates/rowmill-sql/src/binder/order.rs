//! `ORDER BY` and `LIMIT`.

use sqlparser::ast::{
    Expr, LimitClause, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, OrderBySort, Query, Spanned as _,
    UnaryOperator,
};

use super::Binder;
use super::expressions::written_count;
use super::outputs::OutputItem;
use super::scope::{Clause, Scope};
use super::windows::ordered;
use crate::expression::refusal::{Bound, Refusal, TextPlace};
use crate::expression::typed::Typed;

/// What rows are sorted by.
#[derive(Debug, Clone)]
pub(super) struct SortKey {
    pub(super) by: SortTarget,
    /// Direction, and where nulls go.
    pub(super) direction: String,
}

#[derive(Debug, Clone)]
pub(super) enum SortTarget {
    /// An entry of the select list.
    Output(usize),
    Expression(Typed),
}

/// Nulls come last in both directions, unless it is said otherwise.
fn direction(options: &OrderByOptions, place: TextPlace) -> Bound<String> {
    let word = match &options.sort {
        None | Some(OrderBySort::Asc) => "ASC",
        Some(OrderBySort::Desc) => "DESC",
        Some(OrderBySort::Using(_)) => return Err(Refusal::new("`USING` is not taken here", place)),
    };
    let nulls = if options.nulls_first == Some(true) { "FIRST" } else { "LAST" };
    Ok(format!("{word} NULLS {nulls}"))
}

impl Binder<'_> {
    /// The terms of an `ORDER BY` inside of a call or a window.
    pub(super) fn order_terms(&mut self, order: &[OrderByExpr], scope: &Scope<'_>) -> Bound<String> {
        let mut terms = Vec::new();
        for term in order {
            let place = TextPlace::from(term.expr.span());
            let key = ordered(self.bind_expression(&term.expr, scope)?, "ORDER BY")?;
            terms.push(format!("{} {}", self.emitted.sql(&key)?, direction(&term.options, place)?));
        }
        Ok(terms.join(", "))
    }

    /// What the rows of a query are sorted by.
    pub(super) fn sort_keys(
        &mut self,
        order: Option<&OrderBy>,
        items: &[OutputItem],
        scope: Option<&Scope<'_>>,
    ) -> Bound<Vec<SortKey>> {
        let terms = match order.map(|order| &order.kind) {
            None => return Ok(Vec::new()),
            Some(OrderByKind::All(options)) => {
                let direction = direction(options, TextPlace::default())?;
                for item in items {
                    ordered(item.typed.clone(), "ORDER BY")?;
                }
                let keys = (0..items.len())
                    .map(|at| SortKey { by: SortTarget::Output(at), direction: direction.clone() });
                return Ok(keys.collect());
            }
            Some(OrderByKind::Expressions(terms)) => terms,
        };
        let mut keys = Vec::new();
        for term in terms {
            let place = TextPlace::from(term.expr.span());
            let by = match output_place(&term.expr, items, place)? {
                Some(at) => {
                    let item = items.get(at).map(|item| item.typed.clone());
                    item.map(|typed| ordered(Typed { place, ..typed }, "ORDER BY")).transpose()?;
                    SortTarget::Output(at)
                }
                None => match scope {
                    Some(scope) => {
                        let bound = self.bind_expression(&term.expr, &scope.within(Clause::OrderBy))?;
                        if is_written_value(&term.expr) {
                            return Err(Refusal::new("a constant sorts nothing", place)
                                .hint("name a column, or the number of one of the select list"));
                        }
                        SortTarget::Expression(ordered(bound, "ORDER BY")?)
                    }
                    None => {
                        return Err(Refusal::new("only columns of the result can be sorted by here", place)
                            .hint("put the query into `SELECT * FROM (…) ORDER BY …`"));
                    }
                },
            };
            keys.push(SortKey { by, direction: direction(&term.options, place)? });
        }
        Ok(keys)
    }
}

/// Whether an expression is a value as it is written, with or without a sign.
fn is_written_value(expression: &Expr) -> bool {
    match expression {
        Expr::Value(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => {
            is_written_value(inner)
        }
        _ => false,
    }
}

/// The entry of the select list that is sorted by: by its number, its name, or as it is written.
fn output_place(expression: &Expr, items: &[OutputItem], place: TextPlace) -> Bound<Option<usize>> {
    if let Some(number) = written_count(expression) {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let found = at.filter(|at| *at < items.len());
        let count = items.len();
        return found.map(Some).ok_or_else(|| {
            Refusal::new(format!("there is no column {number}: the result has {count}"), place)
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
pub(super) fn limit_text(query: &Query) -> Bound<String> {
    let count = |expression: &Expr, word: &str| {
        written_count(expression).filter(|count| *count <= i64::MAX.unsigned_abs()).ok_or_else(|| {
            Refusal::new(format!("behind `{word}` there must be a whole number"), expression.span())
        })
    };
    let (limit, offset) = match &query.limit_clause {
        None => return Ok(String::new()),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
        Some(LimitClause::LimitOffset { .. }) => {
            return Err(Refusal::new("`LIMIT … BY` is not taken here", TextPlace::default()));
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
