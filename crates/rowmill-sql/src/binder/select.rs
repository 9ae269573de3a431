//! Binds `SELECT`.

use sqlparser::ast::{
    Distinct, ExcludeSelectItem, Expr, Ident, ObjectName, OrderBy, RenameSelectItem, ReplaceSelectItem,
    Select, SelectItem, SelectItemQualifiedWildcardKind, Spanned as _, WildcardAdditionalOptions,
};

use super::QueryBinder;
use super::called_functions::CalledFunctions;
use super::expressions::single_name;
use super::from::BoundFrom;
use super::group_by::BoundGrouping;
use super::outputs::{BoundQuery, OutputItem, QueryPurpose};
use super::scope::{NameScope, QueryClause, ScopeTable};
use super::select_text::{RowReduction, SelectParts};
use super::windows::check_sortable;
use crate::expression::coerce::{as_condition, cast_to};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{ExpressionNode, SqliteValue, TypedExpression};

/// The clauses after a `SELECT` in its query.
pub(super) struct SelectTail<'q> {
    pub(super) order: Option<&'q OrderBy>,
    pub(super) limit: String,
}

impl QueryBinder<'_> {
    pub(super) fn bind_select(
        &mut self,
        select: &Select,
        tail: SelectTail<'_>,
        parent: Option<&NameScope<'_>>,
        purpose: &QueryPurpose,
    ) -> BindResult<BoundQuery> {
        check_forms(select)?;
        let mut from = self.bind_from(&select.from, parent)?;
        let called = CalledFunctions::in_expressions(&select.projection)
            .union(CalledFunctions::in_expressions(&select.having))
            .union(CalledFunctions::in_expressions(&select.qualify))
            .union(CalledFunctions::in_expressions(&tail.order.cloned()));
        let mut scope = NameScope::new(from.relations.clone(), parent);
        scope.aliases = aliases(&select.projection);
        scope.windows.clone_from(&select.named_window);
        let mut rest = String::new();
        if let Some(selection) = &select.selection {
            let bound = as_condition(self.bind_expression(selection, &scope.in_clause(QueryClause::Where))?)?;
            rest.push_str(&format!(" WHERE {}", self.emitted.expression_sql(&bound)?));
        }
        let grouping = self.bind_grouping(select, called.of_groups, &scope)?;
        if let Some(BoundGrouping { keys, text }) = &grouping {
            scope.groups = Some(keys.clone());
            rest.push_str(text);
        }
        if let Some(having) = &select.having {
            let bound = as_condition(self.bind_expression(having, &scope.in_clause(QueryClause::Having))?)?;
            rest.push_str(&format!(" HAVING {}", self.emitted.expression_sql(&bound)?));
        }
        let is_plain = grouping.is_none() && !called.of_windows;
        let items = self.bind_projection(select, &scope, &mut from, is_plain)?;
        let items = typed_items(items, purpose)?;
        let thinning = self.bind_thinning(select, &items, &scope)?;
        let sort = self.sort_keys(tail.order, &items, Some(&scope))?;
        check_distinct_order(&thinning, &sort)?;
        let is_single_row =
            grouping.is_some_and(|grouping| grouping.text.is_empty()) && select.having.is_none();
        let parts = SelectParts { items, from: from.sql, rest, sort, limit: tail.limit };
        let (sql, columns) = self.select_text(&parts, &thinning, purpose)?;
        Ok(BoundQuery { sql, columns, is_single_row: is_single_row && parts.limit.is_empty() })
    }

    /// Binds `DISTINCT`, `DISTINCT ON` or `QUALIFY`.
    fn bind_thinning(
        &mut self,
        select: &Select,
        items: &[OutputItem],
        scope: &NameScope<'_>,
    ) -> BindResult<RowReduction> {
        let distinct = match &select.distinct {
            None | Some(Distinct::All) => None,
            Some(other) => Some(other),
        };
        match (distinct, &select.qualify) {
            (Some(_), Some(qualify)) => {
                Err(QueryRefusal::new("`DISTINCT` and `QUALIFY` are not supported together", qualify.span())
                    .hint("put one of them into a subquery"))
            }
            (None, None) => Ok(RowReduction::None),
            (None, Some(qualify)) => {
                let bound =
                    as_condition(self.bind_expression(qualify, &scope.in_clause(QueryClause::Qualify))?)?;
                Ok(RowReduction::Qualify(self.emitted.expression_sql(&bound)?))
            }
            (Some(Distinct::On(keys)), None) => {
                let mut texts = Vec::new();
                for key in keys {
                    let bound = check_sortable(
                        self.bind_expression(key, &scope.in_clause(QueryClause::OrderBy))?,
                        "DISTINCT ON",
                    )?;
                    texts.push(self.emitted.expression_sql(&bound)?);
                }
                Ok(RowReduction::DistinctOn(texts))
            }
            (Some(_), None) => {
                for item in items {
                    check_sortable(item.typed.clone(), "DISTINCT")?;
                }
                Ok(RowReduction::Distinct)
            }
        }
    }

    /// Binds the select list, and expands `*` and `unnest`.
    fn bind_projection(
        &mut self,
        select: &Select,
        scope: &NameScope<'_>,
        from: &mut BoundFrom,
        is_plain: bool,
    ) -> BindResult<Vec<OutputItem>> {
        let mut items = Vec::new();
        if select.projection.is_empty() {
            return Ok(all_columns(scope.relations.iter(), true));
        }
        for entry in &select.projection {
            match entry {
                SelectItem::UnnamedExpr(expression) => {
                    let typed = self.bind_entry(expression, scope, from, is_plain)?;
                    items.push(OutputItem {
                        name: entry_name(expression),
                        typed,
                        written: Some(expression.clone()),
                    });
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let typed = self.bind_entry(expr, scope, from, is_plain)?;
                    items.push(OutputItem { name: alias.value.clone(), typed, written: Some(expr.clone()) });
                }
                SelectItem::Wildcard(options) => {
                    let columns = all_columns(scope.relations.iter(), true);
                    items.extend(self.bind_star(columns, options, scope)?);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let relation = single_name(&name.0).and_then(|name| scope.relation(&name.value));
                    let relation = relation.ok_or_else(|| no_columns_of(name, scope))?;
                    let columns = all_columns(std::iter::once(relation), false);
                    items.extend(self.bind_star(columns, options, scope)?);
                }
                other => {
                    return Err(QueryRefusal::new(
                        "this entry of a select list is not supported",
                        other.span(),
                    ));
                }
            }
        }
        self.check_star_groups(&items, scope)?;
        Ok(items)
    }

    /// Binds an entry of a select list; `unnest` becomes a join with the elements of its list.
    fn bind_entry(
        &mut self,
        expression: &Expr,
        scope: &NameScope<'_>,
        from: &mut BoundFrom,
        is_plain: bool,
    ) -> BindResult<TypedExpression> {
        let Some(list) = unnested(expression) else { return self.bind_expression(expression, scope) };
        let place = QueryPosition::from(expression.span());
        if !is_plain || from.sql.contains(ELEMENTS) {
            return Err(QueryRefusal::new(
                "`unnest` cannot be used with groups, windows or another `unnest`",
                place,
            )
            .hint("use it alone in a subquery"));
        }
        let list = self.bind_expression(list, &scope.in_clause(QueryClause::Join))?;
        let ((alias, kind), sql) = self.element_table(&list)?;
        let comma = if from.sql.is_empty() { "" } else { ", " };
        from.sql.push_str(&format!("{comma}{ELEMENTS}{sql}"));
        Ok(TypedExpression::leaf(format!("{alias}.value"), kind, place))
    }

    /// Expands `*` without the columns of `EXCLUDE`, and with those that `REPLACE` and `RENAME` change.
    fn bind_star(
        &mut self,
        columns: Vec<OutputItem>,
        options: &WildcardAdditionalOptions,
        scope: &NameScope<'_>,
    ) -> BindResult<Vec<OutputItem>> {
        let place = QueryPosition::from(options.wildcard_token.0.span);
        if options.opt_ilike.is_some() || options.opt_except.is_some() || options.opt_alias.is_some() {
            return Err(QueryRefusal::new("this form of `*` is not supported", place)
                .hint("use `EXCLUDE` and `REPLACE`"));
        }
        let mut columns = columns;
        for name in excluded(options.opt_exclude.as_ref()) {
            let before = columns.len();
            columns.retain(|column| !column.name.eq_ignore_ascii_case(&name.value));
            if columns.len() == before {
                return Err(QueryRefusal::new(
                    format!("there is no column `{}` to exclude", name.value),
                    name.span,
                ));
            }
        }
        for replacement in options.opt_replace.iter().flat_map(|ReplaceSelectItem { items }| items) {
            let typed = self.bind_expression(&replacement.expr, scope)?;
            let name = &replacement.column_name;
            let column = columns.iter_mut().find(|column| column.name.eq_ignore_ascii_case(&name.value));
            match column {
                Some(column) => column.typed = typed,
                None => {
                    return Err(QueryRefusal::new(
                        format!("there is no column `{}` to replace", name.value),
                        name.span,
                    ));
                }
            }
        }
        rename_columns(&mut columns, options)?;
        Ok(columns)
    }

    /// Rejects columns of `*` that a grouped query cannot return.
    fn check_star_groups(&self, items: &[OutputItem], scope: &NameScope<'_>) -> BindResult<()> {
        let Some(keys) = &scope.groups else { return Ok(()) };
        let stars = items.iter().filter(|item| item.written.is_none());
        for item in stars {
            if let ExpressionNode::Leaf(leaf) = &item.typed.node
                && !keys.columns.contains(&leaf.sql)
            {
                let message = format!(
                    "`{}` of `*` is neither in `GROUP BY` nor inside an aggregate function",
                    item.name
                );
                return Err(QueryRefusal::new(message, QueryPosition::default()));
            }
        }
        Ok(())
    }
}

