//! `GROUP BY`.

use sqlparser::ast::{Expr, GroupByExpr, Select, SelectItem, Spanned as _};

use super::QueryBinder;
use super::called_functions::CalledFunctions;
use super::expressions::written_count;
use super::scope::{GroupKeys, NameScope, QueryClause};
use super::windows::check_sortable;
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::ExpressionNode;

/// The grouping of a query.
#[derive(Debug, Clone)]
pub(super) struct BoundGrouping {
    pub(super) keys: GroupKeys,
    /// The text of `GROUP BY`, empty if all rows are one group.
    pub(super) text: String,
}

impl QueryBinder<'_> {
    /// The grouping of a query; `None` if it is not grouped.
    pub(super) fn bind_grouping(
        &mut self,
        select: &Select,
        has_aggregates: bool,
        scope: &NameScope<'_>,
    ) -> BindResult<Option<BoundGrouping>> {
        let place = QueryPosition::from(select.select_token.0.span);
        let written: Vec<Expr> = match &select.group_by {
            GroupByExpr::All(modifiers) if modifiers.is_empty() => grouped_by_all(&select.projection, place)?,
            GroupByExpr::Expressions(written, modifiers) if modifiers.is_empty() => written.clone(),
            _ => return Err(QueryRefusal::new("this form of `GROUP BY` is not supported", place)),
        };
        let is_grouped =
            has_aggregates || !written.is_empty() || matches!(select.group_by, GroupByExpr::All(_));
        if !is_grouped && select.having.is_none() {
            return Ok(None);
        }
        let scope = scope.in_clause(QueryClause::GroupBy);
        let (mut keys, mut texts) = (GroupKeys::default(), Vec::new());
        for expression in written {
            let expression = entry(&expression, &select.projection)?;
            let typed = check_sortable(self.bind_expression(&expression, &scope)?, "GROUP BY")?;
            if !typed.uses_rows() {
                return Err(QueryRefusal::new("the query is grouped by a constant", typed.place)
                    .hint("remove it from `GROUP BY`, or from the select list if it is `GROUP BY ALL`"));
            }
            keys.written.push(expression.to_string());
            if let ExpressionNode::Leaf(leaf) = &typed.node {
                keys.columns.push(leaf.sql.clone());
            }
            if let Expr::Identifier(name) = &expression
                && let Some((_, meant)) = scope.alias(&name.value)
            {
                keys.written.push(meant.to_string());
            }
            texts.push(self.emitted.expression_sql(&typed)?);
        }
        let text = if texts.is_empty() { String::new() } else { format!(" GROUP BY {}", texts.join(", ")) };
        Ok(Some(BoundGrouping { keys, text }))
    }
}

/// The grouping expression; a number refers to an entry of the select list.
fn entry(expression: &Expr, projection: &[SelectItem]) -> BindResult<Expr> {
    if matches!(expression, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_)) {
        return Err(QueryRefusal::new(
            "`ROLLUP`, `CUBE` and `GROUPING SETS` are not supported",
            expression.span(),
        )
        .hint("combine queries with different groups with `UNION ALL`"));
    }
    let Some(number) = written_count(expression) else { return Ok(expression.clone()) };
    let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    match at.and_then(|at| projection.get(at)) {
        Some(SelectItem::UnnamedExpr(found) | SelectItem::ExprWithAlias { expr: found, .. }) => {
            Ok(found.clone())
        }
        _ => Err(QueryRefusal::new(format!("there is no column {number} to group by"), expression.span())),
    }
}

/// `GROUP BY ALL`: the entries of the select list without aggregate functions.
fn grouped_by_all(projection: &[SelectItem], place: QueryPosition) -> BindResult<Vec<Expr>> {
    let mut keys = Vec::new();
    for entry in projection {
        match entry {
            SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
                if !CalledFunctions::in_expressions(expression).of_groups {
                    keys.push(expression.clone());
                }
            }
            _ => {
                return Err(QueryRefusal::new("`GROUP BY ALL` is not supported with `*`", place)
                    .hint("list the columns"));
            }
        }
    }
    Ok(keys)
}
