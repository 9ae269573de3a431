//! Compressed text, JSON lists, several files and folders are inputs like any other.

use std::sync::Arc;

use crate::support::Place;
use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

/// `{"n":1}` and `{"n":2}` on lines, compressed with gzip.
const PACKED: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xabV\xcaS\xb22\xac\xe5\xaa\x06\xd1F\xb5\\\x00E\xc6\x98\xbe\x10\x00\x00\x00";

/// The row number and the result of each envelope, or the message of its error.
fn numbers_and_results(envelopes: &[Value]) -> Vec<(u64, String)> {
    let what = |envelope: &Value| match &envelope["error"]["message"] {
        Value::String(message) => message.clone(),
        _ => envelope["result"].to_string(),
    };
    envelopes.iter().map(|envelope| (envelope["row_number"].as_u64().unwrap(), what(envelope))).collect()
}

#[test]
fn packed_rows_come_from_files_pipes_and_samples_alike() {
    let place = Place::new();
    place.write("rows.jsonl.gz", PACKED);
    place.run(&["-i", "rows.jsonl.gz", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"]).ok();
    let whole = [(1, "\"1\"".to_owned()), (2, "\"2\"".to_owned())];
    assert_eq!(numbers_and_results(&place.json("out.jsonl")), whole);
    for flags in [&[][..], &["--sample", "2"]] {
        let flags =
            [&["--input-format", "jsonl", "-o", "-", "-m", "passthrough", "-p", "{{n}}"], flags].concat();
        assert_eq!(numbers_and_results(&place.pipe(PACKED, &flags).ok().lines()), whole);
    }
}

#[test]
fn rows_before_the_place_where_packed_input_is_cut_are_kept_and_a_resume_does_the_rest() {
    let place = Place::new();
    let flags = ["-i", "rows.jsonl.gz", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"];
    // Everything but the end of the checksum.
    place.write("rows.jsonl.gz", &PACKED[..PACKED.len() - 3]);
    place
        .run(&flags)
        .code(1)
        .says("error[RM1002]: input ends in the middle of its gzip data: `rows.jsonl.gz`");
    assert_eq!(place.json("out.jsonl").len(), 2);
    place.write("rows.jsonl.gz", PACKED);
    place.run(&[&flags[..], &["--resume", "--accept-changes"]].concat()).ok();
    assert_eq!(
        numbers_and_results(&place.json("out.jsonl")),
        [(1, "\"1\"".to_owned()), (2, "\"2\"".to_owned())]
    );
}

#[test]
fn a_pattern_and_a_list_are_inputs_and_bad_rows_name_their_file() {
    let place = Place::new();
    place.write("in/a.jsonl", "{\"n\":1}\n");
    place.write("in/b.jsonl", "{\"n\":2}\nnope\n");
    place.write("list.json", "[{\"n\": 1},\n 7]");
    place.run(&["-i", "in/*.jsonl", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}"]).code(3);
    assert_eq!(
        numbers_and_results(&place.json("out.jsonl")),
        [
            (1, "\"1\"".to_owned()),
            (2, "\"2\"".to_owned()),
            (3, "`in/b.jsonl`, line 2: expected ident at column 2".to_owned())
        ]
    );
    place.run(&["-i", "list.json", "-o", "list.jsonl", "-m", "passthrough", "-p", "{{n}}"]).code(3);
    assert_eq!(
        numbers_and_results(&place.json("list.jsonl")),
        [(1, "\"1\"".to_owned()), (2, "Item 2: expected a JSON object, got a number".to_owned())]
    );
    let ended = place.run(&["-i", "in/*.csv", "-o", "none.jsonl", "-m", "passthrough"]);
    ended.code(1).says("error[RM1001]: no input file matches `in/*.csv`");
}

#[test]
fn a_folder_of_parts_is_read_by_run_and_head_alike() {
    let place = Place::new();
    place.write("sales/year=2026/month=02/b.csv", "n\n3\n");
    place.write("sales/year=2026/month=01/a.csv", "n\n1\n2\n");
    place.write("sales/_SUCCESS", "");
    place
        .run(&["-i", "sales", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}} {{year}} {{month}}"])
        .ok();
    let results: Vec<String> =
        numbers_and_results(&place.json("out.jsonl")).into_iter().map(|(_, result)| result).collect();
    assert_eq!(results, [r#""1 2026 1""#, r#""2 2026 1""#, r#""3 2026 2""#]);
    let head: Value = serde_json::from_str(&place.rowmill(&["head", "sales", "--json"]).ok().stdout).unwrap();
    assert_eq!(head["head"][2]["row"], serde_json::json!({"n": "3", "year": 2026, "month": 2}), "{head}");
    place.write("rows.jsonl/_SUCCESS", "");
    let ended = place.run(&["-i", "rows.jsonl", "-o", "none.jsonl", "-m", "passthrough"]);
    ended.code(1).says("error[RM1001]: no jsonl file in folder `rows.jsonl`");
}

#[test]
fn a_delimiter_is_recognised_and_reported_and_one_that_changes_rows_belongs_to_the_run() {
    let place = Place::new();
    place.write("rows.csv", "a;b,c\n1;2,3\n4;5,6\n");
    place.write("plain.csv", "a;b\n1;2\n");
    let message = "`plain.csv` is read with semicolons as its delimiter";
    place
        .run(&["-i", "plain.csv", "-o", "plain.jsonl", "-m", "passthrough", "-p", "{{b}}"])
        .ok()
        .says(message);
    place.rowmill(&["head", "plain.csv"]).ok().says(message);
    assert_eq!(place.json("plain.jsonl")[0]["result"], "2");
    let piped = ["--input-format", "csv", "-o", "-", "-m", "passthrough", "-p", "{{b}}"];
    let ended = place.pipe(b"a\tb\n1\t2\n", &piped).ok().says("`-` is read with tabs as its delimiter");
    assert_eq!(ended.lines()[0]["result"], "2");

    let flags = ["-i", "rows.csv", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{row_json}}"];
    place.run(&[&flags[..], &["--delimiter", ";", "--limit", "1"]].concat()).ok();
    let resumed = place.run(&[&flags[..], &["--resume"]].concat());
    resumed.code(1).says("delimiter: `;` -> none");
    place.run(&[&flags[..], &["--resume", "--delimiter", ";"]].concat()).ok();
    assert_eq!(place.json("out.jsonl").len(), 2);
    place.run(&[&flags[..], &["--overwrite", "--delimiter", ";;"]].concat()).code(2).says("--delimiter");
}

#[test]
fn only_the_columns_that_a_run_looks_at_are_read() {
    let place = Place::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../rowmill-data/tests/files/encrypted-columns.parquet");
    place.write("rows.parquet", std::fs::read(file).unwrap());
    let run = |flags: &[&str]| {
        place.run(
            &[&["-i", "rows.parquet", "-o", "out.jsonl", "-m", "passthrough", "--overwrite"], flags].concat(),
        )
    };
    run(&["-p", "{{b}}"]).code(1).says("columns of the input file are encrypted: `rows.parquet`");
    run(&["-p", "{{a}}", "--columns", "a"]).ok();
    run(&["-p", "{{a}}", "--where", "a > 1"]).ok();
    assert_eq!(numbers_and_results(&place.json("out.jsonl")), [(2, "\"2\"".to_owned())]);
    run(&["-p", "{{row_json}}", "--where", "a > 1"]).code(1).says("are encrypted");
}

#[test]
fn a_record_of_csv_over_the_bound_is_one_failed_row_and_the_next_is_worked_on() {
    let place = Place::new();
    let long = "x".repeat((64 << 20) + 1);
    place.write("rows.csv", format!("n,text\n1,short\n2,\"{long}\"\n3,\"a\nb\"\n"));
    let flags = ["-i", "rows.csv", "-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}} {{text}}"];
    place.run(&flags).code(3);
    let message = numbers_and_results(&place.json("out.jsonl"));
    let expected = [
        (2, "\"1 short\"".to_owned()),
        (3, "Row 3: longer than 64 MiB (the record starts on line 3 of the input)".to_owned()),
        (4, "\"3 a\\nb\"".to_owned()),
    ];
    assert_eq!(message, expected);
}

/// `{"n":1}` and `{"n":2}` on lines in a complete zstd frame, and half of another frame.
const CUT_ZSTD: &[u8] =
    b"\x28\xb5\x2f\xfd\x20\x10\x81\x00\x00{\"n\":1}\n{\"n\":2}\n\x28\xb5\x2f\xfd\x20\x08\x41\x00\x00{\"n";

#[test]
fn an_input_that_is_cut_is_never_taken_for_a_shorter_one() {
    let place = Place::new();
    let base = ["-o", "out.jsonl", "-m", "passthrough", "-p", "{{n}}", "--overwrite"];
    let query = ["--sql", "SELECT n FROM input"];
    let read = [(1, "\"1\"".to_owned()), (2, "\"2\"".to_owned())];
    // A text that ends inside of a record, the row number of the error, and the position.
    for (name, text, number, place_in_it) in [
        ("a.json", "[{\"n\":1},{\"n\":2},{\"n\":", 3, "item 3: the input ends in the middle of it"),
        ("b.json", "[{\"n\":1},{\"n\":2}", 3, "item 3: the input ends before the `]` of the list"),
        ("c.json", "[{\"n\":1},{\"n\":2} {\"n\":3}]", 2, "item 2: expected `,` or `]` after it"),
        ("d.json", "{\"n\":1}\n{\"n\":2}\n{\"n\":3,", 3, "line 3: the input ends in the middle of it"),
        ("e.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":\"é", 3, "line 3: the input ends in the middle of it"),
        ("f.csv", "n,t\n1,a\n2,b\n3,\"open\n", 4, "row 4: a quote is never closed"),
    ] {
        place.write(name, text);
        let run = |flags: &[&str]| place.run(&[&["-i", name][..], &base, flags].concat());
        for flags in [&[][..], &["--where", "n < 9"]] {
            run(flags).code(3);
            let message = numbers_and_results(&place.json("out.jsonl"));
            assert_eq!(message.last().unwrap().0, number, "{name} {flags:?}: {message:?}");
            assert!(!message.last().unwrap().1.starts_with('"'), "{name} {flags:?}: {message:?}");
        }
        let problem = format!("error[RM1002]: cannot read the input to its end: `{name}`, {place_in_it}");
        run(&query).code(1).says(&problem).says("--resume --accept-changes");
        let rows = numbers_and_results(&place.json("out.jsonl"));
        let before = usize::try_from(number - 1).unwrap().min(2);
        assert_eq!(rows, read[..before], "{name}: what came before is kept");
        run(&["--sql", "SELECT count(*) AS n FROM input"]).code(1).says(&problem);
        place.rowmill(&[&["head", name][..], &query].concat()).code(1).says(&problem);
    }
    place.write("g.jsonl.gz", &PACKED[..PACKED.len() - 3]);
    place.write("h.jsonl.zst", CUT_ZSTD);
    place.write("i.parquet", b"PAR1 and half of a row group");
    for (name, what, kept) in [
        ("g.jsonl.gz", "input ends in the middle of its gzip data", &read[..]),
        ("h.jsonl.zst", "input ends in the middle of its zstd data", &read),
        ("i.parquet", "input file is truncated", &[]),
    ] {
        // A query reads the first rows before it starts, and finds the truncation there.
        for flags in [&["--where", "n < 9"], &query, &[][..]] {
            let flags = [&["-i", name][..], &base, flags].concat();
            place.run(&flags).code(1).says(&format!("error[RM1002]: {what}"));
        }
        if !kept.is_empty() {
            assert_eq!(numbers_and_results(&place.json("out.jsonl")), kept, "{name}");
        }
        place.rowmill(&["head", name]).code(1).says("error[RM1002]");
    }
}

/// A small file of Parquet, and where its footer begins.
fn small_parquet() -> (Vec<u8>, usize) {
    let words = (0..60).map(|at| (at % 7 != 0).then(|| format!("word {}", at % 11)));
    let mut lists = ListBuilder::new(Int32Builder::new());
    for at in 0..60 {
        (0..at % 3).for_each(|item| lists.values().append_value(item));
        lists.append(at % 5 != 0);
    }
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("n", Arc::new(Int64Array::from_iter_values(0..60)), true),
        ("w", Arc::new(StringArray::from_iter(words)), true),
        ("l", Arc::new(lists.finish()), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_max_row_group_row_count(Some(20))
        .set_data_page_row_count_limit(10)
        .set_write_batch_size(5)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let length = bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap();
    let footer = bytes.len() - 8 - u32::from_le_bytes(length) as usize;
    (bytes, footer)
}

#[test]
fn a_panic_of_a_parser_is_an_error_of_the_command_and_never_on_the_screen() {
    let place = Place::new();
    let (whole, footer) = small_parquet();
    let gave_up = (4..footer).any(|at| {
        let mut bytes = whole.clone();
        bytes[at] = 0xff;
        place.write("rows.parquet", &bytes);
        let messages = place.rowmill(&["head", "rows.parquet", "-n", "60"]).stderr;
        assert!(!messages.contains("panicked"), "byte {at}: {messages}");
        messages.contains("the decoder gave up")
    });
    assert!(gave_up, "without a panic, nothing is known about what is printed");
}

#[test]
fn a_query_ends_where_a_file_among_several_or_a_pipe_is_cut() {
    let place = Place::new();
    let (whole, cut) = ("[{\"n\":1},{\"n\":2}]", "[{\"n\":3},{\"n\":");
    let flags = ["-m", "passthrough", "-p", "{{n}}", "--sql", "SELECT count(*) AS n FROM input"];
    for broken in ["a", "b", "c"] {
        for name in ["a", "b", "c"] {
            place.write(&format!("in/{name}.json"), if name == broken { cut } else { whole });
        }
        place
            .run(&[&["-i", "in/*.json", "-o", "out.jsonl", "--overwrite"][..], &flags].concat())
            .code(1)
            .says("error[RM1002]: cannot read the input to its end: `")
            .says(&format!("{broken}.json`, item 2: the input ends in the middle of it"));
    }
    let piped = [&["--input-format", "jsonl", "-o", "-"][..], &flags].concat();
    let ended = place.pipe(b"{\"n\":1}\n{\"n\":", &piped).code(1);
    ended.says(
        "error[RM1002]: cannot read the input to its end: `-`, line 2: the input ends in the middle of it",
    );
}
