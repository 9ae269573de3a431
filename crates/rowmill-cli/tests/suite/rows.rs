//! Which records become rows, their ids, and what reaches the model and the envelope.

use crate::support;

use crate::support::{Place, chat_prompts, each, keys, row_numbers, simulated};
use serde_json::{Value, json};

/// Runs a file through the built-in echo with the prompt `[{{t}}]`, input included.
fn echo(name: &str, content: impl AsRef<[u8]>) -> (i32, Vec<Value>) {
    let place = Place::new();
    place.write(name, content);
    let flags = ["-o", "out.jsonl", "-m", "passthrough", "-p", "[{{t}}]", "--include-input"];
    let ended = place.run(&[&["-i", name], &flags[..]].concat());
    (ended.code, place.json("out.jsonl"))
}

/// Row number, and result or type and message of the error.
fn numbers_and_results(envelopes: &[Value]) -> Vec<(u64, String)> {
    let outcome = |envelope: &Value| match envelope["error"].as_object() {
        None => envelope["result"].as_str().unwrap_or("?").to_owned(),
        Some(error) => {
            format!("{}: {}", error["type"].as_str().unwrap_or("?"), error["message"].as_str().unwrap_or("?"))
        }
    };
    row_numbers(envelopes).into_iter().zip(envelopes.iter().map(outcome)).collect()
}

fn expected(rows: &[(u64, &str)]) -> Vec<(u64, String)> {
    rows.iter().map(|(number, text)| (*number, (*text).to_owned())).collect()
}

#[test]
fn a_row_number_is_its_line_and_blank_lines_count_but_are_no_rows() {
    let text = "\u{feff}{\"t\":\"a\"}\n\n   \n\t\r\n{\"t\":\"b\"}\r\n\n{\"t\":\"c\"}";
    let (code, envelopes) = echo("rows.jsonl", text);
    assert_eq!((code, numbers_and_results(&envelopes)), (0, expected(&[(1, "[a]"), (5, "[b]"), (7, "[c]")])));
    assert_eq!(each(&envelopes, "/id"), [json!(1), json!(5), json!(7)]);
}

