//! Hints about names that a query cannot use.

use rowmill_types::settings::{INPUT, SQL_ENGINE};

use crate::names::nearest;
use crate::{aggregates, scalars};

/// How many names a hint lists.
const LISTED: usize = 12;

/// The replacement for functions of the current time, which differs between time zones.
fn instead_of_present(name: &str) -> Option<String> {
    let instead = match name.to_ascii_lowercase().as_str() {
        "now" | "get_current_timestamp" | "current_timestamp" | "localtimestamp" => {
            "time, such as `TIMESTAMP '2026-01-31 12:00:00'`"
        }
        "today" | "current_date" => "day, such as `DATE '2026-01-31'`",
        _ => return None,
    };
    Some(format!(
        "what it gives depends on the time zone of the machine: write the {instead}, or use {duckdb}",
        duckdb = SQL_ENGINE.to("duckdb")
    ))
}

/// Functions that do not exist here, with their equivalents.
const SPELLINGS: &[(&str, &str)] = &[
    ("to_timestamp", "`make_timestamp(x * 1000000)` makes a time of seconds"),
    ("substring_index", "`split_part(x, ',', 1)` takes a part of a text"),
    ("date", "`CAST(x AS DATE)` makes a day"),
    ("datetime", "`CAST(x AS TIMESTAMP)` makes a time"),
    ("unixepoch", "`epoch(x)` counts seconds since 1970"),
    ("total", "`sum(x)` sums"),
    ("json_group_array", "`list(x)` collects a list"),
    ("json_array", "`[a, b]` makes a list"),
    ("json_object", "`{'a': a, 'b': b}` makes an object"),
    ("json_each", "`SELECT unnest(list) AS x` gives a row for each element"),
    ("printf", "`a || b` joins text"),
    ("format", "`a || b` joins text"),
    ("glob", "`regexp_matches(x, pattern)` and `LIKE` match patterns"),
    (
        "generate_series",
        "`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)` counts",
    ),
    ("range", "`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9)` counts"),
];

/// The hint for an unknown column.
pub(crate) fn for_column(name: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return "the input has no columns, because no rows were found in it".to_owned();
    }
    let near = nearest(name, names.iter().copied()).map(|near| format!("did you mean `{near}`? "));
    let listed: Vec<_> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    let more =
        if names.len() > LISTED { format!(" and {} more", names.len() - LISTED) } else { String::new() };
    let found = "they are what the input declares, or what its first rows have";
    let near = near.unwrap_or_default();
    format!("{near}columns: {}{more}; {found}; strings stand between single quotes", listed.join(", "))
}

/// The hint for an unknown function.
pub(crate) fn for_function(name: &str) -> String {
    if let Some(ours) = spelling(name) {
        return ours;
    }
    let known = scalars::names();
    let candidates = known.iter().chain(aggregates::names()).copied();
    match nearest(name, candidates) {
        Some(near) => format!("did you mean `{near}`? `docs/sql.md` lists the functions"),
        None => format!(
            "`docs/sql.md` lists the functions; {sql_engine} has all of DuckDB's",
            sql_engine = SQL_ENGINE.to("duckdb")
        ),
    }
}

/// The hint for an unknown table.
pub(crate) fn for_table(name: &str) -> String {
    spelling(name).unwrap_or_else(|| format!("the rows of {INPUT} are the table `input`"))
}

fn spelling(name: &str) -> Option<String> {
    let ours = SPELLINGS.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(name));
    ours.map(|(_, ours)| (*ours).to_owned()).or_else(|| instead_of_present(name))
}
