//! What to do about a query that SQLite does not take.

use crate::functions;
use crate::names::nearest;
use crate::table::NamedTable;

/// How many names are listed.
const LISTED: usize = 12;

/// Spellings of other databases, with ours.
const SPELLINGS: &[(&str, &str)] = &[
    ("ILIKE", "`lower(x) LIKE lower(pattern)` compares without case"),
    ("SIMILAR", "`x REGEXP pattern` matches regular expressions"),
    ("INTERVAL", "`date(x, '+1 day')` and `datetime(x, '-3 months')` move dates"),
    ("EXTRACT", "`year(x)`, `month(x)` or `date_part('hour', x)` take dates apart"),
    ("::", "`CAST(x AS INTEGER)` changes types"),
    (":", "`CAST(x AS INTEGER)` changes types"),
    ("QUALIFY", "put the window function into a subquery and filter outside of it"),
    ("EXCLUDE", "name the columns that you want"),
    ("PIVOT", "write `sum(CASE WHEN name = 'a' THEN value END) AS a` for every column"),
    ("SAMPLE", "`--sample N` takes a sample"),
    ("TABLESAMPLE", "`--sample N` takes a sample"),
    ("unnest", "`FROM input, json_each(input.tags) AS tag` gives a row for each `tag.value`"),
    (
        "strptime",
        "dates must be written as `YYYY-MM-DD`; take other forms apart with `substr` or `regexp_extract`",
    ),
    ("to_timestamp", "`datetime(x, 'unixepoch')` makes a time of seconds"),
    ("epoch_ms", "`datetime(x / 1000, 'unixepoch')` makes a time of milliseconds"),
    ("make_date", "`format('%04d-%02d-%02d', y, m, d)` makes a date"),
    ("try_cast", "`CASE WHEN x REGEXP '^-?[0-9]+$' THEN CAST(x AS INTEGER) END` casts where it can"),
    ("struct_extract", "`x ->> '$.name'` takes a field out of an object"),
    ("json_extract_string", "`x ->> '$.name'` takes a field out of an object"),
    ("list_extract", "`x ->> '$[0]'` takes an element out of a list, counted from 0"),
    ("list_aggregate", "`(SELECT sum(value) FROM json_each(x))` sums a list"),
    ("list_value", "`json_array(a, b)` makes a list"),
    ("struct_pack", "`json_object('a', a, 'b', b)` makes an object"),
    ("array_agg", "`json_group_array(x)` or `list(x)` collects a list"),
    ("array_length", "`json_array_length(x)` counts a list"),
    ("len", "`length(x)` counts characters, `json_array_length(x)` elements of a list"),
    (
        "generate_series",
        "`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)` counts",
    ),
    ("range", "`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9)` counts"),
    ("read_csv", "the rows of `--input` are the table `input`"),
    ("read_parquet", "the rows of `--input` are the table `input`"),
    ("read_json", "the rows of `--input` are the table `input`"),
];

/// What to do about a query that cannot be run.
pub(crate) fn for_wrong_query(what: &str, tables: &[NamedTable]) -> Option<String> {
    if let Some(name) = what.strip_prefix("no such column: ") {
        return Some(for_column(name, tables));
    }
    if let Some(name) = what.strip_prefix("no such function: ") {
        return Some(for_function(name));
    }
    if let Some(name) = what.strip_prefix("no such table: ") {
        return Some(
            spelling(name)
                .map_or_else(|| "the rows of `--input` are the table `input`".to_owned(), str::to_owned),
        );
    }
    let token = what.split('"').nth(1)?;
    spelling(token).map(str::to_owned)
}

/// What to do about a query that failed on a value.
pub(crate) fn for_failed_query(what: &str) -> &'static str {
    if what.contains("integer overflow") {
        "make it a number with a point first: `sum(CAST(x AS REAL))`, or use `total(x)`"
    } else if what.contains("malformed JSON") || what.contains("JSON path") {
        "leave out what is no JSON with `WHERE json_valid(column)`"
    } else if what.contains("too big") {
        "a value grew beyond 1 GB: take parts of it, or collect less into one row"
    } else {
        "correct the query, or leave out the rows that it fails on with `WHERE`"
    }
}

fn for_column(name: &str, tables: &[NamedTable]) -> String {
    // SQLite adds what it thinks behind the name, and perhaps the table before it.
    let name = name.split(" - ").next().unwrap_or(name);
    let name = name.rsplit('.').next().unwrap_or(name).trim_matches('"');
    let columns = tables.first().map(|named| named.table.columns()).unwrap_or_default();
    let names = || columns.iter().map(|column| column.name.as_str());
    let near = nearest(name, names()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let listed: Vec<_> = names().take(LISTED).map(|name| format!("`{name}`")).collect();
    let more =
        if columns.len() > LISTED { format!(" and {} more", columns.len() - LISTED) } else { String::new() };
    let found = "they are what the input declares, or what its first rows have";
    if listed.is_empty() {
        return "the input has no columns, because no rows were found in it".to_owned();
    }
    format!("{near}columns: {}{more}; {found}; strings stand between single quotes", listed.join(", "))
}

fn for_function(name: &str) -> String {
    if let Some(ours) = spelling(name) {
        return ours.to_owned();
    }
    match nearest(name, functions::NAMES.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? `docs/sql.md` lists the functions"),
        None => "`docs/sql.md` lists the functions".to_owned(),
    }
}

fn spelling(name: &str) -> Option<&'static str> {
    SPELLINGS.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(name)).map(|(_, ours)| *ours)
}
