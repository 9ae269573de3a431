//! The functions that SQLite does not have.

use std::sync::Arc;

use crate::support::{Memory, query, rows};

fn check(cases: &[(&str, &str)]) {
    let table = Arc::new(Memory::people());
    for (expression, expected) in cases {
        let found =
            rows(&table, &format!("SELECT {expression}")).unwrap_or_else(|problem| vec![problem.message]);
        assert_eq!(found, [*expected], "{expression}");
    }
}

#[test]
fn text_is_taken_apart_and_put_together() {
    check(&[
        ("contains('naïve', 'ïv')", "1"),
        ("contains(NULL, 'x')", "null"),
        ("starts_with('abc', 'ab')", "1"),
        ("ends_with('abc', 'ab')", "0"),
        ("strpos('naïve', 'v')", "4"),
        ("strpos('abc', 'x')", "0"),
        ("left('çelik', 2)", "çe"),
        ("left('abc', -1)", "ab"),
        ("right('abc', 2)", "bc"),
        ("right('abc', -1)", "bc"),
        ("right('abc', 9)", "abc"),
        ("split_part('a-b-c', '-', 2)", "b"),
        ("split_part('a-b-c', '-', -1)", "c"),
        ("split_part('a-b-c', '-', 7)", ""),
        ("lpad('7', 3, '0')", "007"),
        ("rpad('abc', 2, ' ')", "ab"),
        ("rpad('a', 4, 'xy')", "axyx"),
        ("reverse('añb')", "bña"),
        ("repeat('ab', 3)", "ababab"),
        ("repeat('ab', -3)", ""),
        ("string_split('a,b', ',')", r#"["a","b"]"#),
        ("lpad('x', 1000000000, 'y')", "`--sql` failed while it ran: string or blob too big"),
    ]);
}

#[test]
fn patterns_match_extract_and_replace() {
    check(&[
        ("'abc' REGEXP '^a.c$'", "1"),
        ("regexp_matches('abc', 'B')", "0"),
        ("regexp_matches('abc', 'B', 'i')", "1"),
        ("regexp_full_match('abc', 'ab')", "0"),
        ("regexp_extract('id 42', '[0-9]+')", "42"),
        ("regexp_extract('id 42', '([a-z]+) ([0-9]+)', 1)", "id"),
        ("regexp_extract('none', '[0-9]+')", ""),
        ("regexp_replace('aaa', 'a', 'b')", "baa"),
        ("regexp_replace('aaa', 'a', 'b', 'g')", "bbb"),
        ("regexp_replace('ab', '(a)(b)', '\\2$\\1')", "b$a"),
        ("regexp_matches(NULL, 'a')", "null"),
    ]);
}

#[test]
fn like_tells_upper_from_lower_case() {
    check(&[("'Abc' LIKE 'a%'", "0"), ("'Abc' LIKE 'A%'", "1"), ("lower('Abc') LIKE 'a%'", "1")]);
}

#[test]
fn dates_have_parts_beginnings_and_distances() {
    check(&[
        ("year('2024-02-29')", "2024"),
        ("month('2024-02-29T10:11:12Z')", "2"),
        ("hour('2024-02-29 10:11:12+02:00')", "8"),
        ("second('2024-02-29 10:11:12.75')", "12"),
        ("dayofweek('2024-03-03')", "0"),
        ("isodow('2024-03-03')", "7"),
        ("week('2024-01-01')", "1"),
        ("week('2023-01-01')", "52"),
        ("quarter('2024-12-31')", "4"),
        ("dayofyear('2024-12-31')", "366"),
        ("dayname('2024-03-03')", "Sunday"),
        ("monthname('2024-03-03')", "March"),
        ("epoch('1970-01-02')", "86400.0"),
        ("year('never')", "null"),
        ("year(NULL)", "null"),
        ("date_part('hours', '2024-02-29 10:11:12')", "10"),
        ("date_trunc('month', '2024-02-29')", "2024-02-01"),
        ("date_trunc('quarter', '2024-06-29 10:11:12')", "2024-04-01 00:00:00"),
        ("date_trunc('week', '2024-03-03')", "2024-02-26"),
        ("date_trunc('minute', '2024-02-29 10:11:12')", "2024-02-29 10:11:00"),
        ("date_diff('day', '2024-02-28 23:00:00', '2024-03-01 01:00:00')", "2"),
        ("date_diff('hour', '2024-02-28 23:59:00', '2024-02-29 00:01:00')", "1"),
        ("date_diff('year', '2024-12-31', '2025-01-01')", "1"),
        ("date_diff('week', '2024-03-03', '2024-03-04')", "1"),
        ("date_diff('month', '2024-03-31', '2024-01-01')", "-2"),
        ("strftime('%Y-%m', '2024-02-29')", "2024-02"),
        ("strftime('2024-02-29', '%d.%m.%Y')", "29.02.2024"),
        ("strftime('%S|%f|%s|%%f', '1970-01-01 00:01:05.250')", "05|05.250|65|%f"),
        ("strftime('1970-01-01 00:01:05.250', '%f')", "250000"),
        ("strftime('%Y', '2024-02-29', '+1 year')", "2025"),
        ("strftime('%Y', 2460370.5)", "2024"),
        ("length(strftime('%Y', 'now'))", "4"),
    ]);
}

#[test]
fn numbers_have_functions() {
    check(&[
        ("sqrt(16)", "4.0"),
        ("sqrt(-1)", "null"),
        ("power(2, 10)", "1024.0"),
        ("ln(1)", "0.0"),
        ("log10(1000)", "3.0"),
        ("floor(-1.5)", "-2.0"),
        ("ceil(7)", "7"),
        ("mod(7, 4)", "3"),
        ("mod(7, 0)", "null"),
        ("greatest(1, NULL, 3.5, 2)", "3.5"),
        ("least('b', 'a', NULL)", "a"),
        ("list_contains('[1, \"x\", true]', 'x')", "1"),
        ("list_contains('[1, \"x\"]', 1.0)", "1"),
        ("list_contains('[1]', 2)", "0"),
        ("list_contains('nope', 2)", "null"),
    ]);
}

#[test]
fn groups_are_summed_up() {
    check(&[
        ("median(score) FROM input", "0.75"),
        ("quantile_cont(id, 0.5) FROM input", "2.5"),
        ("quantile_cont(id, 0) FROM input", "1.0"),
        ("median(id) FROM input WHERE id > 9", "null"),
        ("stddev_pop(id) FROM input", "1.118033988749895"),
        ("variance(id) FROM input WHERE id = 1", "null"),
        ("arg_max(name, score) FROM input", "Ada"),
        ("arg_min(id, score) FROM input", "2"),
        ("max_by(id, score) FROM input", "3"),
        ("any_value(name) FROM input WHERE id > 2", "Dee"),
        ("bool_and(id > 0) FROM input", "1"),
        ("bool_or(id > 4) FROM input", "0"),
        ("bool_or(id > 4) FROM input WHERE id > 9", "null"),
        ("count_if(ok) FROM input", "2"),
        ("list(name) FROM input", r#"["Ada","Bo",null,"Dee"]"#),
        ("json_object('l', list(id)) FROM input", r#"{"l":[1,2,3,4]}"#),
        ("string_agg(name, '+' ORDER BY id DESC) FROM input", "Dee+Bo+Ada"),
    ]);
}

#[test]
fn every_function_that_is_offered_exists() {
    let table = Arc::new(Memory::people());
    for name in ["contains", "year", "median", "regexp_extract", "list", "stddev_pop", "trunc", "datediff"] {
        let problem = query(&table, &format!("SELECT {name}x(1)")).unwrap_err();
        assert!(problem.hint.unwrap().contains(&format!("`{name}`")), "{name}");
    }
}
