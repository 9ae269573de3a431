//! Several files are one input: found by a pattern, read in order, distinguished in messages.

use std::path::Path;

use rowmill_core::ports::{Dataset, InputReadProgress, ReadLimit};
use rowmill_data::{FileList, InputFile, InputFormat, InputLocation, InputSpec, open_dataset};
use rowmill_types::{Problem, ProblemCode, RowReadResult};
use tempfile::TempDir;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn spec(folder: &Path, pattern: &str, format: Option<InputFormat>) -> InputSpec {
    let text = folder.join(pattern).display().to_string();
    InputSpec::new(InputLocation::parse(&text).unwrap(), format)
}

fn rows(data: &dyn Dataset, room: usize) -> Vec<RowReadResult> {
    let mut source = data.open().unwrap();
    let mut rows = Vec::new();
    while source.read(&mut rows, ReadLimit { rows: room, bytes: 1 << 20 }).unwrap() {}
    let InputReadProgress { read, total } = source.position();
    assert_eq!(Some(read), total, "progress reaches the size of all files");
    rows
}

/// The number and text of each row, or the message of a bad one, without the folder.
fn shown(folder: &Path, pattern: &str, room: usize) -> Vec<String> {
    let data = open_dataset(&spec(folder, pattern, None)).unwrap();
    assert!(data.is_rereadable());
    let prefix = format!("{}/", folder.display());
    let show = |row: &RowReadResult| match row {
        Ok(row) => format!("{} {}", row.number(), row.json_text()),
        Err(bad) => format!("{} {} {}", bad.number, bad.kind, bad.message.replace(&prefix, "")),
    };
    rows(&*data, room).iter().map(show).collect()
}

fn refused(folder: &Path, pattern: &str) -> Problem {
    open_dataset(&spec(folder, pattern, None)).unwrap_err()
}

#[test]
fn lines_are_numbered_on_over_files_and_messages_name_the_file() {
    let folder = folder(&[
        ("b.jsonl", "{\"b\":1}\nnope\n[1]\n"),
        ("a.jsonl", "{\"a\":1}\n\n{\"a\":2}"),
        ("c.jsonl", ""),
        ("d.ndjson", "{\"d\":1}\n"),
    ]);
    for room in [1, 2, 100] {
        assert_eq!(
            shown(folder.path(), "*.*", room),
            [
                r#"1 {"a":1}"#,
                r#"3 {"a":2}"#,
                r#"4 {"b":1}"#,
                "5 InvalidJSON `b.jsonl`, line 2: expected ident at column 2",
                "6 InvalidRow `b.jsonl`, line 3: expected a JSON object, got an array",
                r#"7 {"d":1}"#,
            ]
        );
    }
    // Messages of a single file name only its lines, however it was found.
    assert_eq!(shown(folder.path(), "b.*", 9)[1], "2 InvalidJSON Line 2: expected ident at column 2");
}

#[test]
fn every_csv_has_its_own_header_which_takes_a_number() {
    let folder = folder(&[
        ("1.csv", "a,b\n1,2\n3\n"),
        ("2.csv", "b,a\n4,5\n6,7,8\n"),
        ("3.csv", ""),
        ("4.csv", "c\n\"9\n"),
    ]);
    assert_eq!(
        shown(folder.path(), "*.csv", 9),
        [
            r#"2 {"a":"1","b":"2"}"#,
            r#"3 {"a":"3","b":null}"#,
            r#"5 {"b":"4","a":"5"}"#,
            "6 InvalidRow `2.csv`, row 3: too many CSV columns (the record starts on line 3 of the file)",
            "7 InvalidRow `3.csv`: CSV input is missing a header row",
            "9 InvalidRow `4.csv`, row 2: a quote is never closed, so the rest of the file was read as one \
             value (the record starts on line 2 of the file)",
        ]
    );
}

#[test]
fn items_of_lists_are_counted_on_over_files() {
    let folder = folder(&[
        ("1.json", "[{\"a\":1}, 7,\n {\"a\":\n x}]"),
        ("2.json", "[{\"b\":1}"),
        ("3.json", "\n{\"c\":1}\n\n{\"c\":2}\n"),
    ]);
    assert_eq!(
        shown(folder.path(), "*.json", 9),
        [
            r#"1 {"a":1}"#,
            "2 InvalidRow `1.json`, item 2: expected a JSON object, got a number",
            "3 InvalidJSON `1.json`, item 3: expected value at line 2 column 2 of the item",
            r#"4 {"b":1}"#,
            "5 InvalidJSON `2.json`, item 2: the input ends before the `]` of the list",
            r#"7 {"c":1}"#,
            r#"9 {"c":2}"#,
        ]
    );
}

#[test]
fn a_file_that_is_gone_when_its_turn_comes_stops_the_read_after_the_rows_before() {
    let folder = folder(&[("a.jsonl", "{}\n{}\n"), ("b.jsonl", "{}\n")]);
    let data = open_dataset(&spec(folder.path(), "*.jsonl", None)).unwrap();
    let mut source = data.open().unwrap();
    std::fs::remove_file(folder.path().join("b.jsonl")).unwrap();
    let mut rows = Vec::new();
    let room = ReadLimit { rows: 9, bytes: 1 << 20 };
    assert!(source.read(&mut rows, room).unwrap());
    assert_eq!(rows.len(), 2);
    assert_eq!(source.read(&mut rows, room).unwrap_err().code, ProblemCode::InputNotFound);
}

