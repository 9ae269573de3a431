//! Queries over a table: which columns they request, what they return, and what is rejected.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Memory, Panics, query, rows};
use rowmill_sql::{ComparisonOperator, ComparisonValue, ScanCondition, ScanRequest};
use rowmill_types::ProblemCode;

#[test]
fn only_columns_that_are_used_are_asked_for_and_conditions_are_reported() {
    let equal = |column, value| ScanCondition { column, comparison: ComparisonOperator::Equal, value };
    for (sql, columns, conditions) in [
        ("SELECT name FROM input", vec![1], vec![]),
        ("SELECT count(*) FROM input", vec![], vec![]),
        ("WITH t AS (SELECT * FROM input) SELECT id FROM t", vec![0], vec![]),
        ("SELECT * EXCLUDE (name, score, ok, tags, price, at) FROM input", vec![0, 7], vec![]),
        (
            "SELECT id FROM input WHERE name = 'Bo'",
            vec![0, 1],
            vec![equal(1, ComparisonValue::Text("Bo".into()))],
        ),
        ("SELECT id FROM input WHERE id = 3", vec![0], vec![equal(0, ComparisonValue::Integer(3))]),
        (
            "SELECT 1 FROM input WHERE score >= 0.5 AND id < 4",
            vec![0, 2],
            vec![
                ScanCondition {
                    column: 2,
                    comparison: ComparisonOperator::AtLeast,
                    value: ComparisonValue::Real(0.5),
                },
                ScanCondition {
                    column: 0,
                    comparison: ComparisonOperator::Less,
                    value: ComparisonValue::Integer(4),
                },
            ],
        ),
        ("SELECT 1 FROM input WHERE id IN (1, 2)", vec![0], vec![]),
        ("SELECT 1 FROM input WHERE name ILIKE 'bo'", vec![1], vec![]),
        ("SELECT 1 FROM input WHERE ok", vec![3], vec![]),
        (
            "SELECT 1 FROM input WHERE at < '2024-01-01 06:00:00'",
            vec![6],
            vec![ScanCondition {
                column: 6,
                comparison: ComparisonOperator::Less,
                value: ComparisonValue::Text("2024-01-01T06:00:00".into()),
            }],
        ),
        ("SELECT 1 FROM input WHERE id = 1 OR name = 'Bo'", vec![0, 1], vec![]),
    ] {
        let table = Arc::new(Memory::people());
        rows(&table, sql).unwrap();
        assert_eq!(table.asked(), [ScanRequest { columns, conditions }], "{sql}");
    }
}

#[test]
fn a_table_is_copied_only_where_it_would_be_scanned_again_and_again() {
    for (sql, scans, expected) in [
        ("SELECT count(*) FROM input", 1, vec!["4"]),
        ("SELECT id FROM input WHERE score > (SELECT avg(score) FROM input)", 2, vec!["3"]),
        (
            "SELECT id FROM input UNION ALL SELECT -id FROM input WHERE id = 2",
            2,
            vec!["1", "2", "3", "4", "-2"],
        ),
        ("SELECT a.id, b.id AS b FROM input a JOIN input b ON b.id = a.id + 1", 1, vec!["1|2", "2|3", "3|4"]),
        (
            "SELECT (SELECT count(*) FROM input b WHERE b.score > a.score) FROM input a ORDER BY a.id",
            1,
            vec!["1", "3", "0", "2"],
        ),
        (
            "SELECT v.x, i.rowid FROM (VALUES (1), (4)) v(x) JOIN input i ON i.id = v.x",
            1,
            vec!["1|10", "4|40"],
        ),
    ] {
        let table = Arc::new(Memory::people());
        let mut found = rows(&table, sql).unwrap();
        if !sql.contains("UNION") {
            found.sort_by_key(|row| expected.iter().position(|one| one == row));
        }
        assert_eq!(found, expected, "{sql}");
        assert_eq!(table.asked().len(), scans, "{sql}");
    }
}

