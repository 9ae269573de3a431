//! Columns, and parts of values.

use sqlparser::ast::Spanned as _;
use sqlparser::ast::{AccessExpr, Expr, Ident, Subscript};

use super::QueryBinder;
use super::scope::{NameScope, ScopeColumn, dotted_name};
use crate::advice;
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{ExpressionNode, SqliteValue, TypedExpression};
use crate::scalars::{bind_element, bind_slice, bind_struct_field};
use crate::values::sql_type::SqlType;

/// A resolved name: the column, and how many parts of the name it used.
struct FoundColumn<'s> {
    column: ScopeColumn,
    parts: usize,
    scope: &'s NameScope<'s>,
}

impl QueryBinder<'_> {
    /// Binds a column, or a field of one.
    pub(super) fn bind_name(
        &mut self,
        parts: &[Ident],
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        let place = parts.first().map_or(QueryPosition::default(), |part| QueryPosition::from(part.span));
        let Some(found) = find_column(parts, scope, place)? else {
            if let [only] = parts
                && let Some((name, expression)) = scope.alias(&only.value).cloned()
            {
                // An entry cannot refer to its own name.
                let mut inner = scope.clone();
                inner.aliases.retain(|(alias, _)| *alias != name);
                return self.bind_expression(&expression, &inner);
            }
            return Err(unknown_column(parts, scope, place));
        };
        if let [only] = parts {
            check_alias(only, scope, place)?;
        }
        let FoundColumn { column, parts: used, scope: owner } = found;
        let is_key = |keys: &super::scope::GroupKeys| keys.columns.contains(&column.sql);
        if owner.groups.as_ref().is_some_and(|keys| !is_key(keys)) {
            let name = dotted_name(parts);
            return Err(QueryRefusal::new(
                format!("`{name}` is neither in `GROUP BY` nor inside an aggregate function"),
                place,
            )
            .hint(format!("add it to `GROUP BY`, or write `any_value({name})`")));
        }
        let leaf = SqliteValue { sql: column.sql, raw: column.raw, note: column.note };
        let mut typed = TypedExpression { node: ExpressionNode::Leaf(leaf), kind: column.kind, place };
        for field in parts.iter().skip(used) {
            typed = bind_struct_field(typed, &field.value, QueryPosition::from(field.span))?;
        }
        Ok(typed)
    }

    /// `x[1].name`.
    pub(super) fn bind_access(
        &mut self,
        root: &Expr,
        chain: &[AccessExpr],
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        // What looks like a field access may be the name of a column.
        let mut chain = chain;
        let mut typed = match root {
            Expr::Identifier(first) => {
                let mut names = vec![first.clone()];
                while let Some((AccessExpr::Dot(Expr::Identifier(name)), rest)) = chain.split_first() {
                    names.push(name.clone());
                    chain = rest;
                }
                self.bind_name(&names, scope)?
            }
            other => self.bind_expression(other, scope)?,
        };
        for access in chain {
            let place = QueryPosition::from(root.span());
            typed = match access {
                AccessExpr::Dot(Expr::Identifier(name)) => {
                    bind_struct_field(typed, &name.value, QueryPosition::from(name.span))?
                }
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let index = self.bind_expression(index, scope)?;
                    bind_element(typed, index, place)?
                }
                AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                    let mut bound = |bound: &Option<Expr>| {
                        bound.as_ref().map(|bound| self.bind_expression(bound, scope)).transpose()
                    };
                    let bounds = [bound(lower_bound)?, bound(upper_bound)?];
                    bind_slice(typed, bounds, place)?
                }
                _ => return Err(QueryRefusal::new("values have no such part", place)),
            };
        }
        Ok(typed)
    }
}

/// Finds a column in this query or in the outer queries.
fn find_column<'s>(
    parts: &[Ident],
    scope: &'s NameScope<'s>,
    place: QueryPosition,
) -> BindResult<Option<FoundColumn<'s>>> {
    let mut level = Some(scope);
    while let Some(scope) = level {
        if let Some((column, used)) = find_in(parts, scope, place)? {
            return Ok(Some(FoundColumn { column, parts: used, scope }));
        }
        // A name of the select list takes precedence over a column of an outer query.
        if parts.len() == 1 && parts.first().is_some_and(|name| scope.alias(&name.value).is_some()) {
            return Ok(None);
        }
        level = scope.parent;
    }
    Ok(None)
}

fn find_in(
    parts: &[Ident],
    scope: &NameScope<'_>,
    place: QueryPosition,
) -> BindResult<Option<(ScopeColumn, usize)>> {
    let Some((first, rest)) = parts.split_first() else { return Ok(None) };
    if let (Some(relation), Some(second)) = (scope.relation(&first.value), rest.first()) {
        if let Some(column) = relation.column(&second.value) {
            return Ok(Some((column.clone(), 2)));
        }
        if let Some(number) = row_number(relation, &second.value) {
            return Ok(Some((number, 2)));
        }
    }
    let found = scope.columns(&first.value);
    match found.as_slice() {
        [column] => Ok(Some(((*column).clone(), 1))),
        [] => {
            let numbers = scope.relations.iter().filter_map(|relation| row_number(relation, &first.value));
            Ok(numbers.map(|column| (column, 1)).next())
        }
        _ => {
            let message = format!("`{}` is a column of several tables", first.value);
            Err(QueryRefusal::new(message, place).hint("add the name of the table, such as `a.x`"))
        }
    }
}

/// The row number, if no column has that name.
fn row_number(relation: &super::scope::ScopeTable, name: &str) -> Option<ScopeColumn> {
    let is_number = name.eq_ignore_ascii_case("rowid") && relation.has_row_numbers;
    is_number.then(|| ScopeColumn {
        name: "rowid".to_owned(),
        kind: SqlType::BigInt,
        sql: format!("{}.rowid", relation.alias),
        raw: None,
        note: None,
        is_hidden: false,
    })
}

/// Rejects a name that means both a column and another entry of the select list.
fn check_alias(name: &Ident, scope: &NameScope<'_>, place: QueryPosition) -> BindResult<()> {
    let Some((_, expression)) = scope.alias(&name.value).filter(|_| scope.clause.is_ambiguous_name_allowed())
    else {
        return Ok(());
    };
    let last = match expression {
        Expr::Identifier(ident) => Some(ident),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    if last.is_some_and(|last| last.value.eq_ignore_ascii_case(&name.value)) {
        return Ok(());
    }
    let message = format!("`{}` is both a column and an alias in the select list", name.value);
    Err(QueryRefusal::new(message, place).hint("use a different alias in the select list"))
}

fn unknown_column(parts: &[Ident], scope: &NameScope<'_>, place: QueryPosition) -> QueryRefusal {
    let name = dotted_name(parts);
    let last = parts.last().map_or(name.as_str(), |part| part.value.as_str());
    let names = scope.column_names();
    if let [only] = parts
        && scope.relation(&only.value).is_some()
    {
        return QueryRefusal::new(format!("`{name}` is a table, not a column"), place)
            .hint("use one of its columns");
    }
    QueryRefusal::new(format!("no such column: {name}"), place).hint(advice::for_column(last, &names))
}