/// The refusal for `x.*` if `x` is no table.
fn no_columns_of(name: &ObjectName, scope: &NameScope<'_>) -> QueryRefusal {
    let is_column = |column: &&Ident| {
        let mut columns = scope.relations.iter().flat_map(|relation| &relation.columns);
        columns.any(|known| known.name.eq_ignore_ascii_case(&column.value))
    };
    match single_name(&name.0).filter(is_column) {
        Some(column) => QueryRefusal::new(
            format!("`{name}.*` is not supported: `{column}` is a column, not a table"),
            name.span(),
        )
        .hint(format!("write its fields, such as `{column}.name`, or `{column}` for the whole object")),
        None => QueryRefusal::new(format!("no such table: {name}"), name.span())
            .hint(crate::advice::for_table(&name.to_string())),
    }
}

/// Marks the position of list elements in the text of `FROM`.
const ELEMENTS: &str = "/*elements*/";

fn check_forms(select: &Select) -> BindResult<()> {
    let place = QueryPosition::from(select.select_token.0.span);
    let has_other = select.top.is_some()
        || select.into.is_some()
        || !select.lateral_views.is_empty()
        || select.prewhere.is_some()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.value_table_mode.is_some()
        || select.exclude.is_some();
    if has_other {
        return Err(QueryRefusal::new("this form of `SELECT` is not supported", place));
    }
    Ok(())
}

