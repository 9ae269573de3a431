//! Hints for a command line that is almost right.

use crate::paths::ASK;
use crate::support::Place;

#[test]
fn a_value_without_its_flag_is_answered_with_the_flag() {
    let place = Place::new();
    place.write_rows(1);
    place.write("other", "{}\n");
    for (given, tip) in [
        (&["rows.jsonl"][..], "tip: the input needs a flag: `--input rows.jsonl`\n"),
        (&["other", "-m", "simulated"], "tip: the input needs a flag: `--input other`\n"),
        (&["missing.csv"], "tip: the input needs a flag: `--input missing.csv`\n"),
        (&["-i", "a.jsonl", "b.jsonl"], "tip: to read several files as one input, use a pattern in quotes"),
        (&["-i", "a.jsonl", "-p", "Classify", "this"], "tip: put a value that contains spaces in quotes"),
    ] {
        place.run(given).code(2).says(tip);
    }
}

#[test]
fn a_text_where_a_file_is_meant_is_answered_with_the_flag_for_texts() {
    let place = Place::new();
    place.write_rows(1);
    let long = "Classify {{n}}. ".repeat(400);
    for (flag, text, hint) in [
        (
            "--template",
            "Classify: {n}",
            "`--template` takes a file path; use `--prompt` for the text of a prompt",
        ),
        ("--template", &long, "`--template` takes a file path; use `--prompt` for the text of a prompt"),
        ("--template", "promt.md", "check the path given to `--template`"),
        (
            "--instruction",
            "Be short.\nBe kind.",
            "`--instruction` takes a file path: write the text to a file",
        ),
        (
            "--json-schema",
            "{\"type\":\"object\"}",
            "`--json-schema` takes a file path: write the text to a file",
        ),
    ] {
        let ended = place.run_rows(&["-m", "passthrough", flag, text]).code(1);
        ended.says("error[RM1101]: file not found for").says(&format!("help: {hint}"));
    }
}

#[test]
fn a_placeholder_in_single_braces_is_shown_as_it_has_to_be_written() {
    let place = Place::new();
    place.write("rows.csv", "message,n\nhello,1\n");
    for (prompt, text) in [
        (
            "Classify: {message}",
            "`{message}` is plain text; use two braces to insert a column: `{{message}}`\n",
        ),
        ("Classify: {\"a\": {}} this", "use two braces to insert a column, such as `{{message}}`\n"),
    ] {
        let ended = place.run(&[
            "-i",
            "rows.csv",
            "-o",
            "out.jsonl",
            "-m",
            "passthrough",
            "--overwrite",
            "-p",
            prompt,
        ]);
        ended.ok().says(text);
    }
}

#[test]
fn a_type_that_a_schema_cannot_have_is_reported_with_its_place_and_the_types_there_are() {
    let place = Place::new();
    place.write_rows(1);
    place.write("s.json", r#"{"type":"object","properties":{"label":{"type":"text"}}}"#);
    place.run_rows(&["-m", "passthrough", "--json-schema", "s.json"]).code(1).says(
        "error[RM1102]: invalid JSON schema in `s.json`: at `/properties/label/type`: \"text\" is not a \
         type; types are `string`, `number`, `integer`, `boolean`, `object`, `array` and `null`, or a list \
         of them\n",
    );
}

#[test]
fn columns_without_a_name_and_outputs_that_nobody_can_make_are_reported_before_anything_is_done() {
    let place = Place::new();
    place.write_rows(1);
    place
        .run_rows(&[ASK, &["--columns", ",,,"]].concat())
        .code(2)
        .says("`--columns ,,,` names no column\n")
        .says("help: separate names with commas, such as `--columns id,review`");
    for flag in ["--telemetry-output", "--error-output", "--summary-output"] {
        place.run_rows(&[ASK, &[flag, "/proc/x"]].concat()).code(1).says(&format!(
            "error[RM1302]: `/proc/x`, given to `{flag}`, does not exist, and files cannot be created in \
             `/proc`\n"
        ));
    }
    assert_eq!(place.names("."), ["rows.jsonl", "tmp"]);
}

#[test]
fn spreadsheets_are_neither_written_nor_taken_for_documents() {
    let place = Place::new();
    place.write_rows(1);
    for name in ["out.xlsx", "out.XLS", "out.ods"] {
        let ended = place.run(&[&["-i", "rows.jsonl", "-o", name], ASK].concat()).code(2);
        ended
            .says(&format!("`{name}` has the extension of a spreadsheet"))
            .says("help: use a name that ends in `.csv`");
    }
    place.run_rows(ASK).ok();
    place
        .rowmill(&["export", "out.jsonl", "-o", "out.xlsx"])
        .code(2)
        .says("has the extension of a spreadsheet");
    place.write("a.xlsx", "PK");
    place.write("b.xlsx", "PK");
    for (input, named) in [("a.xlsx", "a.xlsx"), ("*.xlsx", "a.xlsx")] {
        let run = place.run(&[&["-i", input, "-o", "new.jsonl"], ASK].concat()).code(1);
        let head = place.rowmill(&["head", input]).code(1);
        for ended in [run, head] {
            let ended = ended.says(&format!("cannot read rows from a spreadsheet: `{named}`\n"));
            ended.says(
                "help: export the sheet to a CSV file first and use that; with `--input-format documents`",
            );
        }
    }
}

#[test]
fn numbers_of_rows_are_reported_in_groups_of_three_digits() {
    let place = Place::new();
    place.write_rows(1200);
    place.run_rows(&[ASK, &["--limit", "1100"]].concat()).ok().says("1,100 rows: 1,100 ok");
    place.run_rows(&[ASK, &["--resume"]].concat()).ok().says("resuming: skipping 1,100 finished rows, ");
    let ended = place.run_rows(&[ASK, &["--overwrite", "--offset", "5000"]].concat()).ok();
    ended.says("`--offset 5000` skips all 1,200 rows");
}
