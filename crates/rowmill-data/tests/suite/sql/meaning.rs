//! The meaning of queries by example: the rows must equal those that DuckDB returns in the same run.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Decimal128Array, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use rowmill_types::ProblemCode;

use crate::sql::parquet_rows::parquet_of;
use crate::sql::support::{Input, read_all, texts};

/// Queries a file with DuckDB.
const PROGRAM: &str = "import duckdb, sys\n\
    connection = duckdb.connect()\n\
    connection.execute(f\"CREATE VIEW input AS SELECT * FROM '{sys.argv[1]}'\")\n\
    connection.execute(f\"COPY ({sys.argv[2]}) TO '/dev/stdout' (FORMAT json)\")\n";

/// Checks the rows of a query here and in DuckDB.
#[track_caller]
pub(crate) fn check(input: &Input, sql: &str, expected: &[&str]) {
    assert_eq!(input.rows(sql), expected, "{sql}");
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let asked = Command::new(&python).args(["-c", PROGRAM]).arg(input.path()).arg(sql).output();
    let asked = asked.unwrap_or_else(|error| {
        panic!("{}: {error}; run `bash scripts/prepare-python` first", python.display())
    });
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let theirs = String::from_utf8(asked.stdout).unwrap();
    assert_eq!(theirs.lines().collect::<Vec<_>>(), expected, "DuckDB: {sql}");
}

/// The message and the hint for a rejected query.
#[track_caller]
pub(crate) fn refusal(input: &Input, sql: &str) -> String {
    let problem = input.sql(sql).unwrap_err();
    assert_eq!(problem.code, ProblemCode::InvalidQuery, "{}", problem.message);
    format!("{}\n{}", problem.message, problem.hint.unwrap_or_default())
}

fn one_row() -> Input {
    Input::new("rows.jsonl", "{\"id\":1,\"s\":[\"a\",\"b\"],\"d\":\"2024-05-01 10:30:00\"}\n")
}

fn parquet(columns: Vec<(&str, ArrayRef)>) -> Input {
    Input::of_bytes("rows.parquet", &parquet_of(columns))
}

#[test]
fn times_of_parquet_are_compared_with_times_that_are_written_as_text() {
    let hour = 3_600_000_000;
    let at = 1_704_067_200_000_000; // 2024-01-01 00:00:00
    let times = TimestampMicrosecondArray::from(vec![at + 5 * hour, at + 6 * hour, at + 6 * hour - 1]);
    let input = parquet(vec![("id", Arc::new(Int64Array::from(vec![1, 2, 3]))), ("t", Arc::new(times))]);
    check(&input, "SELECT id FROM input WHERE t < '2024-01-01 06:00:00'", &["{\"id\":1}", "{\"id\":3}"]);
    check(&input, "SELECT id FROM input WHERE t = '2024-01-01T06:00:00'", &["{\"id\":2}"]);
    check(&input, "SELECT id FROM input WHERE t > '2024-01-01 05:59:59.9'", &["{\"id\":2}", "{\"id\":3}"]);
    let kept = input.filtered("t >= TIMESTAMP '2024-01-01 06:00:00'").unwrap();
    assert_eq!(texts(&*kept).len(), 1);
}

#[test]
fn a_csv_column_with_one_word_among_its_numbers_is_not_compared_with_a_number_unless_it_is_cast() {
    let input = Input::new("rows.csv", "id,x\n1,7\n2,n/a\n3,9\n4,10\n");
    let problem = refusal(&input, "SELECT id FROM input WHERE x > 8");
    assert!(problem.contains("`x` is text because of values such as `n/a`"), "{problem}");
    assert!(problem.contains("TRY_CAST(x AS DOUBLE)"), "{problem}");
    check(&input, "SELECT id FROM input WHERE TRY_CAST(x AS DOUBLE) > 8", &["{\"id\":3}", "{\"id\":4}"]);
}