/// Checks that a query with `DISTINCT` sorts only by its result.
fn check_distinct_order(thinning: &RowReduction, sort: &[super::order::SortKey]) -> BindResult<()> {
    if !matches!(thinning, RowReduction::Distinct) {
        return Ok(());
    }
    for key in sort {
        if let super::order::SortTarget::Expression(typed) = &key.by {
            return Err(QueryRefusal::new(
                "with `DISTINCT`, only columns of the result can be sorted by",
                typed.place,
            ));
        }
    }
    Ok(())
}

/// The named entries.
fn aliases(projection: &[SelectItem]) -> Vec<(String, Expr)> {
    let named = projection.iter().filter_map(|entry| match entry {
        SelectItem::ExprWithAlias { expr, alias } => Some((alias.value.clone(), expr.clone())),
        _ => None,
    });
    named.collect()
}

/// The list of an entry that consists only of `unnest(list)`.
fn unnested(expression: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = expression else { return None };
    let is_unnest =
        single_name(&function.name.0).is_some_and(|name| name.value.eq_ignore_ascii_case("unnest"));
    let written = super::calls::written_arguments(function, QueryPosition::default()).ok()?;
    match written.values.as_slice() {
        [list] if is_unnest => Some(list),
        _ => None,
    }
}

/// The name of an entry without an alias: that of the column, or the text of the expression.
fn entry_name(expression: &Expr) -> String {
    match expression {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(parts) => parts.last().map_or_else(String::new, |last| last.value.clone()),
        Expr::Nested(inner) => entry_name(inner),
        other => other.to_string(),
    }
}

