//! JSON columns: computed values are DuckDB's, passed-on values are the file's.

use crate::sql::meaning::{check, refusal};
use crate::sql::support::Input;

/// Values of several kinds, with unnecessary blanks, escapes and digits.
const ROWS: &str = r#"{"id":1,"m":[1,  2]}
{"id":2,"m":{"b" : 1.0, "a": "\u00e9\/", "b": 2}}
{"id":3,"m":1E+2}
{"id":4,"m":100.0}
{"id":5,"m":100000000000000000000}
{"id":6,"m":-0}
{"id":7,"m":"1.5"}
{"id":8,"m":null}
{"id":9,"m":[1,2]}
"#;

fn input() -> Input {
    Input::new("rows.jsonl", ROWS)
}

#[test]
fn json_that_is_cast_to_text_has_no_blanks_escapes_and_digits_that_need_not_be_there() {
    let input = input();
    check(&input, "SELECT id FROM input WHERE m::VARCHAR = '[1,2]'", &["{\"id\":1}", "{\"id\":9}"]);
    check(&input, "SELECT id FROM input WHERE m::VARCHAR = '[1,  2]'", &[]);
    check(
        &input,
        "SELECT m::VARCHAR AS x, length(m) AS n FROM input WHERE id IN (2, 3, 5, 6, 8) ORDER BY id",
        &[
            r#"{"x":"{\"b\":1.0,\"a\":\"é/\",\"b\":2}","n":24}"#,
            r#"{"x":"100.0","n":5}"#,
            r#"{"x":"100000000000000000000","n":21}"#,
            r#"{"x":"0","n":1}"#,
            r#"{"x":null,"n":null}"#,
        ],
    );
}

#[test]
fn json_is_compared_sorted_and_grouped_by_that_text() {
    let input = input();
    check(&input, "SELECT id FROM input WHERE m = '[1,2]'", &["{\"id\":1}", "{\"id\":9}"]);
    check(
        &input,
        "SELECT id FROM input WHERE m IN ('100.0', '0')",
        &["{\"id\":3}", "{\"id\":4}", "{\"id\":6}"],
    );
    check(&input, "SELECT count(DISTINCT m) AS n, count(*) AS c FROM input", &["{\"n\":6,\"c\":9}"]);
    check(
        &input,
        "SELECT count(*) AS n, min(id) AS first FROM input WHERE m IS NOT NULL GROUP BY m ORDER BY m",
        &[
            "{\"n\":1,\"first\":7}",
            "{\"n\":1,\"first\":6}",
            "{\"n\":2,\"first\":3}",
            "{\"n\":1,\"first\":5}",
            "{\"n\":2,\"first\":1}",
            "{\"n\":1,\"first\":2}",
        ],
    );
    let problem = refusal(&input, "SELECT id FROM input WHERE m = 'x'");
    assert!(problem.contains("'x' is not JSON, but is compared with JSON"), "{problem}");
    assert!(problem.contains("`x ->> '$' = 'x'`"), "{problem}");
    let problem = refusal(&input, "SELECT id FROM input WHERE m = 100");
    assert!(
        problem.contains("JSON and INTEGER cannot be combined") && problem.contains("TRY_CAST"),
        "{problem}"
    );
}

#[test]
fn parts_of_json_are_the_first_of_their_name_and_casts_of_it_are_strict() {
    let input = input();
    check(
        &input,
        "SELECT m -> '$.b' AS j, m ->> '$.a' AS t, json_keys(m) AS k FROM input WHERE id = 2",
        &[r#"{"j":1.0,"t":"é/","k":["b","a","b"]}"#],
    );
    check(
        &input,
        "SELECT TRY_CAST(m AS INTEGER) AS i, TRY_CAST(m AS DOUBLE) / 1e19 AS d, TRY_CAST(m AS HUGEINT) AS h, \
         TRY_CAST(m AS DOUBLE[]) AS l FROM input WHERE id IN (1, 3, 5, 7) ORDER BY id",
        &[
            r#"{"i":null,"d":null,"h":null,"l":[1.0,2.0]}"#,
            r#"{"i":100,"d":1e-17,"h":100,"l":null}"#,
            r#"{"i":null,"d":10.0,"h":100000000000000000000,"l":null}"#,
            r#"{"i":null,"d":1.5e-19,"h":null,"l":null}"#,
        ],
    );
}

#[test]
fn a_json_column_that_is_passed_on_is_what_the_file_has() {
    let input = input();
    let rows = input.rows("SELECT m FROM input ORDER BY id LIMIT 3");
    assert_eq!(rows, [r#"{"m":[1,  2]}"#, r#"{"m":{"b" : 1.0, "a": "\u00e9\/", "b": 2}}"#, "{\"m\":1E+2}"]);
    let grouped = input.rows("SELECT m, count(*) AS n FROM input WHERE id IN (3, 4) GROUP BY m");
    assert!(["{\"m\":1E+2,\"n\":2}", "{\"m\":100.0,\"n\":2}"].contains(&&*grouped[0]), "{grouped:?}");
}

#[test]
fn parts_of_objects_and_lists_are_written_by_their_types() {
    let rows = "{\"id\":1,\"s\":{\"a\":1,\"t\":\"2024-01-02T03:04:05\"},\"l\":[1, 2.50]}\n{\"id\":2,\"s\":{\"b\":\"x\",\"a\":2.5},\"l\":[]}\n";
    let input = Input::new("rows.jsonl", rows);
    check(
        &input,
        "SELECT s ->> '$.t' AS t, s -> '$.a' AS a, s -> '$.b' AS b, l -> 0 AS l, s ->> '$.c' AS c FROM input",
        &[
            r#"{"t":"2024-01-02 03:04:05","a":1.0,"b":null,"l":1.0,"c":null}"#,
            r#"{"t":null,"a":2.5,"b":"x","l":null,"c":null}"#,
        ],
    );
    let twice = Input::new("rows.jsonl", "{\"s\":{\"a\":1}}\n{\"s\":{\"a\":1,\"a\":2}}\n");
    let problem = super::support::read_all(&mut *twice.sql("SELECT s.a FROM input").unwrap().open().unwrap());
    let problem = problem.unwrap_err();
    assert!(problem.message.contains("row 2 of the input has {\"a\":1,\"a\":2} in `s`"), "{problem}");
}

#[test]
fn numbers_are_added_one_after_the_other() {
    let rows: String = (0..10).map(|_| "{\"x\":0.1}\n").collect();
    let input = Input::new("rows.jsonl", &rows);
    let expected = ["{\"s\":0.9999999999999999,\"a\":0.09999999999999999}"];
    check(&input, "SELECT sum(x) AS s, avg(x) AS a FROM input", &expected);
    let rows = "{\"x\":1e16}\n{\"x\":1.0}\n{\"x\":-1e16}\n";
    check(&Input::new("rows.jsonl", rows), "SELECT sum(x) AS s FROM input", &["{\"s\":0.0}"]);
}
