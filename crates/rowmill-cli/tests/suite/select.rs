//! Which rows a run sees: `--sql`, `--where` and `--columns`, together with the flags that select among
//! them.

use crate::support;

use crate::support::{Place, each, row_numbers};
use serde_json::{Value, json};

const ECHO: [&str; 4] = ["-m", "passthrough", "-p", "{{row_json}}"];

/// Twelve orders in three formats with the same content.
fn orders() -> Place {
    let place = Place::new();
    let (mut lines, mut table) = (String::new(), String::from("id,city,amount\n"));
    for (id, city, amount) in (1..=12).map(|n| (n, ["Bern", "Rome", "Oslo"][n % 3], n * 10)) {
        lines.push_str(&format!("{{\"id\":{id},\"city\":\"{city}\",\"amount\":{amount}}}\n"));
        table.push_str(&format!("{id},{city},{amount}\n"));
    }
    place.write("rows.jsonl", lines);
    place.write("rows.csv", table);
    place
}

/// The rows that reached the model, in the order of the output.
fn seen(place: &Place) -> Vec<Value> {
    let parsed = |result: Value| serde_json::from_str(result.as_str().unwrap_or("null")).unwrap_or_default();
    each(&place.json("out.jsonl"), "/result").into_iter().map(parsed).collect()
}

fn run(place: &Place, flags: &[&str]) -> support::Ended {
    place.run_rows(&[&ECHO, flags].concat())
}

#[test]
fn a_condition_keeps_rows_as_they_are_with_their_numbers() {
    let place = orders();
    run(&place, &["--where", "city = 'Rome' AND amount > 50"]).ok();
    assert_eq!(row_numbers(&place.json("out.jsonl")), [7, 10]);
    assert_eq!(seen(&place)[0], json!({"id": 7, "city": "Rome", "amount": 70}));
    let flags = ["-i", "rows.csv", "-o", "out.jsonl", "--overwrite", "--where", "amount >= 110"];
    place.run(&[&ECHO, &flags[..]].concat()).ok();
    assert_eq!(row_numbers(&place.json("out.jsonl")), [12, 13], "the header is row 1");
    assert_eq!(seen(&place)[0]["amount"], json!("110"), "a row of CSV stays text");
}

#[test]
fn columns_are_kept_in_the_order_in_which_they_are_named() {
    let place = orders();
    run(&place, &["--columns", "amount,id", "--limit", "1", "--include-input"]).ok();
    assert_eq!(support::keys(&place.json("out.jsonl")[0]["input"]), ["amount", "id"]);
    run(&place, &["--columns", "amuont", "--overwrite"]).code(1).says("`amuont`").says("`amount`");
}

#[test]
fn a_query_makes_new_rows_and_says_how_they_are_numbered() {
    let place = orders();
    let query = "SELECT city, sum(amount) AS total FROM input GROUP BY city ORDER BY total DESC";
    run(&place, &["--sql", query]).ok().says("position in the result").says("`--id-field`");
    assert_eq!(row_numbers(&place.json("out.jsonl")), [1, 2, 3]);
    assert_eq!(seen(&place)[0], json!({"city": "Bern", "total": 300}));
    let named = run(&place, &["--sql", query, "--id-field", "city", "--overwrite"]).ok();
    assert!(!named.stderr.contains("position in the result"), "{}", named.stderr);
    assert_eq!(each(&place.json("out.jsonl"), "/id"), [json!("Bern"), json!("Oslo"), json!("Rome")]);
}

#[test]
fn a_query_goes_together_with_offset_limit_sample_and_parallel() {
    let place = orders();
    let query = "SELECT id FROM input WHERE amount > 20 ORDER BY id DESC";
    run(&place, &["--sql", query, "--offset", "1", "--limit", "2", "--parallel", "4"]).ok();
    assert_eq!(seen(&place), [json!({"id": 11}), json!({"id": 10})]);
    // Of 20 rows these are the ones that Python's `random` draws with seed 7.
    let twenty =
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19) SELECT i FROM n";
    run(&place, &["--sql", twenty, "--sample", "5", "--seed", "7", "--overwrite"]).ok();
    assert_eq!(each(&seen(&place), "/i"), [json!(1), json!(2), json!(4), json!(10), json!(12)]);
}

