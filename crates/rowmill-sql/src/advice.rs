//! Hints about names that a query cannot use.

use rowmill_types::settings::{INPUT, SQL_ENGINE};

use crate::{aggregates, scalars};
use rowmill_types::nearest_name;

/// How many names a hint lists.
const LISTED: usize = 12;

/// The replacement for functions of the current time, which differs between time zones.
fn instead_of_present(name: &str) -> Option<String> {
    let instead = match name.to_ascii_lowercase().as_str() {
        "now" | "get_current_timestamp" | "current_timestamp" | "localtimestamp" => {
            "time, such as `TIMESTAMP '2026-01-31 12:00:00'`"
        }
        "today" | "current_date" => "date, such as `DATE '2026-01-31'`",
        _ => return None,
    };
    Some(format!(
        "its value depends on the time zone of the machine: write the {instead}, or use {duckdb}",
        duckdb = SQL_ENGINE.with_value("duckdb")
    ))
}

/// Functions that do not exist here, with their equivalents.
const SPELLINGS: &[(&str, &str)] = &[
    ("to_timestamp", "use `make_timestamp(x * 1000000)` to convert seconds to a time"),
    ("substring_index", "use `split_part(x, ',', 1)` for a part of a text"),
    ("date", "use `CAST(x AS DATE)`"),
    ("datetime", "use `CAST(x AS TIMESTAMP)`"),
    ("unixepoch", "use `epoch(x)` for seconds since 1970"),
    ("total", "use `sum(x)`"),
    (
        "mode",
        "use `SELECT x FROM input GROUP BY x ORDER BY count(*) DESC LIMIT 1` for the most frequent value",
    ),
    ("json_group_array", "use `list(x)` to collect a list"),
    ("json_array", "use `[a, b]` for a list"),
    ("json_object", "use `{'a': a, 'b': b}` for an object"),
    ("json_each", "use `SELECT unnest(list) AS x` for one row per element"),
    ("printf", "use `a || b` to join text"),
    ("format", "use `a || b` to join text"),
    ("glob", "use `regexp_matches(x, pattern)` or `LIKE` to match patterns"),
    ("generate_series", "use `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)`"),
    ("range", "use `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9)`"),
];

/// The hint for an unknown column.
pub(crate) fn for_column(name: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return "the input has no columns, because no rows were found in it".to_owned();
    }
    let near = nearest_name(name, names.iter().copied()).map(|near| format!("did you mean `{near}`? "));
    let listed: Vec<_> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    let more =
        if names.len() > LISTED { format!(" and {} more", names.len() - LISTED) } else { String::new() };
    let found = "as declared by the input, or found in its first rows";
    let near = near.unwrap_or_default();
    format!("{near}columns: {}{more}; {found}; write strings in single quotes", listed.join(", "))
}

/// The hint for an unknown function.
pub(crate) fn for_function(name: &str) -> String {
    if let Some(ours) = spelling(name) {
        return ours;
    }
    let known = scalars::function_names();
    let candidates = known.iter().chain(aggregates::aggregate_names()).copied();
    match nearest_name(name, candidates) {
        Some(near) => format!("did you mean `{near}`? see `docs/sql.md` for all functions"),
        None => format!(
            "see `docs/sql.md` for all functions; {sql_engine} has all of DuckDB's",
            sql_engine = SQL_ENGINE.with_value("duckdb")
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
