//! The semantics of operators, casts and functions: as in DuckDB.

use std::sync::Arc;

use crate::support::{Memory, rows};

fn check(cases: &[(&str, &str)]) {
    let table = Arc::new(Memory::people());
    for (expression, expected) in cases {
        let found = rows(&table, &format!("SELECT {expression} AS x"))
            .unwrap_or_else(|problem| vec![problem.message.lines().next().unwrap_or_default().to_owned()]);
        assert_eq!(found, [*expected], "{expression}");
    }
}

#[test]
fn numbers_are_computed_with_the_types_of_duckdb() {
    check(&[
        ("5 / 2", "2.5"),
        ("5 // 2", "2"),
        ("-7 // 2", "-3"),
        ("-7 % 3", "-1"),
        ("5.5 % 2", "1.5"),
        ("typeof(5.5 % 2)", "\"DECIMAL(11,1)\""),
        ("5.5 * 2.25", "12.375"),
        ("typeof(1.5::DECIMAL(10,2) + 1::BIGINT)", "\"DECIMAL(22,2)\""),
        ("typeof(5::TINYINT + 5)", "\"TINYINT\""),
        ("1e308 * 10", "\"Infinity\""),
        ("1 / 0", "\"Infinity\""),
        ("2 ^ 3", "8.0"),
        ("9223372036854775807 + 1", "`sql` cannot be run: 9223372036854775807 + 1 does not fit into BIGINT"),
        ("1 + NULL", "null"),
        ("round(1234.5, -2)", "1200"),
        ("round(124::TINYINT, -2)", "100"),
        ("round(127::TINYINT, -1)", "`sql` cannot be run: 127, rounded, does not fit into TINYINT"),
        ("typeof(round(5::UBIGINT, -1))", "\"HUGEINT\""),
        ("typeof(round(5::USMALLINT))", "\"BIGINT\""),
        ("7.5::DOUBLE // 2", "3.75"),
        ("1.5::DOUBLE // 0.0", "`sql` cannot be run: 1.5 // 0 divides by zero"),
        (
            "(SELECT quantile_cont(x::FLOAT, 0.3)::DOUBLE FROM (VALUES (0.1), (0.6), (0.7)) t(x))",
            "0.4000000059604645",
        ),
        ("to_json(1.50::DECIMAL(16,2))::VARCHAR", "\"1.50\""),
        ("to_json(1.50::DECIMAL(15,2))::VARCHAR", "\"1.5\""),
        ("json_valid('nan')", "true"),
        ("epoch_ms(TIMESTAMP '2024-01-01 00:00:00.0005')", "1704067200001"),
        ("epoch_ms(TIMESTAMP '1969-12-31 23:59:59.9995')", "-1"),
        ("substr('abc', -4, 2)", "\"a\""),
        ("substr('abc', -5, 3)", "\"a\""),
        ("substr('A', -4, 2)", "\"\""),
        ("substr('abc', 0, 2)", "\"a\""),
        ("substr('abc', 0)", "\"abc\""),
        ("substr('abc', 2, -1)", "\"a\""),
        ("substr('abc', -1, -1)", "\"b\""),
        ("round(2.5::DOUBLE)", "3.0"),
        ("round(1.005, 2)", "1.01"),
        ("round(0.123::FLOAT, 1)::DOUBLE", "0.10000000149011612"),
        ("ceil(-2.5)", "-2"),
        ("abs(-5.5)", "5.5"),
        ("greatest(1, 2.5, NULL)", "2.5"),
        ("123456789012345678901234567890 > 123456789012345678901234567889", "true"),
        ("0.1 + 0.2 = 0.3", "true"),
        ("typeof(coalesce(1.5::DECIMAL(10,2), 1::DECIMAL(38,0)))", "\"DECIMAL(38,0)\""),
        ("typeof(1::DECIMAL(38,0) % 0.7)", "\"DOUBLE\""),
        ("typeof(1::DECIMAL(37,0) % 0.7)", "\"DECIMAL(38,1)\""),
        ("0.1::DOUBLE + 0.2::DOUBLE = 0.3", "false"),
    ]);
}

