//! Assembles the text of a `SELECT`.

use super::QueryBinder;
use super::order::{SortKey, SortTarget};
use super::outputs::{OutputColumn, OutputItem, QueryPurpose};
use crate::expression::refusal::BindResult;

/// The parts of a `SELECT`, with resolved names.
#[derive(Debug, Clone, Default)]
pub(super) struct SelectParts {
    pub(super) items: Vec<OutputItem>,
    pub(super) from: String,
    /// The part after `FROM`: `WHERE`, `GROUP BY` and `HAVING`.
    pub(super) rest: String,
    pub(super) sort: Vec<SortKey>,
    pub(super) limit: String,
}

/// How the computed rows of a `SELECT` are reduced.
#[derive(Debug, Clone)]
pub(super) enum RowReduction {
    None,
    Distinct,
    /// Keeps the first row for each value of these.
    DistinctOn(Vec<String>),
    /// Keeps the rows for which this is true.
    Qualify(String),
}

/// A text and the columns that it returns.
pub(super) type TextAndColumns = (String, Vec<OutputColumn>);

impl QueryBinder<'_> {
    /// The text of a `SELECT`.
    pub(super) fn select_text(
        &mut self,
        parts: &SelectParts,
        thinning: &RowReduction,
        purpose: &QueryPurpose,
    ) -> BindResult<TextAndColumns> {
        let has_raw = parts.items.iter().any(|item| item.typed.raw().is_some());
        match thinning {
            RowReduction::None => self.plain_text(parts, "", purpose),
            RowReduction::Distinct if !has_raw => self.plain_text(parts, "DISTINCT ", purpose),
            RowReduction::Distinct => self.distinct_text(parts, purpose),
            RowReduction::DistinctOn(keys) => {
                let extra: Vec<_> =
                    keys.iter().enumerate().map(|(at, key)| format!("{key} AS d{at}")).collect();
                let places: Vec<_> = (0..keys.len()).map(|at| format!("d{at}")).collect();
                self.filtered_text(parts, &extra, &ReductionFilter::FirstOf(places), purpose)
            }
            RowReduction::Qualify(condition) => {
                self.filtered_text(parts, &[format!("{condition} AS k")], &ReductionFilter::Where, purpose)
            }
        }
    }

    fn plain_text(
        &mut self,
        parts: &SelectParts,
        distinct: &str,
        purpose: &QueryPurpose,
    ) -> BindResult<TextAndColumns> {
        let (listed, columns) = self.listed(&parts.items, purpose)?;
        let mut keys = Vec::new();
        for key in &parts.sort {
            let sorted = match &key.by {
                SortTarget::Output(at) => parts.items.get(*at).map(|item| &item.typed),
                SortTarget::Expression(typed) => Some(typed),
            };
            if let Some(column) = sorted.and_then(|typed| self.emitted.plain_column(typed))
                && keys.is_empty()
                && distinct.is_empty()
            {
                keys.push(key.direction.first_term(column));
                continue;
            }
            let text = match &key.by {
                SortTarget::Output(at) => {
                    match parts.items.get(*at).filter(|item| item.typed.raw().is_some()) {
                        Some(item) => self.emitted.expression_sql(&item.typed)?,
                        None => format!("c{at}"),
                    }
                }
                SortTarget::Expression(typed) => self.emitted.expression_sql(typed)?,
            };
            keys.push(format!("{text} {}", key.direction));
        }
        let order = order_text(&keys);
        let from = if parts.from.is_empty() { String::new() } else { format!(" FROM {}", parts.from) };
        let sql = format!("SELECT {distinct}{listed}{from}{}{order}{}", parts.rest, parts.limit);
        Ok((sql, columns))
    }

    /// The select list: in a result, the input's JSON replaces values; elsewhere it accompanies them.
    fn listed(&mut self, items: &[OutputItem], purpose: &QueryPurpose) -> BindResult<TextAndColumns> {
        let mut listed = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let is_result = *purpose == QueryPurpose::Result;
            match item.typed.raw() {
                Some(raw) if is_result => listed.push(format!("{raw} AS c{at}")),
                raw => {
                    listed.push(format!("{} AS c{at}", self.emitted.expression_sql(&item.typed)?));
                    listed.extend(raw.map(|raw| format!("{raw} AS q{at}")));
                }
            }
        }
        Ok((listed.join(", "), items.iter().map(OutputItem::column).collect()))
    }

    /// `DISTINCT` by values, with the input's JSON from one of the rows.
    fn distinct_text(&mut self, parts: &SelectParts, purpose: &QueryPurpose) -> BindResult<TextAndColumns> {
        let inner = SelectParts { sort: Vec::new(), limit: String::new(), ..parts.clone() };
        let (inner, columns) = self.plain_text(&inner, "", &QueryPurpose::Table)?;
        let alias = self.alias();
        let keys: Vec<_> = (0..columns.len()).map(|at| format!("{alias}.c{at}")).collect();
        let order = order_text(&sort_places(parts, &alias));
        let listed = passed_on_columns(&columns, &alias, purpose);
        let sql = format!(
            "SELECT {listed} FROM ({inner}) AS {alias} GROUP BY {}{order}{}",
            keys.join(", "),
            parts.limit
        );
        Ok((sql, columns))
    }

    /// A `SELECT` whose rows are filtered by something computed with them.
    fn filtered_text(
        &mut self,
        parts: &SelectParts,
        extra: &[String],
        filtering: &ReductionFilter,
        purpose: &QueryPurpose,
    ) -> BindResult<TextAndColumns> {
        let (listed, columns) = self.listed(&parts.items, &QueryPurpose::Table)?;
        let mut listed = vec![listed];
        listed.extend(extra.iter().cloned());
        for (at, key) in parts.sort.iter().enumerate() {
            if let SortTarget::Expression(typed) = &key.by {
                listed.push(format!("{} AS s{at}", self.emitted.expression_sql(typed)?));
            }
        }
        let from = if parts.from.is_empty() { String::new() } else { format!(" FROM {}", parts.from) };
        let mut inner = format!("SELECT {}{from}{}", listed.join(", "), parts.rest);
        let mut alias = self.alias();
        let condition = match filtering {
            ReductionFilter::Where => "k",
            ReductionFilter::FirstOf(places) => {
                let order = order_text(&sort_places(parts, &alias));
                let keys = places.join(", ");
                inner = format!(
                    "SELECT *, row_number() OVER (PARTITION BY {keys}{order}) AS n FROM ({inner}) AS {alias}"
                );
                alias = self.alias();
                "n = 1"
            }
        };
        let order = order_text(&sort_places(parts, &alias));
        let listed = passed_on_columns(&columns, &alias, purpose);
        let sql =
            format!("SELECT {listed} FROM ({inner}) AS {alias} WHERE {condition}{order}{}", parts.limit);
        Ok((sql, columns))
    }
}

/// How computed rows are filtered.
enum ReductionFilter {
    Where,
    FirstOf(Vec<String>),
}

/// The sort keys of a query that computes them as columns.
fn sort_places(parts: &SelectParts, alias: &str) -> Vec<String> {
    let places = parts.sort.iter().enumerate().map(|(at, key)| match key.by {
        SortTarget::Output(output) => format!("{alias}.c{output} {}", key.direction),
        SortTarget::Expression(_) => format!("{alias}.s{at} {}", key.direction),
    });
    places.collect()
}

pub(super) fn order_text(keys: &[String]) -> String {
    if keys.is_empty() { String::new() } else { format!(" ORDER BY {}", keys.join(", ")) }
}

/// The columns of a query, passed on by its outer query.
pub(super) fn passed_on_columns(columns: &[OutputColumn], alias: &str, purpose: &QueryPurpose) -> String {
    let mut listed = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        if column.has_raw && *purpose == QueryPurpose::Result {
            listed.push(format!("{alias}.q{at} AS c{at}"));
            continue;
        }
        listed.push(format!("{alias}.c{at} AS c{at}"));
        if column.has_raw {
            listed.push(format!("{alias}.q{at} AS q{at}"));
        }
    }
    listed.join(", ")
}
