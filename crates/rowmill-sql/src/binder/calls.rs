//! Function calls.

use sqlparser::ast::{
    CeilFloorKind, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Spanned as _, TrimWhereField,
};

use super::QueryBinder;
use super::expressions::single_name;
use super::scope::{NameScope, QueryClause};
use crate::advice;
use crate::aggregates::{AggregateCall, BoundAggregate, bind_aggregate, is_aggregate};
use crate::expression::coerce::{as_condition, fold_constant};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::TypedExpression;
use crate::scalars::{FunctionCall, bind_function};

/// The arguments of a call as they were written.
pub(super) struct WrittenArguments<'f> {
    pub(super) values: Vec<&'f Expr>,
    pub(super) is_distinct: bool,
    clauses: &'f [FunctionArgumentClause],
}

/// The arguments of a call; `count(*)` has none.
pub(super) fn written_arguments(
    function: &Function,
    place: QueryPosition,
) -> BindResult<WrittenArguments<'_>> {
    let mut written = WrittenArguments { values: Vec::new(), is_distinct: false, clauses: &[] };
    let list = match &function.args {
        FunctionArguments::None => return Ok(written),
        FunctionArguments::List(list) => list,
        FunctionArguments::Subquery(_) => {
            return Err(QueryRefusal::new("a subquery is not allowed as an argument here", place)
                .hint("put it in parentheses"));
        }
    };
    written.is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    written.clauses = &list.clauses;
    for argument in &list.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => written.values.push(value),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {
                let is_count = single_name(&function.name.0)
                    .is_some_and(|name| name.value.eq_ignore_ascii_case("count"));
                if !is_count || list.args.len() != 1 {
                    return Err(QueryRefusal::new("`*` is only allowed as an argument of `count`", place));
                }
            }
            _ => return Err(QueryRefusal::new("named arguments are not supported", place)),
        }
    }
    Ok(written)
}