#[test]
fn columns_keep_what_the_input_has_where_they_are_nothing_else() {
    let table = Arc::new(Memory::people());
    let sql = "WITH t AS (SELECT * FROM input) SELECT id, ok, score AS s, tags, price, at, meta, upper(name) AS u FROM t";
    let bound = query(&table, sql).unwrap();
    let kinds: Vec<_> =
        bound.columns().iter().map(|column| format!("{} {}", column.name, column.kind)).collect();
    assert_eq!(
        kinds.join(", "),
        "id BIGINT, ok BOOLEAN, s DOUBLE, tags VARCHAR[], price DECIMAL(10,2), at TIMESTAMP, meta STRUCT(lang VARCHAR, size BIGINT), u VARCHAR"
    );
    assert!(bound.is_streaming());
    let found = rows(&table, sql).unwrap();
    let first = r#"1|true|1.50|["x", "y"]|"2.50"|"2024-01-01T05:00:00"|{"size": 1, "lang": "de"}|"ADA""#;
    assert_eq!(found[0], first);
    assert_eq!(rows(&table, &format!("SELECT DISTINCT * FROM ({sql}) ORDER BY id")).unwrap()[0], first);
    assert_eq!(rows(&table, &format!("({sql}) UNION ALL ({sql}) LIMIT 1")).unwrap(), [first]);
    // Computed values are written in normal form.
    assert_eq!(
        rows(&table, "SELECT max(meta) AS m, list(score) AS l, at + INTERVAL 1 DAY AS a FROM input WHERE id = 1 GROUP BY at").unwrap(),
        [r#"{"lang":"de","size":1}|[1.5]|"2024-01-02 05:00:00""#]
    );
}

#[test]
fn only_one_query_that_reads_is_taken() {
    let table = Arc::new(Memory::people());
    for sql in
        ["SELECT 1;", "  select 1 -- end", "FROM input", "WITH a AS (SELECT 1) SELECT * FROM a; /* end */"]
    {
        assert!(query(&table, sql).is_ok(), "{sql}");
    }
    for (sql, message) in [
        ("", "found"),
        ("-- nothing", "found"),
        ("DELETE FROM input", "must be exactly one `SELECT`"),
        ("SELECT 1; SELECT 2", "there is text after the query"),
        ("PRAGMA table_info(input)", "cannot be run"),
        ("ATTACH 'x.db' AS x", "must be exactly one `SELECT`"),
        ("EXPLAIN SELECT 1", "must be exactly one `SELECT`"),
        ("WITH x AS (SELECT 1) DELETE FROM input", "may only read"),
        ("WITH x AS (SELECT 1) INSERT INTO input(id) SELECT * FROM x", "may only read"),
        ("SELECT * FROM pragma_table_info('input')", "no such table function"),
        ("SELECT name FROM sqlite_master", "no such table: sqlite_master"),
        ("SELECT load_extension('x')", "no such function: load_extension"),
        ("SELECT * FROM read_csv('secret.csv')", "no such table function"),
        ("SELECT id FROM input WHERE id = ?", "has placeholders"),
        ("SELECT id, name AS id FROM input", "returns two columns with the name `id`"),
    ] {
        let problem = query(&table, sql).unwrap_err();
        assert_eq!(problem.code, ProblemCode::InvalidQuery, "{sql}");
        assert!(problem.message.contains(message), "{sql}: {}", problem.message);
        assert!(problem.hint.is_some(), "{sql}");
    }
    assert_eq!(table.asked(), []);
}

#[test]
fn a_wrong_query_shows_the_place_and_what_was_perhaps_meant() {
    assert_refused(&[
        (
            "SELECT nmae\nFROM input",
            "no such column: nmae\n    SELECT nmae\n           ^",
            "did you mean `name`? columns: `id`",
        ),
        (
            "SELECT id\nFORM input",
            "there is text after the query\n    FORM input\n         ^",
            "write one query",
        ),
        ("SELECT \"Ada\" FROM input", "no such column: Ada", "write strings in single quotes"),
        ("SELECT * FROM data", "no such table: data", "the rows of `input` are the table `input`"),
        (
            "SELECT regexp_match(name, 'x') FROM input",
            "no such function: regexp_match\n    SELECT regexp_match(name, 'x') FROM input\n           ^",
            "did you mean `regexp_matches`?",
        ),
        (
            "SELECT 1 FROM input WHERE id > 1 AND name > 8",
            "VARCHAR and INTEGER cannot be combined in a comparison without a cast\n    SELECT 1 FROM input \
             WHERE id > 1 AND name > 8\n                                                ^",
            "TRY_CAST(x AS BIGINT)",
        ),
        ("SELECT id FROM input WHERE sum(id) > 1", "`sum` cannot be used in WHERE", "`HAVING`"),
        (
            "SELECT name, count(*) AS c FROM input GROUP BY id",
            "`name` is neither in `GROUP BY`",
            "any_value(name)",
        ),
        (
            "SELECT regexp_matches(name, '(') AS x FROM input",
            "invalid pattern: unclosed group",
            "`docs/sql.md`",
        ),
        (
            "SELECT date_trunc('fortnight', at) AS x FROM input",
            "`fortnight` is not a part of a date or time",
            "`quarter`",
        ),
        (
            "SELECT year(name) AS x FROM input",
            "`year` takes TIMESTAMP here, not VARCHAR",
            "CAST(x AS TIMESTAMP)",
        ),
    ]);
}

#[test]
fn a_query_with_a_wrong_value_or_form_says_what_to_write_instead() {
    assert_refused(&[
        ("SELECT length(id) AS x FROM input", "there is no `length(BIGINT)`", "VARCHAR"),
        ("SELECT '2024-13-01'::DATE AS d", "'2024-13-01' is not a valid DATE", "such as `2026-03-01`"),
        (
            "SELECT 1 FROM input WHERE at > '2026-03'",
            "'2026-03' is not a valid TIMESTAMP",
            "write a whole and valid date, such as `2026-03-01`",
        ),
        ("SELECT CAST('n/a' AS DOUBLE) AS x", "'n/a' is not a valid DOUBLE", "without quotes"),
        (
            "SELECT epoch(TIMESTAMPTZ '2024-01-01 00:00:00+00') AS x",
            "`epoch` takes TIMESTAMP here",
            "`x AT TIME ZONE 'UTC'`",
        ),
        ("SELECT mode(id) AS x FROM input", "no such function: mode", "GROUP BY x ORDER BY count(*)"),
        (
            "SELECT hash(id) AS x FROM input",
            "no such function: hash",
            "see `docs/sql.md` for all functions; ",
        ),
        (
            "SELECT * REPLACE (id + 1 AS id) EXCLUDE (name) FROM input",
            "`EXCLUDE` is not expected here",
            "`* EXCLUDE (a) REPLACE (b + 1 AS b) RENAME (c AS d)`",
        ),
        (
            "SELECT * REPLACE (id + 1 AS id) RENAME (id AS number) FROM input",
            "`id` is in both `REPLACE` and `RENAME`",
            "`EXCLUDE`",
        ),
        ("SELECT id FROM input WHERE 'x' IN\n tags", "`IN` without parentheses", "list_contains(tags, 'a')"),
        ("SELECT meta.* FROM input", "`meta` is a column, not a table", "`meta.name`"),
        ("SELECT other.* FROM input", "no such table: other", "the table `input`"),
        ("SELECT id FROM input TABLESAMPLE 10%", "samples are not supported", "for a sample"),
        ("SELECT to_days(score) AS x FROM input", "there is no `to_days(DOUBLE)`", "CAST(x AS BIGINT)"),
        ("SELECT meta.lnag FROM input", "the object has no field `lnag`", "did you mean `lang`?"),
        ("SELECT now() AS x", "no such function: now", "write the time"),
        (
            "SELECT 1 FROM input WHERE at < '2024-01-01 06:00:00+02'",
            "cannot be cast to TIMESTAMP",
            "write the time in UTC, without the offset, or `CAST(x AS TIMESTAMPTZ) AT TIME ZONE 'UTC'`",
        ),
    ]);
}

/// Every query is refused with this part of a message and this part of a hint.
fn assert_refused(queries: &[(&str, &str, &str)]) {
    let table = Arc::new(Memory::people());
    for (sql, message, hint) in queries {
        let problem = query(&table, sql).unwrap_err();
        assert!(problem.message.contains(message), "{sql}: {}", problem.message);
        assert!(problem.hint.as_ref().unwrap().contains(hint), "{sql}: {:?}", problem.hint);
    }
}

#[test]
fn a_query_that_fails_on_a_value_says_what_to_do() {
    let table = Arc::new(Memory::people());
    for (sql, message, hint) in [
        (
            "SELECT id * 9223372036854775807 AS x FROM input",
            "2 * 9223372036854775807 does not fit into BIGINT",
            "`WHERE`",
        ),
        ("SELECT id // 0 AS x FROM input", "divides by zero", "`WHERE`"),
        (
            "SELECT name::INTEGER AS x FROM input",
            "'Ada' is not a valid INTEGER\n    SELECT name::INTEGER AS x FROM input\n           ^",
            "TRY_CAST",
        ),
        ("SELECT json_extract(name, '$.a') AS x FROM input", "'Ada' is not JSON", "`WHERE`"),
        ("SELECT (SELECT id FROM input) AS x", "returns more than one row", "correct the query"),
    ] {
        let problem = rows(&table, sql).unwrap_err();
        assert_eq!(problem.code, ProblemCode::QueryFailed, "{sql}");
        assert!(problem.message.contains(message), "{sql}: {}", problem.message);
        assert!(problem.hint.as_ref().unwrap().contains(hint), "{sql}: {:?}", problem.hint);
    }
}

#[test]
fn the_problem_of_a_table_is_reported_as_it_is() {
    let table = Arc::new(Memory::people().failing_after(2));
    let problem = rows(&table, "SELECT id FROM input").unwrap_err();
    assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::InputUnreadable, "the disk is gone"));
    assert_eq!(rows(&table, "SELECT id FROM input LIMIT 1").unwrap(), ["1"]);
}

#[test]
fn a_table_that_panics_fails_the_query_and_not_the_process() {
    for part in [Panics::Begin, Panics::Advance, Panics::Value, Panics::Raw, Panics::Number, Panics::Drop] {
        let table = Arc::new(Memory::people().panicking_in(part));
        let problem = rows(&table, "SELECT rowid, id, score, tags FROM input").unwrap_err();
        assert_eq!(
            (problem.code, problem.message.as_str()),
            (ProblemCode::Internal, "reading the input panicked"),
            "{part:?}"
        );
    }
}

#[test]
fn a_query_that_is_not_wanted_any_more_ends() {
    let table = Arc::new(Memory::people());
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    query(&table, endless)
        .unwrap()
        .run(&Arc::new(AtomicBool::new(true)), &mut |_| ControlFlow::Continue(()))
        .unwrap();
    let cancelled = Arc::new(AtomicBool::new(false));
    let mut seen = 0;
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let outcome = query(&table, endless).unwrap().run(&cancelled, &mut |_| {
        seen += 1;
        cancelled.store(seen == 3, Ordering::Relaxed);
        if seen == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(outcome.is_ok() && seen <= 5);
}
