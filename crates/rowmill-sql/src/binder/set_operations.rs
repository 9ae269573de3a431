//! `UNION`, `INTERSECT` and `EXCEPT`.

use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier, Spanned as _};

use super::QueryBinder;
use super::outputs::{BoundQuery, OutputColumn, QueryPurpose};
use super::scope::NameScope;
use super::select_text::passed_on_columns;
use super::windows::check_sortable;
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::TypedExpression;
use crate::values::common_type::common_type;
use crate::values::sql_type::SqlType;

impl QueryBinder<'_> {
    pub(super) fn bind_operation(
        &mut self,
        sides: [&SetExpr; 2],
        (operator, quantifier): (SetOperator, SetQuantifier),
        parent: Option<&NameScope<'_>>,
        purpose: &QueryPurpose,
    ) -> BindResult<BoundQuery> {
        let place = QueryPosition::from(sides[1].span());
        let word = match (operator, quantifier) {
            (SetOperator::Union, SetQuantifier::All) => "UNION ALL",
            (SetOperator::Union, SetQuantifier::None | SetQuantifier::Distinct) => "UNION",
            (SetOperator::Intersect, SetQuantifier::None | SetQuantifier::Distinct) => "INTERSECT",
            (SetOperator::Except, SetQuantifier::None | SetQuantifier::Distinct) => "EXCEPT",
            _ => {
                return Err(QueryRefusal::new(format!("`{operator} {quantifier}` is not supported"), place)
                    .hint("use `UNION ALL`, `UNION`, `INTERSECT` or `EXCEPT`"));
            }
        };
        let keeps_raw = word == "UNION ALL" && !matches!(purpose, QueryPurpose::TypedTable(_));
        let [left, right] = sides;
        let first = self.bind_set(left, parent, &QueryPurpose::Table)?;
        let second = self.bind_set(right, parent, &QueryPurpose::Table)?;
        let kinds = match purpose {
            QueryPurpose::TypedTable(kinds) => kinds.clone(),
            _ => common_kinds(&first.columns, &second.columns, place)?,
        };
        let is_same = |bound: &BoundQuery| {
            let columns = bound.columns.iter().zip(&first.columns).zip(&kinds);
            columns
                .into_iter()
                .all(|((column, other), kind)| column.kind == *kind && column.has_raw == other.has_raw)
        };
        if keeps_raw && is_same(&first) && is_same(&second) {
            let sql = self.joined_sides([&first, &second], word, purpose);
            return Ok(BoundQuery { sql, columns: first.columns, is_single_row: false });
        }
        if word != "UNION ALL" {
            for kind in &kinds {
                check_sortable(TypedExpression::leaf(String::new(), kind.clone(), place), word)?;
            }
        }
        let typed = QueryPurpose::TypedTable(kinds);
        let first = self.bind_set(left, parent, &typed)?;
        let second = self.bind_set(right, parent, &typed)?;
        let sql = self.joined_sides([&first, &second], word, purpose);
        Ok(BoundQuery { sql, columns: first.columns, is_single_row: false })
    }

    /// Both sides as plain `SELECT`s, so that brackets keep their meaning.
    fn joined_sides(&mut self, sides: [&BoundQuery; 2], word: &str, purpose: &QueryPurpose) -> String {
        let mut side = |bound: &BoundQuery| {
            let alias = self.alias();
            format!(
                "SELECT {} FROM ({}) AS {alias}",
                passed_on_columns(&bound.columns, &alias, purpose),
                bound.sql
            )
        };
        let [left, right] = sides;
        format!("{} {word} {}", side(left), side(right))
    }
}

fn common_kinds(
    left: &[OutputColumn],
    right: &[OutputColumn],
    place: QueryPosition,
) -> BindResult<Vec<SqlType>> {
    if left.len() != right.len() {
        let message = format!(
            "both sides must have the same number of columns, not {} and {}",
            left.len(),
            right.len()
        );
        return Err(QueryRefusal::new(message, place));
    }
    let pairs = left.iter().zip(right);
    pairs
        .map(|(left, right)| {
            common_type(&left.kind, &right.kind).ok_or_else(|| {
                let message =
                    format!("`{}` is {} on one side and {} on the other", left.name, left.kind, right.kind);
                QueryRefusal::new(message, place).hint("cast one of them")
            })
        })
        .collect()
}
