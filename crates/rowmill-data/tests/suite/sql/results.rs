//! `--sql` over inputs of every kind: the form of results, and what is reported about rows that a query
//! cannot see.

use std::fmt::Write as _;

use crate::sql::support::{Input, numbers, read_all, texts};
use rowmill_core::ports::ReadLimit;
use rowmill_types::ProblemCode;

#[test]
fn results_are_rows_with_ordinals_and_the_kinds_of_their_columns() {
    let input = Input::new(
        "rows.jsonl",
        "{\"id\":7,\"ok\":true,\"tags\":[1, {\"a\":2}],\"big\":18446744073709551615,\"x\":1.50,\"t\":\"[1]\"}\n\
         \n{\"id\":8,\"ok\":false,\"tags\":null,\"big\":5,\"x\":2,\"t\":\"b\\n\\\"c\"}\n",
    );
    let results = input.sql("SELECT * FROM input ORDER BY id").unwrap();
    assert_eq!(
        texts(&*results),
        [
            r#"{"id":7,"ok":true,"tags":[1, {"a":2}],"big":18446744073709551615,"x":1.50,"t":"[1]"}"#,
            r#"{"id":8,"ok":false,"tags":null,"big":5,"x":2,"t":"b\n\"c"}"#,
        ]
    );
    assert_eq!(numbers(&*results), [1, 2]);
    assert_eq!(
        input.rows("SELECT rowid AS \"row \"\"n\"\"\", x > 1 AS c, tags -> '$[1]' AS j FROM input"),
        [r#"{"row \"n\"":1,"c":true,"j":{"a":2}}"#, r#"{"row \"n\"":3,"c":true,"j":null}"#]
    );
    assert_eq!(
        input.rows("SELECT 'abc'::BLOB AS t, 9e999 AS i, 'nan'::DOUBLE AS n FROM input LIMIT 1"),
        [r#"{"t":"abc","i":"Infinity","n":"NaN"}"#]
    );
    assert_eq!(
        input.rows("SELECT string_split('a-b', '-') AS parts FROM input LIMIT 1"),
        [r#"{"parts":["a","b"]}"#]
    );
    assert_eq!(results.identity().unwrap(), input.dataset().identity().unwrap());
    assert_eq!(input.heard(), Vec::<String>::new());
}

#[test]
fn fields_of_results_are_found_by_their_names() {
    let input = Input::new("rows.jsonl", "{\"a\":1}\n");
    let results = input.sql("SELECT a AS \"é\", a AS \"q\"\"\", 'x' AS \"\" FROM input").unwrap();
    let rows = read_all(&mut *results.open().unwrap()).unwrap();
    let row = rows[0].as_ref().unwrap();
    let fields: Vec<_> = row.fields().collect();
    assert_eq!(fields, [("é", "1"), ("q\"", "1"), ("", "\"x\"")]);
    assert_eq!(rowmill_types::Row::parse(1, row.json_text().to_owned()).unwrap().fields().count(), 3);
}

#[test]
fn values_of_csv_are_numbers_where_all_of_a_column_are() {
    let input = Input::new("rows.csv", "id,zip,n,ok,note\n1,01234,2.50,true,\n2,99999,-1,false,x\n");
    assert_eq!(
        input.rows("SELECT *, n + 1 AS next, note IS NULL AS blank FROM input WHERE id >= 1"),
        [
            r#"{"id":1,"zip":"01234","n":2.50,"ok":true,"note":null,"next":3.5,"blank":true}"#,
            r#"{"id":2,"zip":"99999","n":-1,"ok":false,"note":"x","next":0.0,"blank":false}"#,
        ]
    );
}

#[test]
fn rows_that_cannot_be_read_are_left_out_of_a_query_and_reported_once() {
    let input = Input::new("rows.jsonl", "{\"a\":1}\nnope\n{\"a\":2}\n[3]\n");
    let results = input.sql("SELECT sum(a) AS s FROM input").unwrap();
    for _ in 0..2 {
        assert_eq!(texts(&*results), [r#"{"s":3}"#]);
    }
    let heard = input.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(
        heard[0].starts_with(
            "2 rows of the input cannot be read and are skipped by the query, first at row 2: Line 2:"
        ),
        "{heard:?}"
    );
}

#[test]
fn a_field_that_comes_late_is_reported_once_with_its_row() {
    let mut text = "{\"a\":1}\n".repeat(20_480);
    text.push_str("{\"a\":2,\"late\":1}\n{\"later\":1,\"a\":3}\n");
    let input = Input::new("rows.jsonl", &text);
    assert_eq!(input.rows("SELECT max(a) AS m, count(*) AS c FROM input"), [r#"{"m":3,"c":20482}"#]);
    let heard = input.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].starts_with("row 20481 has the field `late`"), "{heard:?}");
}

#[test]
fn fields_that_differ_in_case_are_reported_and_can_both_be_used() {
    let input = Input::new("rows.jsonl", "{\"a\":1,\"A\":2}\n");
    assert_eq!(input.rows("SELECT a, A_1 FROM input"), [r#"{"a":1,"A_1":2}"#]);
    assert!(input.heard()[0].contains("the field `A` is the column `A_1`"), "{:?}", input.heard());
}

#[test]
fn an_input_without_rows_gives_the_results_of_nothing() {
    let input = Input::new("rows.jsonl", "\n\n");
    assert_eq!(input.rows("SELECT count(*) AS c FROM input"), [r#"{"c":0}"#]);
    let problem = input.sql("SELECT a FROM input").unwrap_err();
    assert!(problem.hint.unwrap().contains("no columns"));
}

#[test]
fn a_query_reads_only_what_it_needs_and_ends_when_it_is_dropped() {
    let mut text = String::new();
    for number in 0..30_000 {
        writeln!(text, "{{\"n\":{number},\"pad\":\"{}\"}}", "x".repeat(100)).unwrap();
    }
    let input = Input::new("rows.jsonl", &text);
    let first = input.sql("SELECT n FROM input LIMIT 3").unwrap();
    let mut source = first.open().unwrap();
    assert_eq!(read_all(&mut *source).unwrap().len(), 3);
    let position = source.position();
    assert!(position.read < position.total.unwrap() / 4, "{position:?}");
    let endless = input.sql("SELECT a.n FROM input a, input b, input c").unwrap();
    let mut source = endless.open().unwrap();
    let mut rows = Vec::new();
    assert!(source.read(&mut rows, ReadLimit { rows: 1, bytes: 1 }).unwrap());
    assert_eq!(rows.len(), 1);
    drop(source);
    let sorted = input.sql("SELECT a.n FROM input a, input b, input c ORDER BY a.n + b.n + c.n").unwrap();
    drop(sorted.open().unwrap());
}

#[test]
fn a_sort_gives_everything_in_order() {
    let mut text = String::new();
    for number in 0..30_000_u64 {
        writeln!(text, "{{\"n\":{}}}", number * 7919 % 30_000).unwrap();
    }
    let input = Input::new("rows.jsonl", &text);
    let rows = input.rows("SELECT n FROM input ORDER BY n DESC");
    assert_eq!(
        (rows.len(), rows[0].as_str(), rows[29_999].as_str()),
        (30_000, r#"{"n":29999}"#, r#"{"n":0}"#)
    );
    assert!(rows.iter().rev().enumerate().all(|(at, row)| *row == format!("{{\"n\":{at}}}")));
}

#[test]
fn a_query_that_fails_gives_the_rows_before_and_then_the_problem() {
    let input = Input::new("rows.jsonl", "{\"j\":\"[1]\"}\n{\"j\":\"[2]\"}\n{\"j\":\"broken\"}\n");
    let results = input.sql("SELECT json_extract(j, '$[0]') AS v FROM input").unwrap();
    let mut source = results.open().unwrap();
    let mut rows = Vec::new();
    let room = ReadLimit { rows: 10, bytes: 1000 };
    let problem = loop {
        match source.read(&mut rows, room) {
            Ok(more) => assert!(more),
            Err(problem) => break problem,
        }
    };
    assert_eq!((rows.len(), problem.code), (2, ProblemCode::QueryFailed));
    assert!(problem.message.contains("'broken' is not JSON"), "{}", problem.message);
}

#[test]
fn temporary_files_do_not_stay() {
    let input = Input::new("rows.jsonl", &"{\"a\":1}\n".repeat(500));
    assert_eq!(
        input.rows("SELECT count(*) AS c FROM input x JOIN input y ON x.a = y.a WHERE x.rowid < 3").len(),
        1
    );
    assert_eq!(std::fs::read_dir(input.temp()).unwrap().count(), 1);
}

#[test]
fn a_value_that_breaks_the_type_of_its_column_is_named_with_its_row_and_the_remedy() {
    let mut text = "{\"x\":1,\"id\":7}\n".repeat(20_480);
    text.push_str("{\"x\":\"n/a\",\"id\":8}\n");
    let input = Input::new("rows.jsonl", &text);
    let problem =
        read_all(&mut *input.sql("SELECT id FROM input WHERE x > 8").unwrap().open().unwrap()).unwrap_err();
    assert_eq!(problem.code, ProblemCode::ColumnTypeBroken);
    assert!(
        problem.message.contains("row 20481 of the input has \"n/a\" in `x`, but the column is BIGINT, as inferred from the first rows"),
        "{}",
        problem.message
    );
    assert!(problem.hint.as_ref().unwrap().contains("`types: x=text`"), "{:?}", problem.hint);
    // A column that is only passed on is not parsed.
    assert_eq!(input.rows("SELECT id FROM input WHERE id > 7"), [r#"{"id":8}"#]);
    let typed = input
        .typed_sql("SELECT x, id FROM input WHERE coalesce(TRY_CAST(x AS BIGINT), 9) > 8", &[("x", "text")]);
    assert_eq!(texts(&*typed.unwrap()), [r#"{"x":"n/a","id":8}"#]);
}

#[test]
fn a_value_of_a_csv_that_breaks_the_type_of_its_column_is_named_too() {
    let mut text = "x,id\n".to_owned();
    text.push_str(&"1,7\n".repeat(20_480));
    text.push_str("n/a,8\n");
    let input = Input::new("rows.csv", &text);
    let problem =
        read_all(&mut *input.sql("SELECT id FROM input WHERE x > 8").unwrap().open().unwrap()).unwrap_err();
    assert_eq!(problem.code, ProblemCode::ColumnTypeBroken);
    assert!(
        problem
            .message
            .contains("has \"n/a\" in `x`, but the column is BIGINT, as inferred from the first rows"),
        "{}",
        problem.message
    );
}

#[test]
fn mixed_columns_pass_on_every_value_and_are_compared_only_with_a_cast() {
    let input = Input::new("rows.jsonl", "{\"x\":true}\n{\"x\":\"[1]\"}\n{\"x\":1.50}\n{\"x\":[1, 2]}\n");
    let rows = [r#"{"x":true}"#, r#"{"x":"[1]"}"#, r#"{"x":1.50}"#, r#"{"x":[1, 2]}"#];
    assert_eq!(input.rows("SELECT x FROM input"), rows);
    let problem = input.sql("SELECT x FROM input WHERE x > 1").unwrap_err();
    assert!(problem.message.contains("JSON and INTEGER cannot be combined"), "{}", problem.message);
    assert!(problem.hint.as_ref().unwrap().contains("TRY_CAST"), "{:?}", problem.hint);
    assert_eq!(input.rows("SELECT x FROM input WHERE TRY_CAST(x AS DOUBLE) > 1"), [r#"{"x":1.50}"#]);
}

#[test]
fn times_are_compared_as_times_whatever_form_they_have() {
    let input = Input::new("rows.csv", "id,t\n1,2024-01-01T05:00:00\n2,2024-01-01 07:00:00\n");
    assert_eq!(input.rows("SELECT id FROM input WHERE t < '2024-01-01 06:00:00'"), [r#"{"id":1}"#]);
}
