//! JSON lists are read item by item; malformed ones are reported.

use rowmill_core::ports::{ReadLimit, RowSource};
use rowmill_data::{InputLocation, InputSpec, open_dataset};
use rowmill_types::{Problem, ProblemCode, RowReadResult};

const ROOM: ReadLimit = ReadLimit { rows: 2, bytes: 1 << 20 };

fn open(bytes: &[u8]) -> Box<dyn RowSource> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.json");
    std::fs::write(&path, bytes).unwrap();
    open_dataset(&InputSpec::new(InputLocation::File(path), None)).unwrap().open().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<String>, Problem> {
    let mut source = open(bytes);
    let mut rows = Vec::new();
    while source.read(&mut rows, ROOM)? {}
    assert!(!source.read(&mut rows, ROOM)?, "the end stays the end");
    let show = |row: &RowReadResult| match row {
        Ok(row) => format!("{} {}", row.number(), row.json_text()),
        Err(bad) => format!("{} {} {}", bad.number, bad.kind, bad.message),
    };
    Ok(rows.iter().map(show).collect())
}

#[test]
fn items_keep_their_text_and_are_numbered_from_one() {
    assert_eq!(
        read(
            "\u{feff} [\n  {\"a\": 1.50,\n   \"b\": \"],\\\"\"},{},\r\n{\"a\":{\"b\":[1,2]}} ]\n".as_bytes()
        )
        .unwrap(),
        ["1 {\"a\": 1.50,\n   \"b\": \"],\\\"\"}", "2 {}", r#"3 {"a":{"b":[1,2]}}"#]
    );
    assert!(read(b" [ ] ").unwrap().is_empty());
}

#[test]
fn an_item_that_is_no_object_or_no_json_is_one_bad_row_and_the_next_is_read() {
    assert_eq!(
        read(b"[1, \"x\", [2], null, {\"a\":NaN}, {\"a\":\"\\ud800\"}, {\"a\":\"\xff\"}, nope, {\"a\":1}]")
            .unwrap(),
        [
            "1 InvalidRow Item 1: expected a JSON object, got a number",
            "2 InvalidRow Item 2: expected a JSON object, got a string",
            "3 InvalidRow Item 3: expected a JSON object, got an array",
            "4 InvalidRow Item 4: expected a JSON object, got null",
            "5 InvalidJSON Item 5: expected value at column 6",
            "6 InvalidJSON Item 6: half of a surrogate pair in a `\\u` escape",
            "7 InvalidJSON Item 7: not valid UTF-8 at byte 7",
            "8 InvalidJSON Item 8: expected ident at column 2",
            r#"9 {"a":1}"#,
        ]
    );
}

#[test]
fn a_list_that_is_broken_ends_with_a_bad_row_that_says_so() {
    assert_eq!(
        read(b"[{\"a\":1}, {\"a\":2} {\"a\":3}, {\"a\":4}]").unwrap(),
        [
            r#"1 {"a":1}"#,
            "2 InvalidJSON Item 2: expected `,` or `]` after it, found `{`; nothing after it could be read"
        ]
    );
    assert_eq!(
        read(b"").unwrap(),
        ["1 InvalidJSON Item 1: the input is empty; expected `[` and a list of objects"]
    );
}

#[test]
fn objects_on_lines_are_read_as_lines_under_this_ending_too() {
    assert_eq!(
        read(b"\n{\"a\":1}\n\nbroken\n{\"a\":2}\n").unwrap(),
        [r#"2 {"a":1}"#, "4 InvalidJSON Line 4: expected value at column 1", r#"5 {"a":2}"#]
    );
    assert_eq!(read(b"{\"data\":[{\"a\":1}]}").unwrap(), [r#"1 {"data":[{"a":1}]}"#]);
}

#[test]
fn one_object_over_many_lines_or_anything_else_is_refused_with_what_to_do() {
    for (text, cause) in [
        (&b"{\n  \"data\": [\n]}"[..], Some("Line 1: EOF while parsing an object at column 1")),
        (b"\"text\"", None),
        (b"42", None),
        (b"a,b\n1,2\n", None),
    ] {
        let problem = read(text).unwrap_err();
        assert_eq!(problem.code, ProblemCode::InputFormat);
        let beginning = "input is neither a JSON list of objects nor one object per line: `";
        assert!(problem.message.starts_with(beginning), "{}", problem.message);
        assert_eq!(problem.cause.as_deref(), cause);
        assert!(problem.hint.unwrap().contains("one per line"));
    }
}

#[test]
fn an_item_longer_than_the_bound_is_one_bad_row() {
    let mut bytes = b"[{\"a\":\"".to_vec();
    bytes.resize(64 * 1024 * 1024 + 10, b'x');
    bytes.extend_from_slice(b"\"},{\"a\":1}]");
    assert_eq!(read(&bytes).unwrap(), ["1 InvalidRow Item 1: longer than 64 MiB", r#"2 {"a":1}"#]);
}
