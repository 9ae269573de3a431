//! What is rejected: the table in the manual is complete, and lists nothing that is accepted.

use std::path::Path;
use std::sync::Arc;

use crate::support::{Memory, rows};

const MANUAL: &str = include_str!("../../../../docs/sql.md");

/// The beginning of each row of the manual's table, with queries that are rejected for it.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("text compared with a number", &["SELECT name > 8 FROM input"]),
    (
        "JSON compared with a number",
        &[
            "SELECT to_json(meta) = 8 FROM input",
            "SELECT to_json(meta) = name FROM input",
            "SELECT to_json(meta) = 'a' FROM input",
        ],
    ),
    ("a time with a time zone other than UTC", &["SELECT '2024-05-01 10:30:00+02'::TIMESTAMP"]),
    ("time zones other than UTC", &["SELECT at AT TIME ZONE 'Europe/Rome' FROM input"]),
    ("`now()`, `current_date`", &["SELECT now()", "SELECT current_date"]),
    ("sorting or grouping by an INTERVAL", &["SELECT at - at AS x FROM input ORDER BY x"]),
    (
        "patterns of regular expressions",
        &[
            "SELECT regexp_matches(name, name) FROM input",
            "SELECT regexp_extract(name, 'a', id) FROM input",
            "SELECT string_agg(name, name) FROM input",
            "SELECT quantile_cont(score, score) FROM input",
            "SELECT round(score, id) FROM input",
            "SELECT meta -> name FROM input",
            "SELECT strftime(at, name) FROM input",
            "SELECT meta[name] FROM input",
            "SELECT name SIMILAR TO name FROM input",
        ],
    ),
    ("regular expressions over several lines", &["SELECT regexp_matches(name, 'a', 'm') FROM input"]),
    ("lists and objects cast to text", &["SELECT CAST(tags AS VARCHAR) FROM input"]),
    ("times with a time zone, bytes and maps", &["SELECT to_json(TIMESTAMPTZ '2024-01-01 00:00:00+00')"]),
    (
        "`ROLLUP`, `CUBE`",
        &[
            "SELECT count(*) FROM input GROUP BY ROLLUP (name)",
            "SELECT a.id FROM input a SEMI JOIN input b ON a.id = b.id",
            "SELECT sum(id) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM input",
            "SELECT list_transform(tags, lambda x: x) FROM input",
        ],
    ),
    ("`~` and `!~`", &["SELECT name ~ 'a' FROM input"]),
    ("`GROUP BY` and `ORDER BY` of something", &["SELECT count(*) FROM input GROUP BY 'a'"]),
    ("`median` and `quantile_cont` of decimals", &["SELECT median(price::DECIMAL(38,2)) FROM input"]),
    ("`week` in `date_diff`", &["SELECT date_diff('week', at, at) FROM input"]),
    ("two columns of the result", &["SELECT id, name AS id FROM input"]),
    ("comparisons in a chain", &["SELECT id = id = ok FROM input", "SELECT ok = NOT ok FROM input"]),
    (
        "`NATURAL JOIN`",
        &[
            "SELECT 1 FROM input NATURAL JOIN input b",
            "SELECT 1 FROM input FULL JOIN input b USING (id)",
            "SELECT id FROM input UNION BY NAME SELECT id FROM input",
            "SELECT id FROM input EXCEPT ALL SELECT id FROM input",
            "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL BY NAME SELECT i + 1 FROM t WHERE i < 3) SELECT i FROM t",
        ],
    ),
    (
        "`DISTINCT` together with `QUALIFY`",
        &[
            "SELECT DISTINCT id FROM input QUALIFY row_number() OVER (ORDER BY id) = 1",
            "SELECT sum(DISTINCT id) OVER () FROM input",
            "SELECT lag(id) IGNORE NULLS OVER (ORDER BY id) FROM input",
            "SELECT median(score) OVER () FROM input",
        ],
    ),
    ("`GROUP BY ALL` together with `*`", &["SELECT *, count(*) FROM input GROUP BY ALL"]),
    ("samples", &["SELECT id FROM input TABLESAMPLE SYSTEM (10)", "SELECT id FROM input TABLESAMPLE 10%"]),
    ("lists joined by `\\|\\|`", &["SELECT tags || tags FROM input", "SELECT to_json(tags)[0] FROM input"]),
    (
        "`unnest` beside",
        &["SELECT unnest(tags), count(*) FROM input", "SELECT upper(unnest(tags)) FROM input"],
    ),
    (
        "types and operators that are not listed above",
        &["SELECT CAST(name AS UUID) FROM input", "SELECT id & 1 FROM input"],
    ),
    ("parts of a TIME", &["SELECT hour(at::TIME) FROM input"]),
    (
        "a time with a time zone plus or minus an interval",
        &[
            "SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' - INTERVAL 3 HOUR",
            "SELECT epoch(TIMESTAMPTZ '2024-01-01 00:00:00+00')",
        ],
    ),
    ("a list after `IN`", &["SELECT id FROM input WHERE 'x' IN tags"]),
    ("all fields of an object", &["SELECT meta.* FROM input"]),
    (
        "named arguments",
        &[
            "SELECT struct_pack(a := id) FROM input",
            "SELECT * FROM input ORDER BY id FETCH FIRST 1 ROWS ONLY",
            "SELECT id FROM input WHERE id = ?",
            "SELECT id FROM input ORDER BY id USING >",
            "SELECT id FROM input LIMIT 1 BY id",
            "SELECT quantile_cont(0.5) WITHIN GROUP (ORDER BY score) FROM input",
            "SELECT string_agg(name ORDER BY id LIMIT 1) FROM input",
            "SELECT name FROM input GROUP BY name WITH ROLLUP",
            "SELECT (meta).* FROM input",
            "SELECT id INTO other FROM input",
        ],
    ),
];