#[test]
fn patterns_find_files_in_order_and_leave_out_folders_and_hidden_ones() {
    let folder = folder(&[
        ("b/2.jsonl", "{\"n\":\"b/2\"}"),
        ("b/.hidden.jsonl", "{\"n\":\"hidden\"}"),
        ("a/1.jsonl", "{\"n\":\"a/1\"}"),
        ("a/deep/er.jsonl", "{\"n\":\"deep\"}"),
        (".out.jsonl.rowmill/ledger-1.jsonl", "{\"n\":\"ledger\"}"),
        ("z.jsonl", "{\"n\":\"z\"}"),
        ("dir.jsonl/inside.txt", ""),
        ("odd [1]/x.jsonl", "{\"n\":\"odd\"}"),
    ]);
    for (pattern, found) in [
        ("*.jsonl", &["z"][..]),
        ("**/*.jsonl", &["a/1", "deep", "b/2", "odd", "z"]),
        ("?/*.jsonl", &["a/1", "b/2"]),
        ("[ab]/[0-9].jsonl", &["a/1", "b/2"]),
        ("b/.*.jsonl", &["hidden"]),
        ("odd [[]1]/*.jsonl", &["odd"]),
        ("odd [1]/x.jsonl", &["odd"]),
    ] {
        let data = open_dataset(&spec(folder.path(), pattern, None)).unwrap();
        let names: Vec<String> = rows(&*data, 9)
            .into_iter()
            .map(|row| row.unwrap().field("n").unwrap().replace('"', ""))
            .collect();
        assert_eq!(names, found, "{pattern}");
    }
}

#[test]
fn a_pattern_that_cannot_be_used_is_refused_with_the_reason() {
    let folder = folder(&[("a.jsonl", "{}"), ("b.csv", "a\n"), ("odd [1]/x.jsonl", "{}")]);
    let reported = |pattern: &str| {
        let problem = refused(folder.path(), pattern);
        let message = problem.message.replace(&format!("{}/", folder.path().display()), "");
        (problem.code, message, problem.hint.unwrap_or_default())
    };
    for (pattern, code, message, hint) in [
        ("*.tsv", ProblemCode::InputNotFound, "no input file matches `*.tsv`", "start with a dot"),
        ("odd [1]/*", ProblemCode::InputNotFound, "no input file matches `odd [1]/*`", "`[[]`"),
        ("a**", ProblemCode::InputNotFound, "invalid input pattern: `a**`", "`**` folders"),
        ("[.jsonl", ProblemCode::InputNotFound, "invalid input pattern: `[.jsonl`", "one of these"),
        (
            "*.*",
            ProblemCode::InputFormat,
            "the files of `*.*` have different formats: `a.jsonl` and `b.csv`",
            "`input_format`",
        ),
    ] {
        let (found_code, found_message, found_hint) = reported(pattern);
        assert_eq!((found_code, found_message.as_str()), (code, message));
        assert!(found_hint.contains(hint), "{found_hint}");
    }
    // Naming one format for all of them resolves it.
    let data = open_dataset(&spec(folder.path(), "*.*", Some(InputFormat::Csv))).unwrap();
    assert_eq!(rows(&*data, 9).len(), 0);
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_and_a_pipe_are_reported_and_not_passed_over() {
    let folder = folder(&[("a.jsonl", "{}")]);
    std::os::unix::fs::symlink("nowhere", folder.path().join("b.jsonl")).unwrap();
    assert_eq!(refused(folder.path(), "*.jsonl").code, ProblemCode::InputNotFound);
    std::fs::remove_file(folder.path().join("b.jsonl")).unwrap();
    let pipe = folder.path().join("c.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let problem = refused(folder.path(), "*.jsonl");
    assert!(problem.message.contains("matches something that is not a file"), "{}", problem.message);
}

#[test]
fn files_that_were_fetched_are_called_by_their_names() {
    let folder = folder(&[("blob1", "{\"a\":1}\n"), ("blob2", "nope\n")]);
    let file = |path: &str, name: &str| InputFile::new(folder.path().join(path), name.into());
    let list = FileList {
        name: "hf://datasets/o/n".into(),
        files: vec![file("blob1", "train/1.jsonl"), file("blob2", "train/2.jsonl")],
        identity: Some("main@abc".into()),
    };
    let data = open_dataset(&InputSpec::new(InputLocation::Files(list), None)).unwrap();
    let bad = rows(&*data, 9).pop().unwrap().unwrap_err();
    assert_eq!(
        (bad.number, bad.message.as_str()),
        (2, "`train/2.jsonl`, line 1: expected ident at column 2")
    );
    assert_eq!(data.identity().unwrap().probe.as_deref(), Some("main@abc"));
}
