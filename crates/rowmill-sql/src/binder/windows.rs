//! Window functions.

use rowmill_types::settings::SQL_ENGINE;
use sqlparser::ast::{
    Function, Ident, NamedWindowExpr, Spanned as _, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowSpec, WindowType,
};

use super::QueryBinder;
use super::calls::{WrittenArguments, written_arguments};
use super::expressions::written_count;
use super::scope::{NameScope, QueryClause};
use crate::aggregates::{WindowUse, is_aggregate};
use crate::expression::coerce::adapt_argument;
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::TypedExpression;
use crate::values::sql_type::SqlType;

impl QueryBinder<'_> {
    /// Binds a function with `OVER`.
    pub(super) fn bind_window(
        &mut self,
        name: &str,
        function: &Function,
        scope: &NameScope<'_>,
    ) -> BindResult<TypedExpression> {
        let place = QueryPosition::from(function.name.span());
        if !scope.clause.takes_windows() {
            let message = format!("`{name}(…) OVER` cannot be used in {}", scope.clause.name());
            return Err(
                QueryRefusal::new(message, place).hint("filter with `QUALIFY`, or compute it in a subquery")
            );
        }
        if function.null_treatment.is_some() {
            return Err(QueryRefusal::new("`IGNORE NULLS` and `RESPECT NULLS` are not supported", place));
        }
        let inner = scope.in_clause(QueryClause::WindowPart);
        let written = written_arguments(function, place)?;
        if written.is_distinct {
            return Err(QueryRefusal::new("`DISTINCT` cannot be used with `OVER`", place));
        }
        let (call, kind) = if is_aggregate(name) {
            self.group_window(name, &written, &inner, place)?
        } else {
            self.rank_window(name, &written, &inner, place)?
        };
        let filter = self.filter_text(function, &inner)?;
        let over = match &function.over {
            Some(WindowType::WindowSpec(spec)) => self.window_text(spec, &inner, place)?,
            Some(WindowType::NamedWindow(name)) => {
                let spec = named_window(name, scope)?;
                self.window_text(&spec, &inner, place)?
            }
            None => String::new(),
        };
        Ok(TypedExpression::leaf(format!("{call}{filter} OVER ({over})"), kind, place))
    }

    fn group_window(
        &mut self,
        name: &str,
        written: &WrittenArguments<'_>,
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<(String, SqlType)> {
        let bound = self.bind_group_arguments(name, written, scope, place)?;
        if bound.window == WindowUse::Refused {
            return Err(QueryRefusal::new(format!("`{name}` cannot be used with `OVER`"), place)
                .hint("compute it with `GROUP BY` in a subquery, and join that"));
        }
        let kind = bound.result.clone();
        Ok((self.group_call_text(bound, "", "")?, kind))
    }

    fn rank_window(
        &mut self,
        name: &str,
        written: &WrittenArguments<'_>,
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<(String, SqlType)> {
        let arguments: Vec<_> = written
            .values
            .iter()
            .map(|value| self.bind_expression(value, scope))
            .collect::<BindResult<_>>()?;
        let wrong = || QueryRefusal::new(format!("wrong arguments for `{name}`"), place);
        let kind = match (name, arguments.as_slice()) {
            ("row_number" | "rank" | "dense_rank", []) => SqlType::BigInt,
            ("percent_rank" | "cume_dist", []) => SqlType::Double,
            ("ntile", [count]) if count.kind.is_whole() => SqlType::BigInt,
            ("lag" | "lead", [value] | [value, _]) => value.kind.clone(),
            ("lag" | "lead", [value, count, otherwise]) => {
                let otherwise = adapt_argument(otherwise.clone(), &value.kind).ok_or_else(wrong)??;
                let sql = self.emitted.expressions_sql(&[value.clone(), count.clone(), otherwise])?;
                return Ok((format!("{name}({sql})"), value.kind.clone()));
            }
            ("first_value" | "last_value", [value]) | ("nth_value", [value, _]) => value.kind.clone(),
            (
                "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" | "ntile" | "lag"
                | "lead" | "first_value" | "last_value" | "nth_value",
                _,
            ) => return Err(wrong()),
            _ => {
                return Err(QueryRefusal::new(format!("`{name}` is not a window function"), place).hint(
                    "use `row_number`, `rank`, `lag`, `lead`, `first_value`, `sum`, `count` and others",
                ));
            }
        };
        let counted = arguments.iter().skip(1).find(|count| !count.kind.is_whole());
        if counted.is_some() {
            return Err(wrong());
        }
        Ok((format!("{name}({})", self.emitted.expressions_sql(&arguments)?), kind))
    }

    fn window_text(
        &mut self,
        spec: &WindowSpec,
        scope: &NameScope<'_>,
        place: QueryPosition,
    ) -> BindResult<String> {
        let mut parts = Vec::new();
        let base = spec.window_name.as_ref().map(|name| named_window(name, scope)).transpose()?;
        let inherited = base.as_ref().filter(|_| spec.partition_by.is_empty()).unwrap_or(spec);
        if !inherited.partition_by.is_empty() {
            let mut keys = Vec::new();
            for key in &inherited.partition_by {
                let key = self.bind_expression(key, scope)?;
                keys.push(check_sortable(key, "PARTITION BY")?);
            }
            parts.push(format!("PARTITION BY {}", self.emitted.expressions_sql(&keys)?));
        }
        let order = if spec.order_by.is_empty() {
            base.as_ref().map(|base| &base.order_by)
        } else {
            Some(&spec.order_by)
        };
        if let Some(order) = order.filter(|order| !order.is_empty()) {
            parts.push(format!("ORDER BY {}", self.order_terms(order, scope)?));
        }
        if let Some(frame) = &spec.window_frame {
            parts.push(frame_text(frame, place)?);
        }
        Ok(parts.join(" "))
    }
}

/// An expression to sort or partition by.
pub(super) fn check_sortable(typed: TypedExpression, clause: &str) -> BindResult<TypedExpression> {
    if typed.kind.is_ordered() {
        return Ok(typed);
    }
    Err(QueryRefusal::new(format!("{clause} cannot use values of type {}", typed.kind), typed.place))
}

/// The definition of a named window.
fn named_window(name: &Ident, scope: &NameScope<'_>) -> BindResult<WindowSpec> {
    let known = scope.windows.iter().find(|window| window.0.value.eq_ignore_ascii_case(&name.value));
    match known.map(|window| &window.1) {
        Some(NamedWindowExpr::WindowSpec(spec)) => Ok(spec.clone()),
        Some(NamedWindowExpr::NamedWindow(other)) if other.value != name.value => named_window(other, scope),
        _ => Err(QueryRefusal::new(format!("there is no window `{}`", name.value), name.span)),
    }
}

fn frame_text(frame: &WindowFrame, place: QueryPosition) -> BindResult<String> {
    let units = match frame.units {
        WindowFrameUnits::Rows => "ROWS",
        WindowFrameUnits::Range => "RANGE",
        WindowFrameUnits::Groups => "GROUPS",
    };
    let bound = |bound: &WindowFrameBound| {
        let offset = |offset: &Option<Box<sqlparser::ast::Expr>>, side: &str| match offset {
            None => Ok(format!("UNBOUNDED {side}")),
            Some(offset) if frame.units != WindowFrameUnits::Range => match written_count(offset) {
                Some(count) => Ok(format!("{count} {side}")),
                None => Err(QueryRefusal::new("the bounds of a window are whole numbers", place)),
            },
            Some(_) => Err(QueryRefusal::new("`RANGE` with offsets is not supported", place).hint(format!(
                "run the query with {duckdb}; `ROWS` counts rows, which gives other results",
                duckdb = SQL_ENGINE.with_value("duckdb")
            ))),
        };
        match bound {
            WindowFrameBound::CurrentRow => Ok("CURRENT ROW".to_owned()),
            WindowFrameBound::Preceding(count) => offset(count, "PRECEDING"),
            WindowFrameBound::Following(count) => offset(count, "FOLLOWING"),
        }
    };
    let start = bound(&frame.start_bound)?;
    Ok(match &frame.end_bound {
        Some(end) => format!("{units} BETWEEN {start} AND {}", bound(end)?),
        None => format!("{units} {start}"),
    })
}