fn all_columns<'r>(relations: impl Iterator<Item = &'r ScopeTable>, hides: bool) -> Vec<OutputItem> {
    let columns =
        relations.flat_map(|relation| &relation.columns).filter(|column| !(hides && column.is_hidden));
    let item = |column: &super::scope::ScopeColumn| {
        let leaf =
            SqliteValue { sql: column.sql.clone(), raw: column.raw.clone(), note: column.note.clone() };
        let typed = TypedExpression {
            node: ExpressionNode::Leaf(leaf),
            kind: column.kind.clone(),
            place: QueryPosition::default(),
        };
        OutputItem { name: column.name.clone(), typed, written: None }
    };
    columns.map(item).collect()
}

fn excluded(exclude: Option<&ExcludeSelectItem>) -> Vec<&Ident> {
    let names = match exclude {
        None => return Vec::new(),
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names.as_slice(),
    };
    names.iter().filter_map(|name| single_name(&name.0)).collect()
}

/// Gives the columns of `*` the names of `RENAME`, which speaks of the names before it.
fn rename_columns(columns: &mut [OutputItem], options: &WildcardAdditionalOptions) -> BindResult<()> {
    let renames = match &options.opt_rename {
        None => return Ok(()),
        Some(RenameSelectItem::Single(one)) => std::slice::from_ref(one),
        Some(RenameSelectItem::Multiple(several)) => several.as_slice(),
    };
    let before: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let replaced = options.opt_replace.iter().flat_map(|ReplaceSelectItem { items }| items);
    let replaced: Vec<&str> = replaced.map(|item| item.column_name.value.as_str()).collect();
    for rename in renames {
        let renamed = rename.ident.value.as_str();
        if replaced.iter().any(|name| name.eq_ignore_ascii_case(renamed)) {
            let message = format!("`{renamed}` is in both `REPLACE` and `RENAME`");
            return Err(QueryRefusal::new(message, rename.ident.span)
                .hint("leave it out of `*` with `EXCLUDE`, and write the expression with `AS`"));
        }
        let named = columns.iter_mut().zip(&before).filter(|(_, name)| name.eq_ignore_ascii_case(renamed));
        let mut found = false;
        for (column, _) in named {
            column.name.clone_from(&rename.alias.value);
            found = true;
        }
        if !found {
            let message = format!("there is no column `{renamed}` to rename");
            return Err(QueryRefusal::new(message, rename.ident.span));
        }
    }
    Ok(())
}

/// Casts the entries to the required types; the input's JSON is then dropped.
fn typed_items(items: Vec<OutputItem>, purpose: &QueryPurpose) -> BindResult<Vec<OutputItem>> {
    let QueryPurpose::TypedTable(kinds) = purpose else { return Ok(items) };
    let typed = items.into_iter().zip(kinds).map(|(item, kind)| {
        let mut typed = cast_to(item.typed, kind, CastMode::Fail)?;
        if let ExpressionNode::Leaf(leaf) = &mut typed.node {
            leaf.raw = None;
        }
        Ok(OutputItem { typed, ..item })
    });
    typed.collect()
}
use crate::values::cast::CastMode;
