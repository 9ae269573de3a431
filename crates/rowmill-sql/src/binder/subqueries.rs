//! Subqueries in expressions.

use sqlparser::ast::{Expr, Query};

use super::QueryBinder;
use super::outputs::QueryPurpose;
use super::scope::NameScope;
use crate::aggregates::{AggregateCall, AggregateKind};
use crate::expression::coerce::{cast_to, comparison_type};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::TypedExpression;
use crate::values::cast::CastMode;
use crate::values::sql_type::SqlType;

impl QueryBinder<'_> {
    /// `x IN (SELECT …)`.
    pub(super) fn bind_in_query(
        &mut self,
        value: &Expr,
        query: &Query,
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        let value = self.bind_expression(value, scope)?;
        let place = value.place;
        let bound = self.bind_query(query, Some(scope), &QueryPurpose::Table)?;
        let [column] = bound.columns.as_slice() else {
            return Err(QueryRefusal::new("a subquery after `IN` must return one column", place));
        };
        let alias = self.alias();
        let element = TypedExpression::leaf(format!("{alias}.c0"), column.kind.clone(), place);
        let kind = comparison_type(&value, &element)?;
        let value = cast_to(value, &kind, CastMode::Fail)?;
        let element = cast_to(element, &kind, CastMode::Fail)?;
        if !kind.is_ordered() {
            return Err(QueryRefusal::new(format!("values of type {kind} cannot be used with `IN`"), place));
        }
        let (value, element) = (self.emitted.expression_sql(&value)?, self.emitted.expression_sql(&element)?);
        let sql = format!("({value} IN (SELECT {element} FROM ({}) AS {alias}))", bound.sql);
        Ok(TypedExpression::leaf(sql, SqlType::Boolean, place))
    }

    /// A subquery that is used as a value: null without rows, an error with several.
    pub(super) fn bind_scalar_query(
        &mut self,
        query: &Query,
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<TypedExpression> {
        let bound = self.bind_query(query, Some(scope), &QueryPurpose::Table)?;
        let [column] = bound.columns.as_slice() else {
            return Err(QueryRefusal::new(
                "a subquery that is used as a value must return one column",
                place,
            ));
        };
        let kind = column.kind.clone();
        let alias = self.alias();
        if bound.is_single_row {
            return Ok(TypedExpression::leaf(
                format!("(SELECT {alias}.c0 FROM ({}) AS {alias})", bound.sql),
                kind,
                place,
            ));
        }
        let name = format!("a{}", self.emitted.aggregates.len());
        let call = AggregateCall {
            name: name.clone(),
            kind: AggregateKind::Only,
            arguments: vec![kind.clone()],
            result: kind.clone(),
        };
        self.emitted.aggregates.push(call);
        let sql = format!("(SELECT {name}({alias}.c0) FROM ({}) AS {alias})", bound.sql);
        Ok(TypedExpression::leaf(sql, kind, place))
    }
}