#[test]
fn a_resume_needs_the_same_query_unless_rows_have_ids() {
    let place = orders();
    let few = "SELECT id FROM input WHERE id < 4";
    run(&place, &["--sql", few]).ok();
    run(&place, &["--sql", "SELECT id FROM input", "--resume"])
        .code(1)
        .says("query: `SELECT id FROM input WHERE id < 4` -> `");
    run(&place, &["--sql", few, "--id-field", "id", "--overwrite"]).ok();
    run(&place, &["--sql", "SELECT id FROM input", "--id-field", "id", "--resume"]).ok();
    assert_eq!(seen(&place).len(), 12);
    run(&place, &["--where", "id < 4", "--overwrite"]).ok();
    run(&place, &["--where", "id < 6", "--resume"]).ok().says("skipping 3 finished rows");
    assert_eq!(row_numbers(&place.json("out.jsonl")), [1, 2, 3, 4, 5]);
    run(&place, &["--columns", "id", "--resume"]).code(1).says("columns: none -> `id`");
}

#[test]
fn standard_input_can_be_queried() {
    let place = orders();
    let rows = place.read("rows.jsonl");
    let flags =
        ["--input-format", "jsonl", "-o", "out.jsonl", "--sql", "SELECT max(amount) AS most FROM input"];
    place.pipe(rows.as_bytes(), &[&ECHO, &flags[..]].concat()).ok();
    assert_eq!(seen(&place), [json!({"most": 120})]);
    assert_eq!(place.names(""), ["out.jsonl", "rows.csv", "rows.jsonl", "tmp"], "no copy is left");
}

#[test]
fn a_query_that_is_wrong_is_shown_with_the_place_and_nothing_is_left_behind() {
    let place = orders();
    for (query, message) in [
        ("SELECT idd FROM input", "no such column: idd"),
        ("SELECT id FRM input WHERE", "input WHERE\n"),
        ("SELECT id FROM orders", "no such table: orders"),
        ("DELETE FROM input", "SELECT"),
        ("SELECT 1; SELECT 2", "one"),
        ("ATTACH 'x.db' AS x", "SELECT"),
        ("SELECT id, id FROM input", "AS"),
    ] {
        run(&place, &["--sql", query]).code(1).says(message);
    }
    run(&place, &["--sql", "SELECT id,\n  cty FROM input"]).code(1).says("  cty FROM input\n").says("^");
    run(&place, &["--where", "cty = 'Rome'"]).code(1).says("`city`");
    assert_eq!(place.names(""), ["rows.csv", "rows.jsonl", "tmp"]);
}

#[test]
fn rows_that_no_query_can_see_are_reported() {
    let place = Place::new();
    place.write("rows.jsonl", "{\"n\":1}\nnot json\n{\"n\":3}\n");
    run(&place, &["--sql", "SELECT n FROM input"]).ok().says("1 row").says("row 2");
    run(&place, &["--where", "n > 1", "--overwrite"]).code(3);
    assert_eq!(row_numbers(&place.json("out.jsonl")), [2, 3], "a condition never hides a broken row");
}

#[test]
fn flags_that_say_the_same_twice_are_refused() {
    let place = orders();
    for (flags, problem) in [
        (&["--sql", "SELECT 1", "--where", "1"][..], "--sql and --where cannot be used together"),
        (&["--sql", "SELECT 1", "--columns", "id"], "--sql and --columns cannot be used together"),
        (&["--id", "content", "--id-field", "id"], "cannot be used with"),
        (&["--id", "content"], "--id is for documents"),
        (&["--extract", "text"], "rows have no files"),
        (&["--archive-inputs", "kept"], "rows have no files"),
    ] {
        run(&place, flags).code(2).says(problem);
    }
    assert_eq!(place.names(""), ["rows.csv", "rows.jsonl", "tmp"]);
}