#[test]
fn casts_read_and_write_the_forms_of_duckdb() {
    check(&[
        ("CAST('2024-05-01 10:00:00' AS DATE)", "\"2024-05-01\""),
        ("CAST('true' AS BOOLEAN)", "true"),
        ("CAST(2.5 AS INTEGER)", "3"),
        ("CAST(2.5::DOUBLE AS INTEGER)", "2"),
        ("'5.7'::INTEGER", "6"),
        ("TRY_CAST('n/a' AS DOUBLE)", "null"),
        ("CAST('n/a' AS DOUBLE)", "`sql` cannot be run: 'n/a' is not a valid DOUBLE"),
        ("CAST(1e20::DOUBLE AS VARCHAR)", "\"1e+20\""),
        ("CAST(300 AS TINYINT)", "`sql` cannot be run: 300 is not a valid TINYINT"),
        ("CAST(TIMESTAMP '2024-05-01 10:00:00.5' AS VARCHAR)", "\"2024-05-01 10:00:00.5\""),
        ("CAST([1.5, 2.5] AS INTEGER[])", "[2,3]"),
    ]);
}

#[test]
fn days_and_times_are_types_of_their_own() {
    check(&[
        ("DATE '2024-01-31' + INTERVAL 1 MONTH", "\"2024-02-29 00:00:00\""),
        ("DATE '2024-01-01' + 1", "\"2024-01-02\""),
        ("DATE '2024-01-01' - DATE '2023-12-01'", "31"),
        ("TIMESTAMP '2024-01-01 10:00:00' > '2024-01-01'", "true"),
        ("TIMESTAMP '2024-01-01 10:00:00' - INTERVAL '3 hours'", "\"2024-01-01 07:00:00\""),
        ("date_trunc('month', DATE '2024-05-20')", "\"2024-05-01 00:00:00\""),
        ("EXTRACT(year FROM DATE '2024-01-01')", "2024"),
        ("date_part('epoch', TIMESTAMP '2024-01-01 10:11:12.5')", "1704103872.5"),
        ("week(DATE '2023-01-01')", "52"),
        ("dayname(DATE '2024-01-01')", "\"Monday\""),
        ("date_diff('month', DATE '2024-01-31', DATE '2024-02-01')", "1"),
        ("strftime(DATE '2024-01-05', '%d.%m.%Y %a %-d')", "\"05.01.2024 Fri 5\""),
        ("strptime('5 Jan 2024', '%d %b %Y')", "\"2024-01-05 00:00:00\""),
        ("make_timestamp(2024, 2, 29, 3, 4, 5.25)", "\"2024-02-29 03:04:05.25\""),
        ("make_timestamp(1700000000000000)", "\"2023-11-14 22:13:20\""),
        ("TRY_CAST('-3.5' AS DATE)", "null"),
        ("INTERVAL '1 month' = INTERVAL '30 days'", "true"),
        ("DATE '2024-01-01' BETWEEN '2024-01-01' AND '2024-12-31'", "true"),
    ]);
}

#[test]
fn text_is_that_of_all_scripts() {
    check(&[
        ("lower('ÉCLAIR')", "\"éclair\""),
        ("upper('straße')", "\"STRAẞE\""),
        ("length('naïve')", "5"),
        ("'É' ILIKE 'é%'", "true"),
        ("'abc' LIKE 'A%'", "false"),
        ("'a%c' LIKE 'a\\%c' ESCAPE '\\'", "true"),
        ("substr('hello', -3, 2)", "\"ll\""),
        ("left('abc', -1)", "\"ab\""),
        ("split_part('a-b-c', '-', -1)", "\"c\""),
        ("string_split('a,b', ',')", "[\"a\",\"b\"]"),
        ("trim('xxaxx', 'x')", "\"a\""),
        ("concat('a', NULL, 1)", "\"a1\""),
        ("'a' || 5", "\"a5\""),
        ("'a' || NULL", "null"),
        ("regexp_matches('é', '\\w')", "false"),
        ("regexp_extract('id 42', '([a-z]+) ([0-9]+)', 2)", "\"42\""),
        ("regexp_replace('hello', '(l)', '<\\1>', 'g')", "\"he<l><l>o\""),
        ("'abc' SIMILAR TO 'a.c'", "true"),
        ("'hello'[2:3]", "\"el\""),
        ("unicode('')", "-1"),
        ("ascii('')", "0"),
    ]);
}