#[test]
fn numbers_with_decimal_commas_are_never_compared_as_text() {
    let input = Input::new("rows.csv", "id;price\n1;1,50\n2;0,75\n3;12,00\n");
    let problem = input.filtered("price > 1").unwrap_err();
    let hint = problem.hint.unwrap();
    assert!(hint.contains("`price` is text because of values such as `1,50`"), "{hint}");
    assert!(hint.contains("CAST(replace(price, ',', '.') AS DOUBLE)"), "{hint}");
    let message = refusal(&input, "SELECT sum(price + 1) AS s FROM input");
    assert!(message.contains("decimal comma"), "{message}");
    check(
        &input,
        "SELECT id FROM input WHERE CAST(replace(price, ',', '.') AS DOUBLE) > 1",
        &["{\"id\":1}", "{\"id\":3}"],
    );
}

#[test]
fn times_with_their_distance_from_utc_are_instants_and_never_compared_as_text() {
    let rows = "{\"id\":1,\"t\":\"2024-01-01T05:00:00Z\"}\n{\"id\":2,\"t\":\"2024-01-01T08:30:00+02:00\"}\n";
    let input = Input::new("rows.jsonl", rows);
    check(&input, "SELECT id FROM input WHERE t < '2024-01-01 06:00:00Z'", &["{\"id\":1}"]);
    check(&input, "SELECT id FROM input WHERE t AT TIME ZONE 'UTC' > '2024-01-01 06:00:00'", &["{\"id\":2}"]);
    let problem = refusal(&input, "SELECT id FROM input WHERE t < '2024-01-01 06:00:00'");
    assert!(problem.contains("UTC"), "{problem}");
    let mixed = Input::new("rows.csv", "id,t\n1,2024-01-01T05:00:00\n2,2024-01-01\n");
    let problem = refusal(&mixed, "SELECT id FROM input WHERE t < '2024-01-01 06:00:00'");
    assert!(problem.contains("dates and times have several formats"), "{problem}");
    let query = "SELECT id FROM input WHERE CAST(t AS TIMESTAMP) < '2024-01-01 03:00:00'";
    assert_eq!(mixed.rows(query), ["{\"id\":2}"]);
}

#[test]
fn days_times_and_truths_in_other_forms_are_not_compared_as_text() {
    let input = Input::new("rows.csv", "id;day;at;on\n1;28.11.2023;9:45;True\n2;05.01.2024;10:30;False\n");
    for (condition, reading) in [
        ("day >= '2024-01-01'", "strptime(day, '%d.%m.%Y')"),
        ("at > '10:00'", "CAST(at AS TIME)"),
        ("\"on\" = 'true'", "AS BOOLEAN)"),
    ] {
        let problem = refusal(&input, &format!("SELECT id FROM input WHERE {condition}"));
        assert!(
            problem.contains("is text because of values such as") && problem.contains(reading),
            "{problem}"
        );
    }
    let query = "SELECT id FROM input WHERE strptime(day, '%d.%m.%Y') >= '2024-01-01'";
    assert_eq!(input.rows(query), ["{\"id\":2}"]);
}

#[test]
fn columns_of_a_star_are_left_out_replaced_and_renamed_at_once() {
    check(
        &one_row(),
        "SELECT * EXCLUDE (d) REPLACE (s[1] AS s) RENAME (id AS number) FROM input",
        &["{\"number\":1,\"s\":\"a\"}"],
    );
    check(&one_row(), "SELECT * EXCLUDE (d, s) RENAME (id AS number) FROM input", &["{\"number\":1}"]);
}

#[test]
fn the_condition_of_an_aggregate_needs_no_where() {
    check(&one_row(), "SELECT count(*) FILTER (id > 1) AS c FROM input", &["{\"c\":0}"]);
}

#[test]
fn a_whole_number_of_a_column_is_a_count_of_hours_or_days() {
    check(
        &one_row(),
        "SELECT d + to_hours(id) AS h, d + to_days(id) AS e FROM input",
        &["{\"h\":\"2024-05-01 11:30:00\",\"e\":\"2024-05-02 10:30:00\"}"],
    );
}

