//! `rowmill head` shows rows, columns and prompts legibly on any screen.

use crate::support;

use crate::support::Place;
use serde_json::json;

const REVIEWS: &str = "{\"id\":1,\"text\":\"good\",\"stars\":5,\"tags\":[\"a\"]}\n\
                       {\"id\":2,\"text\":null,\"stars\":4.5}\n\
                       nope\n\
                       {\"id\":3,\"text\":\"a\\tb\\u001b[31m\",\"stars\":1,\"tags\":[]}\n";

#[test]
fn narrow_rows_are_a_table_under_their_columns() {
    let place = Place::new();
    place.write("reviews.jsonl", REVIEWS);
    let shown = place.rowmill(&["head", "reviews.jsonl"]).ok().stdout;
    assert_eq!(
        shown,
        "reviews.jsonl: jsonl, 4 rows, 137 B\n\
         1 of the 4 rows is bad\n\
         \n\
         column  type             empty\n\
         id      integer\n\
         text    text             33 % null\n\
         stars   integer, number\n\
         tags    list             33 % missing\n\
         \n\
         row  id  text            stars  tags\n\
         \x20 1  1   good            5      [\"a\"]\n\
         \x20 2  2   null            4.5\n\
         \x20 3  bad row: InvalidJSON: Line 3: expected ident at column 2\n\
         \x20 4  3   a\\tb\\u{1b}[31m  1      []\n"
    );
}

#[test]
fn wide_rows_are_blocks_with_values_cut_at_the_width_of_the_screen() {
    let mut place = Place::new();
    let long = "word ".repeat(40);
    place.write("rows.csv", format!("id,text\n1,{long}\n2,日本語日本語日本語日本語日本語日本語\n"));
    place.set("COLUMNS", "40");
    let shown = place.rowmill(&["head", "rows.csv"]).ok().stdout;
    assert_eq!(
        shown,
        "rows.csv: csv, 2 rows, 268 B\n\
         \n\
         column  type\n\
         id      text\n\
         text    text\n\
         \n\
         row 2\n\
         \x20 id    1\n\
         \x20 text  word word word word word word w…\n\
         \n\
         row 3\n\
         \x20 id    2\n\
         \x20 text  日本語日本語日本語日本語日本語…\n"
    );
}

#[test]
fn a_template_is_rendered_for_each_row_and_what_it_lacks_is_reported() {
    let place = Place::new();
    place.write("reviews.jsonl", REVIEWS);
    let shown =
        place.rowmill(&["head", "reviews.jsonl", "-n", "3", "-p", "Rate:\n\n{{text}} {{tags}}"]).ok().stdout;
    let rows = shown.split_once("row 1\n").map(|(_, rows)| rows).unwrap_or_default();
    assert_eq!(
        rows,
        "  id     1\n\
         \x20 text   good\n\
         \x20 stars  5\n\
         \x20 tags   [\"a\"]\n\
         \x20 prompt\n\
         \x20 | Rate:\n\
         \x20 |\n\
         \x20 | good [\"a\"]\n\
         \n\
         row 2\n\
         \x20 id     2\n\
         \x20 text   null\n\
         \x20 stars  4.5\n\
         \x20 no prompt: MissingTemplateField: Missing template field: tags\n\
         \n\
         row 3\n\
         \x20 bad row: InvalidJSON: Line 3: expected ident at column 2\n"
    );
    place.write("template.txt", "{{text}}!");
    let found = place.rowmill(&["head", "reviews.jsonl", "-n", "1", "--template", "template.txt", "--json"]);
    assert_eq!(found.ok().summary()["head"][0]["prompt"], "good!");
}

#[test]
fn numbers_keep_their_digits_however_many_they_have() {
    let place = Place::new();
    let (long, longer) = ("0.12345678901234567890123", "[123456789012345678901234567890,{\"n\":1e400}]");
    place.write("rows.jsonl", format!("{{\"a\":{long},\"b\":{longer},\"a\":{long}}}\n"));
    let json = place.rowmill(&["head", "rows.jsonl", "--json"]).ok().stdout;
    let indented = format!(
        "      \"row\": {{\n        \"a\": {long},\n        \"b\": [\n          123456789012345678901234567890,\n"
    );
    assert!(json.contains(&indented) && json.contains("\"n\": 1e400\n"), "{json}");
    let text = place.rowmill(&["head", "rows.jsonl"]).ok().stdout;
    assert!(text.contains(long) && text.contains(longer), "{text}");
}