#[test]
fn lists_objects_and_json_have_parts() {
    check(&[
        ("[1, 2, 3][1]", "1"),
        ("[1, 2, 3][-1]", "3"),
        ("[1, 2, 3][9]", "null"),
        ("[1, 2, 3][2:3]", "[2,3]"),
        ("{'a': 1, 'b': 'x'}.b", "\"x\""),
        ("list_contains([1, 2], 2)", "true"),
        ("len([1, 2])", "2"),
        ("list_position(['x', NULL], NULL)", "2"),
        ("list_position(['x'], NULL)", "null"),
        ("array_to_string([NULL, NULL]::VARCHAR[], '+')", "null"),
        ("array_to_string([]::VARCHAR[], '+')", "\"\""),
        ("array_to_string(['a', NULL], '+')", "\"a\""),
        ("[1, 2] < [1, NULL]", "true"),
        ("'{\"a\":{\"b\":[1,2]}}' -> '$.a.b'", "[1,2]"),
        ("'{\"a\":\"x\"}' ->> 'a'", "\"x\""),
        ("'{\"a\":true}' ->> '$.a'", "\"true\""),
        ("'{\"a\":null}' ->> '$.a'", "null"),
        ("json_type('{\"a\":1}')", "\"OBJECT\""),
        ("to_json([1, NULL])", "[1,null]"),
        ("{'a': 1} ->> '$.a'", "\"1\""),
    ]);
}

#[test]
fn columns_of_every_type_are_compared_sorted_and_grouped_by_their_values() {
    let table = Arc::new(Memory::people());
    for (sql, expected) in [
        ("SELECT id FROM input WHERE at < '2024-01-01 06:00:00' ORDER BY at", vec!["4", "1"]),
        ("SELECT id FROM input WHERE price > 2.4 ORDER BY price DESC", vec!["2", "1"]),
        ("SELECT id FROM input ORDER BY price", vec!["4", "1", "2", "3"]),
        ("SELECT id FROM input ORDER BY price DESC NULLS FIRST", vec!["3", "2", "1", "4"]),
        ("SELECT id FROM input WHERE meta.lang = 'de' ORDER BY ALL", vec!["1", "4"]),
        ("SELECT id FROM input WHERE tags[1] = 'x' ORDER BY 1", vec!["1", "3"]),
        ("SELECT id, unnest(tags) AS t FROM input ORDER BY id, t", vec!["1|\"x\"", "1|\"y\"", "3|\"x\""]),
        ("SELECT i.id, u.t FROM input i, unnest(i.tags) AS u(t) WHERE u.t = 'y'", vec!["1|\"y\""]),
        (
            "SELECT meta.lang AS l, count(*) AS c FROM input GROUP BY ALL ORDER BY ALL",
            vec!["\"de\"|2", "\"en\"|1", "null|1"],
        ),
        ("SELECT id FROM input QUALIFY row_number() OVER (ORDER BY score DESC) = 1", vec!["3"]),
        ("SELECT DISTINCT ON (ok) ok, id FROM input ORDER BY ok, id DESC", vec!["false|4", "true|3"]),
        (
            "SELECT sum(id) AS s, avg(price) AS a, max(at) AS m, count(*) FILTER (WHERE ok) AS c FROM input",
            vec!["10|4.183333333333334|\"2024-01-01 07:00:00\"|2"],
        ),
        ("SELECT count(*) FILTER (id > 1 AND ok) AS a, sum(id) filter(id > 2) AS b FROM input", vec!["1|7"]),
        ("SELECT at + to_hours(id) AS x FROM input WHERE id = 2", vec!["\"2024-01-01 09:00:00\""]),
        ("SELECT at + to_seconds(id) AS x FROM input WHERE id = 2", vec!["\"2024-01-01 07:00:02\""]),
        ("SELECT id, sum(id) OVER (ORDER BY id) AS s FROM input LIMIT 2 OFFSET 1", vec!["2|3", "3|6"]),
        ("SELECT id AS a, a + 1 AS b FROM input WHERE a > 3", vec!["4|5"]),
        (
            "SELECT * EXCLUDE (tags, meta, at, price, ok) REPLACE (id * 2 AS id) FROM input WHERE name = 'Bo'",
            vec!["4|\"Bo\"|-2.0"],
        ),
        ("FROM input SELECT id WHERE score IN (0, 7.25)", vec!["3", "4"]),
        ("SELECT id FROM input WHERE meta ->> '$.size' = '7'", vec!["4"]),
        (
            "SELECT (CASE WHEN ok THEN meta END -> '$.lang') AS l FROM input WHERE id < 3",
            vec!["\"de\"", "null"],
        ),
        (
            "SELECT CASE WHEN id > 0 THEN CASE ok WHEN true THEN meta END END -> '$.size' AS s FROM input LIMIT 1",
            vec!["1"],
        ),
        ("SELECT string_agg(name, ', ' ORDER BY name DESC) AS s FROM input", vec!["\"Dee, Bo, Ada\""]),
        ("SELECT 1 AS x UNION SELECT 2.5 ORDER BY x", vec!["1.0", "2.5"]),
        (
            "SELECT stddev_pop(id * 1e308 * 1e9) AS p, stddev(id * 1e308 * 1e9) AS s FROM input WHERE id = 1",
            vec!["0.0|null"],
        ),
    ] {
        assert_eq!(rows(&table, sql).unwrap_or_else(|problem| vec![problem.to_string()]), expected, "{sql}");
    }
}

