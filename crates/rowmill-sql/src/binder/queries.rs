//! Queries: `WITH`, the query itself, and the clauses after it.

use sqlparser::ast::{Cte, Query, SetExpr, SetOperator, SetQuantifier, Spanned as _, TableAlias, Values};

use super::QueryBinder;
use super::order::{SortTarget, limit_text};
use super::outputs::{BoundQuery, OutputColumn, OutputItem, QueryPurpose};
use super::scope::{NameScope, QueryClause};
use super::select::SelectTail;
use super::select_text::{order_text, passed_on_columns};
use super::tables::CommonTable;
use crate::expression::coerce::{cast_to, common_argument_type};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::TypedExpression;
use crate::values::cast::CastMode;
use crate::values::sql_type::SqlType;

impl QueryBinder<'_> {
    /// Binds a query; `parent` is the scope of the outer query, if there is one.
    pub(super) fn bind_query(
        &mut self,
        query: &Query,
        parent: Option<&NameScope<'_>>,
        purpose: &QueryPurpose,
    ) -> BindResult<BoundQuery> {
        let place = QueryPosition::from(query.span());
        let has_other = query.fetch.is_some()
            || !query.locks.is_empty()
            || query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty();
        if has_other {
            return Err(QueryRefusal::new("this form of query is not supported", place)
                .hint("use `LIMIT` and `OFFSET`"));
        }
        let outer = self.common.len();
        let mut with = Vec::new();
        if let Some(tables) = &query.with {
            for table in &tables.cte_tables {
                with.push(self.bind_common(table, tables.recursive, parent)?);
            }
        }
        let mut bound = self.bind_body(query, parent, purpose)?;
        self.common.truncate(outer);
        if !with.is_empty() {
            bound.sql = format!("WITH {} {}", with.join(", "), bound.sql);
        }
        Ok(bound)
    }

    fn bind_body(
        &mut self,
        query: &Query,
        parent: Option<&NameScope<'_>>,
        purpose: &QueryPurpose,
    ) -> BindResult<BoundQuery> {
        let limit = limit_text(query)?;
        if let SetExpr::Select(select) = &*query.body {
            let tail = SelectTail { order: query.order_by.as_ref(), limit };
            return self.bind_select(select, tail, parent, purpose);
        }
        if query.order_by.is_none() && limit.is_empty() {
            return self.bind_set(&query.body, parent, purpose);
        }
        let inner = match purpose {
            QueryPurpose::Result => &QueryPurpose::Table,
            other => other,
        };
        let bound = self.bind_set(&query.body, parent, inner)?;
        let alias = self.alias();
        let item = |(at, column): (usize, &OutputColumn)| {
            let typed = TypedExpression::leaf(
                format!("{alias}.c{at}"),
                column.kind.clone(),
                QueryPosition::default(),
            );
            OutputItem { name: column.name.clone(), typed, written: None }
        };
        let items: Vec<_> = bound.columns.iter().enumerate().map(item).collect();
        let keys = self.sort_keys(query.order_by.as_ref(), &items, None)?;
        let keys = keys.iter().filter_map(|key| match key.by {
            SortTarget::Output(at) => Some(format!("{alias}.c{at} {}", key.direction)),
            SortTarget::Expression(_) => None,
        });
        let order = order_text(&keys.collect::<Vec<_>>());
        let listed = passed_on_columns(&bound.columns, &alias, purpose);
        let sql = format!("SELECT {listed} FROM ({}) AS {alias}{order}{limit}", bound.sql);
        Ok(BoundQuery { sql, columns: bound.columns, is_single_row: false })
    }

    /// Binds anything that returns rows, without an order.
    pub(super) fn bind_set(
        &mut self,
        body: &SetExpr,
        parent: Option<&NameScope<'_>>,
        purpose: &QueryPurpose,
    ) -> BindResult<BoundQuery> {
        match body {
            SetExpr::Select(select) => {
                let tail = SelectTail { order: None, limit: String::new() };
                self.bind_select(select, tail, parent, purpose)
            }
            SetExpr::Query(query) => self.bind_query(query, parent, purpose),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                self.bind_operation([left, right], (*op, *set_quantifier), parent, purpose)
            }
            SetExpr::Values(values) => self.bind_values(values, parent, purpose),
            other => Err(QueryRefusal::new("a query may only read", QueryPosition::from(other.span()))),
        }
    }

    fn bind_values(
        &mut self,
        values: &Values,
        parent: Option<&NameScope<'_>>,
        purpose: &QueryPurpose,
    ) -> BindResult<BoundQuery> {
        let scope = NameScope::new(Vec::new(), parent).in_clause(QueryClause::Values);
        let mut rows: Vec<Vec<TypedExpression>> = Vec::new();
        for row in &values.rows {
            let row = row.content.iter().map(|value| self.bind_expression(value, &scope));
            rows.push(row.collect::<BindResult<_>>()?);
        }
        let count = rows.first().map_or(0, Vec::len);
        if let Some(place) =
            rows.iter().find(|row| row.len() != count).and_then(|row| row.first()).map(|value| value.place)
        {
            return Err(QueryRefusal::new("all rows of `VALUES` must have the same number of values", place));
        }
        let mut kinds = Vec::new();
        for at in 0..count {
            let column: Vec<_> = rows.iter().filter_map(|row| row.get(at)).collect();
            kinds.push(match purpose {
                QueryPurpose::TypedTable(kinds) => kinds.get(at).cloned().unwrap_or(SqlType::Null),
                _ => common_argument_type(&column, "a column of `VALUES`")?,
            });
        }
        let mut texts = Vec::new();
        for row in rows {
            let row: Vec<_> = row
                .into_iter()
                .zip(&kinds)
                .map(|(value, kind)| cast_to(value, kind, CastMode::Fail))
                .collect::<BindResult<_>>()?;
            texts.push(format!("({})", self.emitted.expressions_sql(&row)?));
        }
        let alias = self.alias();
        let listed: Vec<_> = (0..count).map(|at| format!("{alias}.column{} AS c{at}", at + 1)).collect();
        let sql = format!("SELECT {} FROM (VALUES {}) AS {alias}", listed.join(", "), texts.join(", "));
        let column = |(at, kind)| OutputColumn { name: format!("col{at}"), kind, has_raw: false };
        let columns = kinds.into_iter().enumerate().map(column).collect();
        Ok(BoundQuery { sql, columns, is_single_row: false })
    }

    /// Binds a table of `WITH`, which can be used afterwards; returns the text for `WITH`.
    fn bind_common(
        &mut self,
        table: &Cte,
        is_recursive: bool,
        parent: Option<&NameScope<'_>>,
    ) -> BindResult<String> {
        let place = QueryPosition::from(table.alias.name.span);
        let sql_name = format!("w{}", self.alias());
        if is_recursive
            && let SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right } =
                &*table.query.body
        {
            let all = match set_quantifier {
                SetQuantifier::All => "UNION ALL",
                SetQuantifier::None | SetQuantifier::Distinct => "UNION",
                _ => return Err(QueryRefusal::new("`BY NAME` is not supported", place)),
            };
            // The recursion passes on only values; the input's JSON would be an additional column.
            let plain = self.bind_set(left, parent, &QueryPurpose::Table)?;
            let kinds: Vec<_> = plain.columns.iter().map(|column| column.kind.clone()).collect();
            let purpose = QueryPurpose::TypedTable(kinds.clone());
            let first = self.bind_set(left, parent, &purpose)?;
            let columns = renamed_columns(first.columns, &table.alias, place)?;
            let columns: Vec<_> =
                columns.into_iter().map(|column| OutputColumn { has_raw: false, ..column }).collect();
            let common =
                CommonTable { name: table.alias.name.value.clone(), sql_name: sql_name.clone(), columns };
            self.common.push(common);
            let again = self.bind_set(right, parent, &QueryPurpose::Table)?;
            let is_same = again.columns.iter().map(|column| &column.kind).eq(&kinds);
            if !is_same {
                let shown = |kinds: Vec<String>| kinds.join(", ");
                let (found, wanted) = (
                    shown(again.columns.iter().map(|column| column.kind.to_string()).collect()),
                    shown(kinds.iter().map(ToString::to_string).collect()),
                );
                return Err(QueryRefusal::new(
                    format!("the recursive part returns {found}, but the first part {wanted}"),
                    place,
                )
                .hint("cast the columns of one part"));
            }
            let again = self.bind_set(right, parent, &purpose)?;
            let names: Vec<_> = (0..kinds.len()).map(|at| format!("c{at}")).collect();
            return Ok(format!("{sql_name}({}) AS ({} {all} {})", names.join(", "), first.sql, again.sql));
        }
        let bound = self.bind_query(&table.query, parent, &QueryPurpose::Table)?;
        let columns = renamed_columns(bound.columns, &table.alias, place)?;
        let common =
            CommonTable { name: table.alias.name.value.clone(), sql_name: sql_name.clone(), columns };
        self.common.push(common);
        Ok(format!("{sql_name} AS ({})", bound.sql))
    }
}

fn renamed_columns(
    mut columns: Vec<OutputColumn>,
    alias: &TableAlias,
    place: QueryPosition,
) -> BindResult<Vec<OutputColumn>> {
    if alias.columns.len() > columns.len() {
        return Err(QueryRefusal::new(
            format!("`{}` has only {} columns", alias.name.value, columns.len()),
            place,
        ));
    }
    for (column, name) in columns.iter_mut().zip(&alias.columns) {
        column.name.clone_from(&name.name.value);
    }
    Ok(columns)
}
