//! Queries over a table: what is asked of it, what comes out, and what is refused.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Memory, query, rows};
use rowmill_sql::{Comparison, Condition, Kind, Scalar, Wanted};
use rowmill_types::ProblemCode;

#[test]
fn only_columns_that_are_used_are_asked_for_and_conditions_are_told() {
    let equal = |column, value| Condition { column, comparison: Comparison::Equal, value };
    for (sql, columns, conditions) in [
        ("SELECT name FROM input", vec![1], vec![]),
        ("SELECT count(*) FROM input", vec![], vec![]),
        ("WITH t AS (SELECT * FROM input) SELECT id FROM t", vec![0], vec![]),
        ("SELECT id FROM input WHERE name = 'Bo'", vec![0, 1], vec![equal(1, Scalar::Text("Bo".into()))]),
        ("SELECT id FROM input WHERE id = 3", vec![0], vec![equal(0, Scalar::Integer(3))]),
        (
            "SELECT 1 FROM input WHERE score >= 0.5 AND id < 4",
            vec![0, 2],
            vec![
                Condition { column: 2, comparison: Comparison::AtLeast, value: Scalar::Real(0.5) },
                Condition { column: 0, comparison: Comparison::Less, value: Scalar::Integer(4) },
            ],
        ),
        ("SELECT 1 FROM input WHERE id IN (1, 2)", vec![0], vec![]),
        ("SELECT 1 FROM input WHERE name = 5", vec![1], vec![]),
        ("SELECT 1 FROM input WHERE name = 'bo' COLLATE NOCASE", vec![1], vec![]),
        ("SELECT 1 FROM input WHERE ok = 1", vec![3], vec![]),
        ("SELECT 1 FROM input WHERE id = 1 OR name = 'Bo'", vec![0, 1], vec![]),
    ] {
        let table = Arc::new(Memory::people());
        rows(&table, sql).unwrap();
        assert_eq!(table.asked(), [Wanted { columns, conditions }], "{sql}");
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
            "SELECT v.column1, i.rowid FROM (VALUES (1), (4)) v JOIN input i ON i.id = v.column1",
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
fn columns_keep_their_kind_where_they_are_nothing_else() {
    let table = Arc::new(Memory::people());
    let sql = "WITH t AS (SELECT * FROM input) SELECT id, ok, tags AS list, price, upper(name) AS u, id + 1 AS next FROM t";
    let query = query(&table, sql).unwrap();
    let kinds: Vec<_> = query.columns().iter().map(|column| (column.name.as_str(), column.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("id", Some(Kind::Integer)),
            ("ok", Some(Kind::Boolean)),
            ("list", Some(Kind::Nested)),
            ("price", Some(Kind::Decimal(10, 2))),
            ("u", None),
            ("next", None),
        ]
    );
    assert!(query.streams() && !query.uses_json());
}

#[test]
fn json_functions_are_noticed() {
    let table = Arc::new(Memory::people());
    for (sql, uses) in [
        ("SELECT tags -> '$[0]' AS x FROM input", true),
        ("SELECT json_extract(tags, '$[0]') AS x FROM input", true),
        ("SELECT t.value FROM input, json_each(tags) t", true),
        ("SELECT list(id) AS x FROM input", true),
        ("SELECT upper(tags) AS x FROM input", false),
    ] {
        assert_eq!(query(&table, sql).unwrap().uses_json(), uses, "{sql}");
    }
}

#[test]
fn only_one_query_that_reads_is_taken() {
    let table = Arc::new(Memory::people());
    for sql in
        ["SELECT 1;", "  select 1 -- end", "VALUES (1)", "WITH a AS (SELECT 1) SELECT * FROM a; /* end */"]
    {
        assert!(query(&table, sql).is_ok(), "{sql}");
    }
    for (sql, message) in [
        ("", "must be exactly one `SELECT`"),
        ("-- nothing", "must be exactly one `SELECT`"),
        ("DELETE FROM input", "must be exactly one `SELECT`"),
        ("SELECT 1; SELECT 2", "must be exactly one `SELECT`"),
        ("PRAGMA table_info(input)", "must be exactly one `SELECT`"),
        ("ATTACH 'x.db' AS x", "must be exactly one `SELECT`"),
        ("EXPLAIN SELECT 1", "must be exactly one `SELECT`"),
        ("WITH x AS (SELECT 1) DELETE FROM input", "may not be modified"),
        ("WITH x AS (SELECT 1) INSERT INTO input(id) SELECT * FROM x", "is refused: a query may only read"),
        ("SELECT * FROM pragma_table_info('input')", "is refused"),
        ("SELECT name FROM sqlite_master", "is refused: the table `sqlite_master` may not be read"),
        ("SELECT load_extension('x')", "is refused: the function `load_extension`"),
        ("SELECT * FROM dbstat", "is refused: the table `dbstat`"),
        ("SELECT id FROM input WHERE id = ?", "has places for values"),
        ("SELECT id, name AS id FROM input", "gives two columns the name `id`"),
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
    let table = Arc::new(Memory::people());
    for (sql, message, hint) in [
        (
            "SELECT nmae\nFROM input",
            "no such column: nmae\n    SELECT nmae\n           ^",
            "did you mean `name`? columns: `id`",
        ),
        (
            "SELECT id\nFORM input",
            "near \"input\": syntax error\n    FORM input\n         ^",
            "`docs/sql.md`",
        ),
        ("SELECT \"Ada\" FROM input", "no such column: \"Ada\"", "strings stand between single quotes"),
        ("SELECT * FROM data", "no such table: data", "the rows of `--input` are the table `input`"),
        (
            "SELECT regexp_match(name, 'x') FROM input",
            "no such function: regexp_match",
            "did you mean `regexp_matches`?",
        ),
        ("SELECT strptime(name, 'x') FROM input", "no such function: strptime", "`YYYY-MM-DD`"),
        ("SELECT 1 FROM input WHERE name ILIKE 'a%'", "near \"ILIKE\"", "`lower(x) LIKE lower(pattern)`"),
        ("SELECT id::TEXT FROM input", "unrecognized token: \":\"", "`CAST(x AS INTEGER)`"),
    ] {
        let problem = query(&table, sql).unwrap_err();
        assert!(problem.message.contains(message), "{sql}: {}", problem.message);
        assert!(problem.hint.as_ref().unwrap().contains(hint), "{sql}: {:?}", problem.hint);
    }
}

#[test]
fn a_query_that_fails_on_a_value_says_what_to_do() {
    let table = Arc::new(Memory::people());
    for (sql, message, hint) in [
        ("SELECT sum(9223372036854775807) FROM input", "integer overflow", "total(x)"),
        ("SELECT json_extract(name, '$.a') FROM input", "malformed JSON", "json_valid"),
        (
            "SELECT regexp_matches(name, '(') FROM input",
            "the pattern `(` cannot be used",
            "correct the query",
        ),
        (
            "SELECT date_trunc('fortnight', name) FROM input",
            "`fortnight` is no part of a date",
            "correct the query",
        ),
    ] {
        let problem = rows(&table, sql).unwrap_err();
        assert_eq!(problem.code, ProblemCode::QueryFailed, "{sql}");
        assert!(problem.message.contains(message), "{sql}: {}", problem.message);
        assert!(problem.hint.as_ref().unwrap().contains(hint), "{sql}: {:?}", problem.hint);
    }
}

#[test]
fn the_problem_of_a_table_is_told_as_it_is() {
    let table = Arc::new(Memory::people().failing_after(2));
    let problem = rows(&table, "SELECT id FROM input").unwrap_err();
    assert_eq!((problem.code, problem.message.as_str()), (ProblemCode::InputUnreadable, "the disk is gone"));
    assert_eq!(rows(&table, "SELECT id FROM input LIMIT 1").unwrap(), ["1"]);
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