impl QueryBinder<'_> {
    /// A call of a function.
    pub(super) fn bind_call(
        &mut self,
        function: &Function,
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        let place = QueryPosition::from(function.name.span());
        let name = single_name(&function.name.0).map(|name| name.value.to_ascii_lowercase());
        let name =
            name.ok_or_else(|| QueryRefusal::new(format!("no such function: {}", function.name), place))?;
        let has_parameters = !matches!(function.parameters, FunctionArguments::None);
        if has_parameters || !function.within_group.is_empty() {
            return Err(QueryRefusal::new(format!("this form of `{name}` is not supported"), place));
        }
        if function.over.is_some() {
            return self.bind_window(&name, function, scope);
        }
        if is_aggregate(&name) {
            return self.bind_group_function(&name, function, scope);
        }
        if name == "unnest" {
            return Err(QueryRefusal::new("`unnest` must be alone in a select list, or in `FROM`", place)
                .hint("write `SELECT unnest(list) AS x`, and use `x` in a query around it"));
        }
        let written = written_arguments(function, place)?;
        if written.is_distinct || function.filter.is_some() || !written.clauses.is_empty() {
            return Err(QueryRefusal::new(format!("`{name}` is not an aggregate function"), place));
        }
        let arguments = written.values.into_iter().map(|value| self.bind_expression(value, scope));
        let call = FunctionCall { name, arguments: arguments.collect::<BindResult<_>>()?, place };
        bind_call(&call)
    }

    /// Functions with special syntax: `TRIM(BOTH 'x' FROM y)`.
    pub(super) fn bind_special_call(
        &mut self,
        expression: &Expr,
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<TypedExpression> {
        let (name, values): (&str, Vec<&Expr>) = match expression {
            Expr::Ceil {
                expr,
                field: CeilFloorKind::DateTimeField(sqlparser::ast::DateTimeField::NoDateTime),
            } => ("ceil", vec![expr]),
            Expr::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(sqlparser::ast::DateTimeField::NoDateTime),
            } => ("floor", vec![expr]),
            Expr::Position { expr, r#in } => ("strpos", vec![r#in, expr]),
            Expr::Substring { expr, substring_from: Some(from), substring_for, .. } => {
                ("substr", [expr, from].into_iter().chain(substring_for).map(|part| &**part).collect())
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    None | Some(TrimWhereField::Both) => "trim",
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                };
                let characters = trim_characters.iter().flatten().chain(trim_what.as_deref());
                (name, std::iter::once(&**expr).chain(characters).collect())
            }
            other => {
                let text: String = other.to_string().chars().take(60).collect();
                return Err(QueryRefusal::new(format!("`{text}` is not supported"), place)
                    .hint("see `docs/sql.md` for what a query can use"));
            }
        };
        let arguments = values.into_iter().map(|value| self.bind_expression(value, scope));
        let call =
            FunctionCall { name: name.to_owned(), arguments: arguments.collect::<BindResult<_>>()?, place };
        bind_call(&call)
    }

    /// Binds a call of an aggregate function.
    fn bind_group_function(
        &mut self,
        name: &str,
        function: &Function,
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        let place = QueryPosition::from(function.name.span());
        if !scope.clause.takes_aggregates()
            || (scope.clause == QueryClause::WindowPart && scope.groups.is_none())
        {
            let clause = scope.clause.name();
            let hint = if scope.clause == QueryClause::Where {
                "filter groups with `HAVING`"
            } else {
                "compute it in a subquery"
            };
            return Err(QueryRefusal::new(format!("`{name}` cannot be used in {clause}"), place).hint(hint));
        }
        let inner = scope.ungrouped(QueryClause::GroupArgument);
        let written = written_arguments(function, place)?;
        let bound = self.bind_group_arguments(name, &written, &inner, place)?;
        let order = self.bind_group_order(&written, &inner, place)?;
        let is_plain = !written.is_distinct && order.is_empty() && function.filter.is_none();
        let bound = if is_plain && scope.is_one_group() { bound.over_all_rows() } else { bound };
        let distinct = if written.is_distinct { "DISTINCT " } else { "" };
        let kind = bound.result.clone();
        let sql = self.group_call_text(bound, distinct, &order)?;
        let filter = self.filter_text(function, &inner)?;
        Ok(TypedExpression::leaf(sql + &filter, kind, place))
    }

    /// Binds the arguments of an aggregate function.
    pub(super) fn bind_group_arguments(
        &mut self,
        name: &str,
        written: &WrittenArguments<'_>,
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<BoundAggregate> {
        let arguments = written.values.iter().map(|value| self.bind_expression(value, scope));
        let bound = bind_aggregate(name, arguments.collect::<BindResult<_>>()?, place)?;
        let is_comparable =
            bound.arguments.len() == 1 && bound.arguments.iter().all(|typed| typed.kind.is_ordered());
        if written.is_distinct && !is_comparable {
            return Err(QueryRefusal::new(
                format!("`{name}(DISTINCT …)` takes one value that can be compared"),
                place,
            ));
        }
        Ok(bound)
    }

    fn bind_group_order(
        &mut self,
        written: &WrittenArguments<'_>,
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<String> {
        match written.clauses {
            [] => Ok(String::new()),
            [FunctionArgumentClause::OrderBy(order)] => {
                let terms = self.order_terms(order, scope)?;
                Ok(format!(" ORDER BY {terms}"))
            }
            _ => Err(QueryRefusal::new("this part of a call is not supported", place)),
        }
    }

    /// The text of a call, using a function of ours if SQLite has no equivalent one.
    pub(super) fn group_call_text(
        &mut self,
        bound: BoundAggregate,
        distinct: &str,
        order: &str,
    ) -> BindResult<String> {
        let arguments = self.emitted.expressions_sql(&bound.arguments)?;
        let name = match bound.function {
            Ok("count") if bound.arguments.is_empty() => return Ok("count(*)".to_owned()),
            Ok(name) => name.to_owned(),
            Err(kind) => {
                let name = format!("a{}", self.emitted.aggregates.len());
                let arguments = bound.arguments.iter().map(|typed| typed.kind.clone()).collect();
                let call = AggregateCall { name: name.clone(), kind, arguments, result: bound.result };
                self.emitted.aggregates.push(call);
                name
            }
        };
        Ok(format!("{name}({distinct}{arguments}{order})"))
    }

    pub(super) fn filter_text(&mut self, function: &Function, scope: &NameScope<'_>) -> BindResult<String> {
        let Some(filter) = &function.filter else { return Ok(String::new()) };
        let filter = as_condition(self.bind_expression(filter, scope)?)?;
        Ok(format!(" FILTER (WHERE {})", self.emitted.expression_sql(&filter)?))
    }
}

/// Binds a call of a scalar function.
fn bind_call(call: &FunctionCall) -> BindResult<TypedExpression> {
    bind_function(call)
        .unwrap_or_else(|| {
            let refusal = QueryRefusal::new(format!("no such function: {}", call.name), call.place);
            Err(refusal.hint(advice::for_function(&call.name)))
        })
        .and_then(fold_constant)
}