#[test]
fn json_has_everything_whole() {
    let place = Place::new();
    place.write("reviews.jsonl", REVIEWS);
    let found = place.rowmill(&["head", "reviews.jsonl", "--json", "-n", "3"]).ok().summary();
    assert_eq!(
        found,
        json!({
            "input": "reviews.jsonl", "format": "jsonl", "files": 1, "bytes": 137, "rows": 4, "looked_at": 4, "bad": 1,
            "columns": [
                {"name": "id", "kinds": {"integer": 3}, "missing": 0},
                {"name": "text", "kinds": {"text": 2, "null": 1}, "missing": 0},
                {"name": "stars", "kinds": {"integer": 2, "number": 1}, "missing": 0},
                {"name": "tags", "kinds": {"list": 2}, "missing": 1},
            ],
            "head": [
                {"row_number": 1, "row": {"id": 1, "text": "good", "stars": 5, "tags": ["a"]}},
                {"row_number": 2, "row": {"id": 2, "text": null, "stars": 4.5}},
                {"row_number": 3, "error": {"type": "InvalidJSON", "message": "Line 3: expected ident at column 2"}},
            ],
        })
    );
}

#[test]
fn only_the_first_rows_of_a_long_input_are_read() {
    let place = Place::new();
    place.write("rows.jsonl", support::numbered_rows(1001));
    place.write("whole.jsonl", support::numbered_rows(1000));
    place.write("in/a.tsv", "a\tb\n1\t2\n");
    place.write("in/b.tsv", "a\tc\n3\t4\n");
    for (arguments, title) in [
        (&["rows.jsonl", "-n", "1"][..], "rows.jsonl: jsonl, more than 1,000 rows, 9.9 kB\n"),
        (&["whole.jsonl", "-n", "1"], "whole.jsonl: jsonl, 1,000 rows, 9.9 kB\n"),
        (&["rows.jsonl", "-n", "0"], "rows.jsonl: jsonl, more than 1,000 rows, 9.9 kB\n"),
        (&["in/*.tsv"], "in/*.tsv: tsv, 2 files, 2 rows, 16 B\n"),
    ] {
        let shown = place.rowmill(&[&["head"], arguments].concat()).ok().stdout;
        assert!(shown.starts_with(title), "{shown}");
    }
}

#[test]
fn what_cannot_be_shown_is_reported() {
    let place = Place::new();
    place.rowmill(&["head", "none.csv"]).code(1).says("error[RM1001]: input file not found: `none.csv`");
    place.rowmill(&["head", "-"]).code(2).says("standard input needs `--input-format`");
    place.rowmill(&["head", "x.csv", "-p", "a", "--template", "b"]).code(2).says("cannot be used with");
}

#[test]
fn the_head_of_a_query_and_of_a_condition_is_shown() {
    let place = Place::new();
    place.write("reviews.jsonl", REVIEWS);
    let shown = place.rowmill(&["head", "reviews.jsonl", "--where", "stars > 4"]).ok().stdout;
    assert!(shown.contains("4.5") && !shown.contains("a\\tb"), "{shown}");
    let sql = "SELECT id * 2 AS twice FROM input WHERE stars < 5 ORDER BY id DESC";
    let shown = place.rowmill(&["head", "reviews.jsonl", "--sql", sql, "--json"]).ok().stdout;
    assert!(shown.contains("\"twice\":6") || shown.contains("\"twice\": 6"), "{shown}");
    place
        .rowmill(&["head", "reviews.jsonl", "--sql", "SELECT x FROM input"])
        .code(1)
        .says("no such column: x");
}

#[test]
fn the_results_of_a_query_have_the_types_of_sql() {
    let place = Place::new();
    place.write("reviews.jsonl", REVIEWS);
    let sql = "SELECT id, stars / 2 AS half, tags, [id] AS ids, to_json(tags) AS j, DATE '2024-01-01' AS d FROM input WHERE id = 1";
    let shown = place.rowmill(&["head", "reviews.jsonl", "--sql", sql]).ok().stdout;
    for line in [
        "id      BIGINT\n",
        "half    DOUBLE\n",
        "tags    VARCHAR[]\n",
        "ids     BIGINT[]\n",
        "j       JSON\n",
        "d       DATE\n",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}