#[test]
fn a_text_with_a_utc_offset_is_compared_in_utc() {
    let query =
        "SELECT id FROM input WHERE d < CAST('2024-05-01 12:31:00+02' AS TIMESTAMPTZ) AT TIME ZONE 'UTC'";
    check(&one_row(), query, &["{\"id\":1}"]);
}

#[test]
fn a_cast_to_date_gives_a_day() {
    check(&one_row(), "SELECT CAST(d AS DATE) AS x FROM input", &["{\"x\":\"2024-05-01\"}"]);
    check(&one_row(), "SELECT CAST('2024-05-01' AS DATE) + 1 AS x FROM input", &["{\"x\":\"2024-05-02\"}"]);
}

#[test]
fn a_cast_to_boolean_gives_a_truth() {
    check(
        &one_row(),
        "SELECT CAST('true' AS BOOLEAN) AS x, 'f'::BOOLEAN AS y FROM input",
        &["{\"x\":true,\"y\":false}"],
    );
}

#[test]
fn lower_and_upper_know_the_letters_of_all_scripts() {
    check(
        &one_row(),
        "SELECT lower('ÉCLAIR') AS x, upper('ñandú') AS y FROM input",
        &["{\"x\":\"éclair\",\"y\":\"ÑANDÚ\"}"],
    );
}

#[test]
fn a_number_is_rounded_to_hundreds() {
    check(&one_row(), "SELECT round(1234.5, -2)::INTEGER AS x FROM input", &["{\"x\":1200}"]);
    check(&one_row(), "SELECT round(1234.5::DOUBLE, -2) AS x FROM input", &["{\"x\":1200.0}"]);
}

#[test]
fn the_remainder_of_a_fraction_keeps_its_fraction() {
    check(&one_row(), "SELECT 5.5 % 2 AS x FROM input", &["{\"x\":1.5}"]);
}

#[test]
fn a_number_in_brackets_takes_an_element_of_a_list() {
    check(
        &one_row(),
        "SELECT s[1] AS x, s[-1] AS y, s[9] AS z FROM input",
        &["{\"x\":\"a\",\"y\":\"b\",\"z\":null}"],
    );
}

#[test]
fn a_product_beyond_all_numbers_is_infinite_and_more_than_every_number() {
    check(&one_row(), "SELECT 1e308 * 10 > 1e308 AS x FROM input", &["{\"x\":true}"]);
    assert_eq!(one_row().rows("SELECT 1e308 * 10 AS x FROM input"), ["{\"x\":\"Infinity\"}"]);
}

#[test]
fn decimals_of_more_than_fifteen_digits_are_compared_by_all_their_digits() {
    let numbers = vec![123_456_789_012_345_678_i128, 123_456_789_012_345_679, 99, -5];
    let decimals = Decimal128Array::from(numbers).with_precision_and_scale(30, 2).unwrap();
    let input =
        parquet(vec![("id", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))), ("x", Arc::new(decimals))]);
    check(&input, "SELECT id FROM input WHERE x > 1234567890123456.78", &["{\"id\":2}"]);
    check(&input, "SELECT id FROM input WHERE x = 1234567890123456.78", &["{\"id\":1}"]);
    check(&input, "SELECT id FROM input WHERE x < 1 ORDER BY x", &["{\"id\":4}", "{\"id\":3}"]);
}

#[test]
fn large_unsigned_numbers_are_compared_and_sorted_as_numbers() {
    let numbers = UInt64Array::from(vec![u64::MAX, 1, 1 << 63]);
    let input = parquet(vec![("id", Arc::new(Int64Array::from(vec![1, 2, 3]))), ("x", Arc::new(numbers))]);
    check(
        &input,
        "SELECT x FROM input WHERE x > 9223372036854775807 ORDER BY x",
        &["{\"x\":9223372036854775808}", "{\"x\":18446744073709551615}"],
    );
}

#[test]
fn a_truth_in_a_mixed_column_stays_a_truth() {
    let input = Input::new("rows.jsonl", "{\"x\":true}\n{\"x\":1}\n{\"x\":\"true\"}\n");
    check(&input, "SELECT x FROM input", &["{\"x\":true}", "{\"x\":1}", "{\"x\":\"true\"}"]);
}

