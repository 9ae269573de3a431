//! `GROUP BY`.

use sqlparser::ast::{Expr, GroupByExpr, Select, SelectItem, Spanned as _};

use super::Binder;
use super::detect::CalledFunctions;
use super::expressions::written_count;
use super::scope::{Clause, GroupKeys, Scope};
use super::windows::ordered;
use crate::expression::refusal::{Bound, Refusal, TextPlace};
use crate::expression::typed::Node;

/// The grouping of a query.
#[derive(Debug, Clone)]
pub(super) struct Grouping {
    pub(super) keys: GroupKeys,
    /// The text of `GROUP BY`, empty if all rows are one group.
    pub(super) text: String,
}

impl Binder<'_> {
    /// The grouping of a query; `None` if it is not grouped.
    pub(super) fn bind_grouping(
        &mut self,
        select: &Select,
        has_aggregates: bool,
        scope: &Scope<'_>,
    ) -> Bound<Option<Grouping>> {
        let place = TextPlace::from(select.select_token.0.span);
        let written: Vec<Expr> = match &select.group_by {
            GroupByExpr::All(modifiers) if modifiers.is_empty() => grouped_by_all(&select.projection, place)?,
            GroupByExpr::Expressions(written, modifiers) if modifiers.is_empty() => written.clone(),
            _ => return Err(Refusal::new("this form of `GROUP BY` is not supported", place)),
        };
        let is_grouped =
            has_aggregates || !written.is_empty() || matches!(select.group_by, GroupByExpr::All(_));
        if !is_grouped && select.having.is_none() {
            return Ok(None);
        }
        let scope = scope.within(Clause::GroupBy);
        let (mut keys, mut texts) = (GroupKeys::default(), Vec::new());
        for expression in written {
            let expression = entry(&expression, &select.projection)?;
            let typed = ordered(self.bind_expression(&expression, &scope)?, "GROUP BY")?;
            if !typed.uses_rows() {
                return Err(Refusal::new("the query is grouped by a constant", typed.place)
                    .hint("remove it from `GROUP BY`, or from the select list if it is `GROUP BY ALL`"));
            }
            keys.written.push(expression.to_string());
            if let Node::Leaf(leaf) = &typed.node {
                keys.columns.push(leaf.sql.clone());
            }
            if let Expr::Identifier(name) = &expression
                && let Some((_, meant)) = scope.alias(&name.value)
            {
                keys.written.push(meant.to_string());
            }
            texts.push(self.emitted.sql(&typed)?);
        }
        let text = if texts.is_empty() { String::new() } else { format!(" GROUP BY {}", texts.join(", ")) };
        Ok(Some(Grouping { keys, text }))
    }
}

/// The grouping expression; a number refers to an entry of the select list.
fn entry(expression: &Expr, projection: &[SelectItem]) -> Bound<Expr> {
    if matches!(expression, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_)) {
        return Err(Refusal::new(
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
        _ => Err(Refusal::new(format!("there is no column {number} to group by"), expression.span())),
    }
}

/// `GROUP BY ALL`: the entries of the select list without aggregate functions.
fn grouped_by_all(projection: &[SelectItem], place: TextPlace) -> Bound<Vec<Expr>> {
    let mut keys = Vec::new();
    for entry in projection {
        match entry {
            SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
                if !CalledFunctions::of(expression).of_groups {
                    keys.push(expression.clone());
                }
            }
            _ => {
                return Err(
                    Refusal::new("`GROUP BY ALL` is not supported with `*`", place).hint("list the columns")
                );
            }
        }
    }
    Ok(keys)
}