#[test]
fn a_sum_that_is_too_large_is_an_error_of_its_average_too() {
    const VALUES: &str = "(VALUES (1, '-145835300108973650915831497954466118000'::HUGEINT),
        (1, -72917650054486813599294558735378900000)) AS v(g, x)";
    let table = Arc::new(Memory::people());
    for sql in [
        format!("SELECT sum(x) AS s FROM {VALUES}"),
        format!("SELECT avg(x) AS a FROM {VALUES}"),
        format!("SELECT avg(x) AS a FROM {VALUES} GROUP BY g"),
    ] {
        let problem = rows(&table, &sql).unwrap_err();
        assert!(problem.to_string().contains("the sum is too large"), "{sql}: {problem}");
    }
}

/// The sum is divided in another format if there are groups; the answers are those of DuckDB 2.0.
#[test]
fn averages_have_the_last_digit_of_duckdb_with_groups_and_without() {
    const VALUES: &str = "(VALUES (1, '3141964739181622557936350290'::HUGEINT), (1, 3), (1, 1)) AS v(g, x)";
    let (of_groups, of_all) = ("1.0473215797272076e27", "1.0473215797272075e27");
    let table = Arc::new(Memory::people());
    for (call, rest, expected) in [
        ("avg(x)", "", of_all),
        ("avg(x)", "HAVING count(*) = 3", of_all),
        ("avg(x)", "GROUP BY g", of_groups),
        ("avg(x) FILTER (WHERE g = 1)", "", of_groups),
        ("avg(DISTINCT x)", "", of_groups),
    ] {
        let sql = format!("SELECT {call} AS a FROM {VALUES} {rest}");
        assert_eq!(rows(&table, &sql).unwrap(), [expected], "{sql}");
    }
}

#[test]
fn what_duckdb_refuses_or_means_otherwise_elsewhere_is_refused() {
    let table = Arc::new(Memory::people());
    for (sql, reported) in [
        (
            "SELECT id FROM input WHERE name ~ 'A'",
            "`~` has different meanings in different versions of DuckDB",
        ),
        ("SELECT 1 AS k, count(*) AS c FROM input GROUP BY ALL", "grouped by a constant"),
        ("SELECT random() < 2 AS k, count(*) AS c FROM input GROUP BY ALL", "grouped by a constant"),
        ("SELECT id FROM input ORDER BY 'a'", "a constant cannot be sorted by"),
        ("SELECT id FROM input ORDER BY -3", "a constant cannot be sorted by"),
        ("SELECT id FROM input WHERE ok = id < 3", "comparisons cannot be chained"),
        ("SELECT ok IS DISTINCT FROM id < 3 AS x FROM input", "comparisons cannot be chained"),
        ("SELECT ok IS NOT DISTINCT FROM NOT (ok) AS x FROM input", "`NOT` must be in parentheses here"),
        ("SELECT median(price::DECIMAL(30,2)) AS x FROM input", "are not exact"),
        ("SELECT now() AS x FROM input", "no such function: now"),
    ] {
        let problem = rows(&table, sql).unwrap_err();
        assert!(problem.message.contains(reported), "{sql}: {}", problem.message);
        assert!(problem.hint.is_some(), "{sql}");
    }
}