#[test]
fn a_bad_line_is_one_failed_row_and_the_run_goes_on() {
    let mut bytes = Vec::new();
    for line in [
        &b"{\"t\":\"a\"}"[..],
        b"{\"t\":",
        b"[1]",
        b"\"text\"",
        b"17",
        b"true",
        b"null",
        b"{\"t\":\"\xff\"}",
        b"{\"t\":\"\\ud800\"}",
        b"{\"t\":NaN}",
        b"{\"t\":\"a\"} {}",
        b"{\"t\":\"z\"}",
    ] {
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    let (code, envelopes) = echo("rows.jsonl", bytes);
    assert_eq!(code, 3);
    let rows = expected(&[
        (1, "[a]"),
        (2, "InvalidJSON: Line 2: EOF while parsing a value at column 5"),
        (3, "InvalidRow: Line 3: expected a JSON object, got an array"),
        (4, "InvalidRow: Line 4: expected a JSON object, got a string"),
        (5, "InvalidRow: Line 5: expected a JSON object, got a number"),
        (6, "InvalidRow: Line 6: expected a JSON object, got a boolean"),
        (7, "InvalidRow: Line 7: expected a JSON object, got null"),
        (8, "InvalidJSON: Line 8: not valid UTF-8 at byte 7"),
        (9, "InvalidJSON: Line 9: half of a surrogate pair in a `\\u` escape"),
        (10, "InvalidJSON: Line 10: expected value at column 6"),
        (11, "InvalidJSON: Line 11: trailing characters at column 11"),
        (12, "[z]"),
    ]);
    assert_eq!(numbers_and_results(&envelopes), rows);
    assert_eq!(each(&envelopes[1..11], "/input"), vec![Value::Null; 10]);
    assert!(keys(&envelopes[1]).ends_with(&["error", "input"]));
}

#[test]
fn number_text_key_order_and_escapes_survive_in_prompts_and_in_the_input() {
    let (simulator, place) = simulated();
    let row = r#"{"z": 12345678901234567890123, "a": 1.50, "e": 1e3, "t": "é\u00e9\n\"", "o": {"k": [1.0, null]}, "b": -0.0}"#;
    place.write("rows.jsonl", row);
    let prompt = "{{z}} {{a}} {{e}} {{t}} {{o}} {{b}}";
    place.run_rows(&["-m", "openai.m", "-p", prompt, "--include-input"]).ok();
    let shown = "12345678901234567890123 1.50 1e3 éé\n\" {\"k\": [1.0, null]} -0.0";
    assert_eq!(chat_prompts(&simulator), [shown]);
    let input = r#""input":{"z":12345678901234567890123,"a":1.50,"e":1e3,"t":"éé\n\"","o":{"k":[1.0,null]},"b":-0.0}}"#;
    assert!(place.read("out.jsonl").ends_with(&format!("{input}\n")), "{}", place.read("out.jsonl"));
}

#[test]
fn of_a_name_that_occurs_twice_the_last_value_counts() {
    let (_code, envelopes) = echo("rows.jsonl", r#"{"t":"first","t":"last"}"#);
    assert_eq!(numbers_and_results(&envelopes), expected(&[(1, "[last]")]));
}

#[test]
fn an_empty_input_is_a_run_of_no_rows() {
    for (name, content) in [("rows.jsonl", ""), ("rows.jsonl", "\n \n"), ("rows.csv", "t\n"), ("r.tsv", "t")]
    {
        assert_eq!(echo(name, content), (0, Vec::new()), "{name} {content:?}");
    }
}

#[test]
fn csv_rows_are_counted_by_record_and_their_values_are_text() {
    let text = "\u{feff}t,n\r\na,1\r\n\"two\nlines, \"\"quoted\"\"\",2.50\r\n\r\nshort\r\nlong,1,2\r\n\"\",4\r\nlast,";
    let (code, envelopes) = echo("rows.csv", text);
    assert_eq!(code, 3);
    let rows = expected(&[
        (2, "[a]"),
        (3, "[two\nlines, \"quoted\"]"),
        (4, "[short]"),
        (5, "InvalidRow: Row 5: too many CSV columns (the record starts on line 7 of the input)"),
        (6, "[]"),
        (7, "[last]"),
    ]);
    assert_eq!(numbers_and_results(&envelopes), rows);
    assert_eq!(envelopes[0]["input"], json!({"t": "a", "n": "1"}));
    assert_eq!(envelopes[1]["input"]["n"], "2.50");
    assert_eq!(envelopes[2]["input"], json!({"t": "short", "n": null}));
    assert_eq!(envelopes[3]["input"], Value::Null);
    assert_eq!(envelopes[5]["input"]["n"], "");
}

#[test]
fn tsv_is_csv_with_tabs_and_endings_are_known_in_any_case() {
    let (code, envelopes) = echo("ROWS.TSV", "t\tn\na,b\t1\n");
    assert_eq!((code, numbers_and_results(&envelopes)), (0, expected(&[(2, "[a,b]")])));
    for name in ["rows.NDJSON", "rows.JsonL"] {
        assert_eq!(echo(name, "{\"t\":\"a\"}").1.len(), 1, "{name}");
    }
}

#[test]
fn a_broken_header_is_one_failed_row_and_nothing_more_is_read() {
    for (name, text, message) in [
        ("rows.csv", "", "CSV input is missing a header row"),
        ("rows.csv", "a,,b, \n1,2,3,4\n", "CSV header contains blank column names: 2, 4"),
        ("rows.csv", "b,a,b,a\n1,2,3,4\n", "CSV header contains duplicate column names: a, b"),
        ("rows.tsv", "b\tb\n1\t2\n", "TSV header contains duplicate column names: b"),
    ] {
        let (code, envelopes) = echo(name, text);
        assert_eq!(code, 3, "{message}");
        assert_eq!(numbers_and_results(&envelopes), expected(&[(1, &format!("InvalidRow: {message}"))]));
    }
}

#[test]
fn csv_that_is_not_utf8_or_not_closed_fails_where_it_is() {
    let (code, envelopes) = echo("rows.csv", b"t,n\na,1\nb,\xff\nc,3\n\"open,4\nd,5\n");
    assert_eq!(code, 3);
    let found = numbers_and_results(&envelopes);
    assert_eq!(
        found[..3],
        expected(&[(2, "[a]"), (3, "InvalidRow: Row 3: column `n` is not valid UTF-8"), (4, "[c]"),])
    );
    assert!(found[3].1.starts_with("InvalidRow: Row 5: a quote is never closed"), "{}", found[3].1);
    assert_eq!(found.len(), 4);
}

#[test]
fn standard_input_needs_a_format_and_streams_every_kind() {
    let place = Place::new();
    let flags = ["-m", "passthrough", "-p", "[{{t}}]", "-o", "-"];
    let ended = place.pipe(b"{}", &flags).code(2);
    ended.says("error[RM0001]: standard input needs `--input-format`\n");
    for (format, text) in [
        ("jsonl", "{\"t\":\"a\"}\n"),
        ("ndjson", "{\"t\":\"a\"}"),
        ("csv", "t\na\n"),
        ("tsv", "t\tu\na\tb\n"),
    ] {
        let ended = place.pipe(text.as_bytes(), &[&flags[..], &["--input-format", format]].concat()).ok();
        assert_eq!(each(&ended.lines(), "/result"), [json!("[a]")], "{format}");
    }
}

#[test]
fn an_id_is_the_string_value_of_its_field() {
    let place = Place::new();
    place.write(
        "rows.jsonl",
        "{\"k\":\"x\"}\n{\"k\":7}\n{\"k\":1.50}\n{\"k\":true}\n{\"other\":1}\nbroken\n{\"k\":\"é\\u0041\"}\n",
    );
    place.run_rows(&["-m", "passthrough", "--id-field", "k"]).code(3);
    let envelopes = place.json("out.jsonl");
    let ids = [json!("x"), json!("7"), json!("1.50"), json!("true"), json!(5), json!(6), json!("éA")];
    assert_eq!(each(&envelopes, "/id"), ids);
    assert_eq!(envelopes[4]["error"], json!({"type": "MissingIdField", "message": "Missing id field 'k'"}));
    assert_eq!(envelopes[5]["error"]["type"], "InvalidJSON");
}

#[test]
fn ids_that_name_nothing_or_repeat_are_refused_before_anything_is_sent() {
    for (rows, code, message) in [
        (r#"{"k":null}"#, "RM1004", "row 2: id field `k` must be a non-empty string or number, got null"),
        (
            r#"{"k":""}"#,
            "RM1004",
            "row 2: id field `k` must be a non-empty string or number, got an empty string",
        ),
        (r#"{"k":[1]}"#, "RM1004", "row 2: id field `k` must be a non-empty string or number, got an array"),
        (r#"{"k":{}}"#, "RM1004", "row 2: id field `k` must be a non-empty string or number, got an object"),
        (r#"{"k":"a"}"#, "RM1005", "duplicate value `a` of id field `k` at rows 1 and 2"),
        ("{\"k\":1}\n{\"k\":\"1\"}", "RM1005", "duplicate value `1` of id field `k` at rows 2 and 3"),
    ] {
        for parallel in ["1", "64"] {
            let (simulator, place) = simulated();
            place.write("rows.jsonl", format!("{{\"k\":\"a\"}}\n{rows}\n"));
            let ended = place.run_rows(&["-m", "openai.m", "--id-field", "k", "--parallel", parallel]);
            ended.code(1).says(&format!("error[{code}]: {message}\n"));
            assert_eq!(simulator.stats().connections, 0);
            assert_eq!(place.names("."), ["rows.jsonl", "tmp"]);
        }
    }
}

#[test]
fn only_ids_of_chosen_rows_are_checked() {
    let place = Place::new();
    place.write("rows.jsonl", "{\"k\":\"a\"}\n{\"k\":\"b\"}\n{\"k\":\"a\"}\n{\"k\":null}\n");
    let run = |more: &[&str]| {
        place.run_rows(&[&["-m", "passthrough", "--id-field", "k", "--overwrite"], more].concat())
    };
    run(&["--limit", "2"]).ok();
    run(&["--offset", "1", "--limit", "2"]).ok();
    run(&["--limit", "3"]).code(1);
    run(&["--offset", "2"]).code(1);
}

#[test]
fn on_standard_input_bad_ids_are_failed_rows() {
    let (simulator, place) = simulated();
    let rows = "{\"k\":\"a\"}\n{\"k\":null}\n{\"k\":\"a\"}\n{\"k\":[]}\n{}\n{\"k\":\"b\"}\n";
    let flags = ["--input-format", "jsonl", "-o", "out.jsonl", "-m", "openai.m", "--id-field", "k"];
    place.pipe(rows.as_bytes(), &flags).code(3);
    let envelopes = place.json("out.jsonl");
    let types = each(&envelopes, "/error/type");
    let expected = [
        Value::Null,
        json!("InvalidIdField"),
        json!("DuplicateId"),
        json!("InvalidIdField"),
        json!("MissingIdField"),
        Value::Null,
    ];
    assert_eq!((types, simulator.stats().requests), (expected.to_vec(), 2));
    assert_eq!(row_numbers(&envelopes), [1, 2, 3, 4, 5, 6]);
    assert_eq!(
        envelopes[2]["error"]["message"],
        "Duplicate value 'a' of id field 'k': an earlier row has it too"
    );
}

#[test]
fn samples_are_those_that_other_tools_draw_whatever_the_concurrency_and_the_input() {
    let rows = support::numbered_rows(20);
    for (seed, zero_based) in [(&["--seed", "7"][..], [1, 2, 4, 10, 12]), (&[], [1, 8, 12, 13, 15])] {
        let numbers: Vec<u64> = zero_based.iter().map(|index| index + 1).collect();
        for parallel in [&["--parallel", "1"][..], &["--parallel", "50"], &[]] {
            let place = Place::new();
            place.write("rows.jsonl", &rows);
            let flags = [&["-m", "passthrough", "--sample", "5"], seed, parallel].concat();
            place.run_rows(&flags).ok();
            assert_eq!(row_numbers(&place.json("out.jsonl")), numbers);
            let piped = [&flags[..], &["--input-format", "jsonl", "-o", "-"]].concat();
            let ended = place.pipe(rows.as_bytes(), &piped).ok();
            assert_eq!(row_numbers(&ended.lines()), numbers);
            assert!(place.names("tmp").is_empty(), "the copy of the stream is gone");
        }
    }
}

#[test]
fn bad_lines_take_a_place_in_the_choice_of_rows() {
    let place = Place::new();
    place.write("rows.jsonl", "{\"t\":\"a\"}\nbroken\n\n{\"t\":\"b\"}\n{\"t\":\"c\"}\n");
    place.run_rows(&["-m", "passthrough", "--offset", "1", "--limit", "2"]).code(3);
    assert_eq!(row_numbers(&place.json("out.jsonl")), [2, 4]);
}

#[test]
fn input_that_is_no_text_or_not_there_is_refused_with_the_remedy() {
    let place = Place::new();
    place.write("rows.jsonl", b"PK\x03\x04\x14\x00");
    place.write("folder/.hidden", "");
    for (input, code, message, help) in [
        ("none.jsonl", 1, "error[RM1001]: input file not found: `none.jsonl`", "check the path"),
        ("folder", 1, "error[RM1001]: no file in folder `folder`", "check the path"),
        ("s3://bucket/rows.jsonl", 1, "input from `s3://` is not supported", "use a path"),
        ("rows.jsonl", 1, "input is not UTF-8 text but a ZIP archive", "decompress"),
        ("rows.gz", 1, "input file not found", "check the path"),
    ] {
        let ended = place.run(&["-i", input, "-o", "out.jsonl", "-m", "passthrough", "--overwrite"]);
        ended.code(code).says(message).says(help);
    }
}

#[test]
fn a_line_that_was_corrected_has_one_envelope_under_its_own_id() {
    let place = Place::new();
    place.write("rows.jsonl", "{\"id\":\"a\"}\nbroken\n{\"id\":\"c\"}\n");
    let flags = ["-m", "passthrough", "-p", "{{id}}", "--id-field", "id"];
    place.run_rows(&flags).code(3);
    place.write("rows.jsonl", "{\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n");
    place.run_rows(&[&flags[..], &["--resume"]].concat()).ok();
    assert_eq!(each(&place.json("out.jsonl"), "/id"), ["a", "b", "c"]);
}