#[test]
fn a_text_that_looks_like_a_list_stays_text() {
    let input = Input::new("rows.jsonl", "{\"x\":\"[1]\"}\n{\"x\":\"{}\"}\n");
    check(&input, "SELECT x FROM input WHERE x = '[1]'", &["{\"x\":\"[1]\"}"]);
}

#[test]
fn kinds_that_come_behind_the_first_rows_are_passed_on_as_they_are_and_never_compared_unseen() {
    let mut text = "{\"id\":1,\"x\":1}\n".repeat(20_480);
    text.push_str("{\"id\":2,\"x\":true}\n{\"id\":3,\"x\":[1, 2]}\n{\"id\":4,\"x\":{\"a\":1.50}}\n");
    let input = Input::new("rows.jsonl", &text);
    assert_eq!(
        input.rows("SELECT x FROM input WHERE id > 1"),
        [r#"{"x":true}"#, r#"{"x":[1, 2]}"#, r#"{"x":{"a":1.50}}"#]
    );
    let compared = input.sql("SELECT id FROM input WHERE x > 5").unwrap();
    let problem = read_all(&mut *compared.open().unwrap()).unwrap_err();
    assert_eq!(problem.code, ProblemCode::ColumnTypeBroken);
    assert!(problem.message.contains("row 20481 of the input has true in `x`"), "{}", problem.message);
    assert!(problem.hint.unwrap().contains("`types: x=text`"));
}

#[test]
fn nulls_come_where_the_order_puts_them_among_texts_and_numbers() {
    let texts = StringArray::from(vec![Some("b"), None, Some(""), Some("a\u{ff}"), None]);
    let numbers = Float64Array::from(vec![Some(-1.5), None, Some(0.0), Some(3.0), None]);
    let file = parquet(vec![
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5]))),
        ("t", Arc::new(texts)),
        ("x", Arc::new(numbers)),
    ]);
    let lines = "{\"id\":1,\"t\":\"b\",\"x\":-1.5}\n{\"id\":2,\"t\":null,\"x\":null}\n\
        {\"id\":3,\"t\":\"\",\"x\":0.0}\n{\"id\":4,\"t\":\"a\u{ff}\",\"x\":3.0}\n{\"id\":5,\"t\":null,\"x\":null}\n";
    for input in [file, Input::new("rows.jsonl", lines)] {
        for (order, ids) in [
            ("t, id", [3, 4, 1, 2, 5]),
            ("t NULLS FIRST, id", [2, 5, 3, 4, 1]),
            ("t DESC, id", [1, 4, 3, 2, 5]),
            ("t DESC NULLS FIRST, id DESC", [5, 2, 1, 4, 3]),
            ("x, id DESC", [1, 3, 4, 5, 2]),
            ("x DESC NULLS FIRST, id", [2, 5, 4, 3, 1]),
        ] {
            let expected = ids.map(|id| format!("{{\"id\":{id}}}"));
            let expected = expected.each_ref().map(String::as_str);
            check(&input, &format!("SELECT id FROM input ORDER BY {order}"), &expected);
        }
        check(
            &input,
            "SELECT t FROM input ORDER BY t LIMIT 4 OFFSET 2",
            &["{\"t\":\"b\"}", "{\"t\":null}", "{\"t\":null}"],
        );
    }
}

#[test]
fn a_nan_comes_between_the_numbers_and_the_nulls() {
    let rows = "{\"id\":1,\"x\":\"NaN\"}\n{\"id\":2,\"x\":null}\n{\"id\":3,\"x\":7}\n{\"id\":4,\"x\":\"Infinity\"}\n";
    let input = Input::new("rows.jsonl", rows);
    for (order, ids) in [("x", [3, 4, 1, 2]), ("x DESC NULLS FIRST", [2, 1, 4, 3])] {
        let sql = format!("SELECT id FROM input ORDER BY {order}");
        let rows = texts(&*input.typed_sql(&sql, &[("x", "double")]).unwrap());
        assert_eq!(rows, ids.map(|id| format!("{{\"id\":{id}}}")), "{order}");
    }
}
