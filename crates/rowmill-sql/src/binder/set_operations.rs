//! `UNION`, `INTERSECT` and `EXCEPT`.

use sqlparser::ast::{SetExpr, SetOperator, SetQuantifier, Spanned as _};

use super::Binder;
use super::core_text::passed_on;
use super::outputs::{BoundQuery, OutputColumn, Purpose};
use super::scope::Scope;
use super::windows::ordered;
use crate::expression::refusal::{Bound, Refusal, TextPlace};
use crate::expression::typed::Typed;
use crate::values::common_type::common_type;
use crate::values::sql_type::SqlType;

impl Binder<'_> {
    pub(super) fn bind_operation(
        &mut self,
        sides: [&SetExpr; 2],
        operator: SetOperator,
        quantifier: SetQuantifier,
        parent: Option<&Scope<'_>>,
        purpose: &Purpose,
    ) -> Bound<BoundQuery> {
        let place = TextPlace::from(sides[1].span());
        let word = match (operator, quantifier) {
            (SetOperator::Union, SetQuantifier::All) => "UNION ALL",
            (SetOperator::Union, SetQuantifier::None | SetQuantifier::Distinct) => "UNION",
            (SetOperator::Intersect, SetQuantifier::None | SetQuantifier::Distinct) => "INTERSECT",
            (SetOperator::Except, SetQuantifier::None | SetQuantifier::Distinct) => "EXCEPT",
            _ => {
                return Err(Refusal::new(format!("`{operator} {quantifier}` is not supported"), place)
                    .hint("use `UNION ALL`, `UNION`, `INTERSECT` or `EXCEPT`"));
            }
        };
        let keeps_raw = word == "UNION ALL" && !matches!(purpose, Purpose::TypedTable(_));
        let [left, right] = sides;
        let first = self.bind_set(left, parent, &Purpose::Table)?;
        let second = self.bind_set(right, parent, &Purpose::Table)?;
        let kinds = match purpose {
            Purpose::TypedTable(kinds) => kinds.clone(),
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
                ordered(Typed::leaf(String::new(), kind.clone(), place), word)?;
            }
        }
        let typed = Purpose::TypedTable(kinds);
        let first = self.bind_set(left, parent, &typed)?;
        let second = self.bind_set(right, parent, &typed)?;
        let sql = self.joined_sides([&first, &second], word, purpose);
        Ok(BoundQuery { sql, columns: first.columns, is_single_row: false })
    }

    /// Both sides as plain `SELECT`s, so that brackets keep their meaning.
    fn joined_sides(&mut self, sides: [&BoundQuery; 2], word: &str, purpose: &Purpose) -> String {
        let mut side = |bound: &BoundQuery| {
            let alias = self.alias();
            format!("SELECT {} FROM ({}) AS {alias}", passed_on(&bound.columns, &alias, purpose), bound.sql)
        };
        let [left, right] = sides;
        format!("{} {word} {}", side(left), side(right))
    }
}

fn common_kinds(left: &[OutputColumn], right: &[OutputColumn], place: TextPlace) -> Bound<Vec<SqlType>> {
    if left.len() != right.len() {
        let message = format!(
            "both sides must have the same number of columns, not {} and {}",
            left.len(),
            right.len()
        );
        return Err(Refusal::new(message, place));
    }
    let pairs = left.iter().zip(right);
    pairs
        .map(|(left, right)| {
            common_type(&left.kind, &right.kind).ok_or_else(|| {
                let message =
                    format!("`{}` is {} on one side and {} on the other", left.name, left.kind, right.kind);
                Refusal::new(message, place).hint("cast one of them")
            })
        })
        .collect()
}