/// Syntax that the parser does not accept in this dialect, so that these messages never occur.
const NEVER_REPORTED: &[&str] = &[
    "this form of `*` is not supported",
    "`USING` is not supported",
    "`LIMIT … BY` is not supported",
    "this form of `GROUP BY` is not supported",
    "this entry of a select list is not supported",
];

/// Refusals that speak of the query as a whole and have no place in it.
const WITHOUT_PLACE: &[&str] = &["SELECT id, name AS id FROM input"];

fn table() -> Vec<&'static str> {
    let rows = MANUAL.lines().skip_while(|line| *line != "| refused | write |").skip(2);
    rows.map_while(|line| line.strip_prefix("| ")).collect()
}

/// The message for every example, one per line.
fn refusals() -> Vec<String> {
    let people = Arc::new(Memory::people());
    let queries = EXAMPLES.iter().flat_map(|(_, queries)| queries.iter());
    let reported = queries.map(|sql| {
        let taken = rows(&people, sql);
        assert!(taken.is_err(), "{sql} is taken: {taken:?}");
        taken.unwrap_err().message.lines().next().unwrap_or_default().to_owned()
    });
    reported.collect()
}

#[test]
fn every_row_of_the_table_of_refusals_is_refused_and_has_an_example() {
    let (rows, problem) = (table(), refusals());
    assert!(
        problem.iter().all(|message| message.contains("cannot be run") || message.contains("two columns"))
    );
    for (row, _) in EXAMPLES {
        assert_eq!(rows.iter().filter(|known| known.starts_with(row)).count(), 1, "`docs/sql.md`: {row}");
    }
    assert_eq!(rows.len(), EXAMPLES.len(), "rows without an example: {rows:#?}");
}

#[test]
fn every_refusal_has_an_example_in_the_table() {
    let problem = refusals();
    let mut missing = Vec::new();
    for text in texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let is_reason = ["not supported", "in the query"].iter().any(|part| text.contains(part));
        let has_all = |message: &&String| {
            let mut rest = message.as_str();
            parts(&text).iter().all(|part| rest.split_once(part).map(|(_, behind)| rest = behind).is_some())
        };
        if is_reason && problem.iter().find(has_all).is_none() && !NEVER_REPORTED.contains(&text.as_str()) {
            missing.push(text);
        }
    }
    assert!(missing.is_empty(), "add an example, and its row to `docs/sql.md`: {missing:#?}");
}

#[test]
fn every_refusal_shows_its_place_in_the_query() {
    let people = Arc::new(Memory::people());
    let queries = EXAMPLES.iter().flat_map(|(_, queries)| queries.iter().copied());
    let has_place = |sql: &str| {
        let problem = rows(&people, sql).unwrap_err();
        let lines: Vec<&str> = problem.message.lines().collect();
        let [.., shown, mark] = lines[..] else { return false };
        // A long line is shown in part.
        mark.trim_start() == "^"
            && mark.len() <= shown.len() + 1
            && sql.contains(shown.trim().trim_matches('…'))
    };
    let without: Vec<_> = queries.filter(|sql| !has_place(sql)).collect();
    assert_eq!(without, WITHOUT_PLACE);
}

/// A text without what stands for values in it.
fn parts(text: &str) -> Vec<&str> {
    let pieces = text.split('{').enumerate();
    pieces
        .filter_map(
            |(at, piece)| if at == 0 { Some(piece) } else { piece.split_once('}').map(|(_, rest)| rest) },
        )
        .collect()
}

/// The string literals in the sources of a folder, except in comments and hints.
fn texts(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(texts(&path));
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let lines =
            code.lines().filter(|line| !line.trim_start().starts_with("//") && !line.contains("hint("));
        found.extend(lines.flat_map(|line| line.split('"').skip(1).step_by(2)).map(str::to_owned));
    }
    found
}
