//! `FROM`: tables, subqueries, lists and joins.

use rowmill_types::settings::TYPES;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Join, JoinConstraint, JoinOperator, ObjectName, Spanned as _,
    TableAlias, TableFactor, TableWithJoins,
};

use super::QueryBinder;
use super::expressions::single_name;
use super::outputs::QueryPurpose;
use super::parse_refusals::samples;
use super::scope::{NameScope, QueryClause, ScopeColumn, ScopeTable};
use super::tables::{query_columns, renamed};
use crate::expression::coerce::{as_condition, bind_comparison};
use crate::expression::emit::ElementTable;
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{ComparisonKind, ExpressionNode, SqliteValue, TypedExpression};
use crate::values::sql_type::SqlType;

/// The bound `FROM`: its text, and its tables.
#[derive(Debug, Clone, Default)]
pub(super) struct BoundFrom {
    pub(super) sql: String,
    pub(super) relations: Vec<ScopeTable>,
}

impl QueryBinder<'_> {
    pub(super) fn bind_from(
        &mut self,
        tables: &[TableWithJoins],
        parent: Option<&NameScope<'_>>,
    ) -> BindResult<BoundFrom> {
        let mut from = BoundFrom::default();
        for table in tables {
            let comma = if from.sql.is_empty() { "" } else { ", " };
            from.sql.push_str(comma);
            self.bind_joined(table, &mut from, parent)?;
        }
        Ok(from)
    }

    fn bind_joined(
        &mut self,
        table: &TableWithJoins,
        from: &mut BoundFrom,
        parent: Option<&NameScope<'_>>,
    ) -> BindResult<()> {
        self.bind_factor(&table.relation, from, parent)?;
        for join in &table.joins {
            self.bind_join(join, from, parent)?;
        }
        Ok(())
    }

    fn bind_factor(
        &mut self,
        factor: &TableFactor,
        from: &mut BoundFrom,
        parent: Option<&NameScope<'_>>,
    ) -> BindResult<()> {
        let place = QueryPosition::from(factor.span());
        let (relation, sql) = match factor {
            TableFactor::Table { name, alias, args: None, sample: None, .. } => {
                self.bind_table_name(name, alias.as_ref())?
            }
            TableFactor::Table { name, alias, args: Some(arguments), .. } => {
                check_unnest(name)?;
                self.bind_unnest(&plain_arguments(&arguments.args), alias.as_ref(), from, parent)?
            }
            TableFactor::Function { name, args, alias, .. } => {
                check_unnest(name)?;
                self.bind_unnest(&plain_arguments(args), alias.as_ref(), from, parent)?
            }
            TableFactor::UNNEST {
                alias, array_exprs, with_offset: false, with_ordinality: false, ..
            } => {
                let lists: Vec<_> = array_exprs.iter().collect();
                self.bind_unnest(&lists, alias.as_ref(), from, parent)?
            }
            TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                let bound = self.bind_query(subquery, parent, &QueryPurpose::Table)?;
                let sql_alias = self.alias();
                let columns = query_columns(&bound.columns, &sql_alias);
                let sql = format!("({}) AS {sql_alias}", bound.sql);
                let relation = ScopeTable { alias: sql_alias, name: None, columns, has_row_numbers: false };
                (renamed(relation, alias.as_ref())?, sql)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                let mut inner = BoundFrom::default();
                self.bind_joined(table_with_joins, &mut inner, parent)?;
                from.sql.push_str(&format!("({})", inner.sql));
                from.relations.extend(inner.relations);
                return Ok(());
            }
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                return Err(samples(place));
            }
            _ => {
                return Err(QueryRefusal::new("this is not allowed in `FROM`", place)
                    .hint("see `docs/sql.md` for what a query can use"));
            }
        };
        from.sql.push_str(&sql);
        from.relations.push(relation);
        Ok(())
    }

    /// Binds a table with a row for each element of a list.
    fn bind_unnest(
        &mut self,
        lists: &[&Expr],
        alias: Option<&TableAlias>,
        from: &BoundFrom,
        parent: Option<&NameScope<'_>>,
    ) -> BindResult<(ScopeTable, String)> {
        let [list] = lists else {
            return Err(QueryRefusal::new("`unnest` takes one list", QueryPosition::default()));
        };
        let scope = NameScope::new(from.relations.clone(), parent).in_clause(QueryClause::Join);
        let list = self.bind_expression(list, &scope)?;
        let (leaf, sql) = self.element_table(&list)?;
        let sql_alias = leaf.0;
        let column = ScopeColumn {
            name: "unnest".to_owned(),
            kind: leaf.1,
            sql: format!("{sql_alias}.value"),
            raw: None,
            note: None,
            is_hidden: false,
        };
        let name = Some("unnest".to_owned());
        let mut relation =
            ScopeTable { alias: sql_alias, name, columns: vec![column], has_row_numbers: false };
        // `FROM unnest(list) AS x` names the table, and also its column if that has no other name.
        if let (Some(alias), Some(column)) = (alias, relation.columns.first_mut()) {
            column.name.clone_from(&alias.name.value);
        }
        Ok((renamed(relation, alias)?, sql))
    }

    /// The table of a list's elements: its name, the elements' type, and the text for `FROM`.
    pub(super) fn element_table(
        &mut self,
        list: &TypedExpression,
    ) -> BindResult<((String, SqlType), String)> {
        let SqlType::List(item) = &list.kind else {
            let refusal = QueryRefusal::new(format!("`unnest` takes a list, not {}", list.kind), list.place);
            return Err(match list.kind {
                SqlType::Json => refusal.hint(format!(
                    "the column has values of several types; use {types} to read it as a list",
                    types = TYPES.with_value("x=JSON[]")
                )),
                _ => refusal,
            });
        };
        let item = (**item).clone();
        let name = format!("u{}", self.emitted.element_tables.len());
        self.emitted.element_tables.push(ElementTable { name: name.clone(), item: item.clone() });
        let alias = self.alias();
        let sql = format!("{name}({}) AS {alias}", self.emitted.expression_sql(list)?);
        Ok(((alias, item), sql))
    }

    fn bind_join(
        &mut self,
        join: &Join,
        from: &mut BoundFrom,
        parent: Option<&NameScope<'_>>,
    ) -> BindResult<()> {
        let place = QueryPosition::from(join.relation.span());
        let (word, constraint) = match &join.join_operator {
            JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => ("JOIN", constraint),
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => ("LEFT JOIN", constraint),
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                ("RIGHT JOIN", constraint)
            }
            JoinOperator::FullOuter(constraint) => ("FULL JOIN", constraint),
            JoinOperator::CrossJoin(constraint) => ("CROSS JOIN", constraint),
            _ => {
                return Err(QueryRefusal::new("this kind of join is not supported", place)
                    .hint("write `EXISTS (SELECT …)` or `NOT EXISTS (SELECT …)` for semi and anti joins"));
            }
        };
        let before = from.relations.len();
        from.sql.push_str(&format!(" {word} "));
        self.bind_factor(&join.relation, from, parent)?;
        let on = match constraint {
            JoinConstraint::None if word == "CROSS JOIN" => return Ok(()),
            JoinConstraint::None => return Err(QueryRefusal::new("a join needs `ON` or `USING`", place)),
            JoinConstraint::On(condition) => {
                let scope = NameScope::new(from.relations.clone(), parent).in_clause(QueryClause::Join);
                self.bind_expression(condition, &scope)?
            }
            JoinConstraint::Using(_) if matches!(word, "RIGHT JOIN" | "FULL JOIN") => {
                return Err(QueryRefusal::new(format!("`USING` with `{word}` is not supported"), place)
                    .hint("write `ON a.x = b.x`"));
            }
            JoinConstraint::Using(names) => {
                let names: Vec<_> = names
                    .iter()
                    .filter_map(|name| single_name(&name.0))
                    .map(|name| name.value.clone())
                    .collect();
                using(&names, from, before, place)?
            }
            JoinConstraint::Natural => {
                return Err(
                    QueryRefusal::new("`NATURAL JOIN` is not supported", place).hint("write `USING (x, y)`")
                );
            }
        };
        let on = as_condition(on)?;
        from.sql.push_str(&format!(" ON {}", self.emitted.expression_sql(&on)?));
        Ok(())
    }
}

/// Rejects functions in `FROM` that do not return the rows of a list.
fn check_unnest(name: &ObjectName) -> BindResult<()> {
    if single_name(&name.0).is_some_and(|name| name.value.eq_ignore_ascii_case("unnest")) {
        return Ok(());
    }
    let written = name.to_string();
    Err(QueryRefusal::new(format!("no such table function: {written}"), name.span())
        .hint(crate::advice::for_table(&written)))
}

fn plain_arguments(arguments: &[FunctionArg]) -> Vec<&Expr> {
    let plain = arguments.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    });
    plain.collect()
}

/// The condition of `USING`; the second column of each pair is hidden.
fn using(
    names: &[String],
    from: &mut BoundFrom,
    before: usize,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let mut conditions = Vec::new();
    for name in names {
        let (left, right) = from.relations.split_at_mut(before);
        let unknown = || QueryRefusal::new(format!("`{name}` of `USING` is not in both tables"), place);
        let visible = |column: &&ScopeColumn| !column.is_hidden && column.name.eq_ignore_ascii_case(name);
        let left = left.iter().flat_map(|relation| &relation.columns).find(visible).ok_or_else(unknown)?;
        let named = |column: &&mut ScopeColumn| column.name.eq_ignore_ascii_case(name);
        let right =
            right.iter_mut().flat_map(|relation| &mut relation.columns).find(named).ok_or_else(unknown)?;
        let leaf = |column: &ScopeColumn| {
            let leaf = SqliteValue { sql: column.sql.clone(), raw: None, note: column.note.clone() };
            TypedExpression { node: ExpressionNode::Leaf(leaf), kind: column.kind.clone(), place }
        };
        conditions.push(bind_comparison(ComparisonKind::Equal, leaf(left), leaf(right), place)?);
        right.is_hidden = true;
    }
    Ok(TypedExpression { node: ExpressionNode::And(conditions), kind: SqlType::Boolean, place })
}
