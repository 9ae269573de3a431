//! Rows are read from real files in each format, and invalid ones are reported.

use proptest::prelude::*;
use rowmill_core::ports::{InputReadProgress, ReadLimit};
use rowmill_data::{InputFormat, InputLocation, InputSpec, open_dataset};
use rowmill_types::{RowErrorKind, RowReadResult};

const ROOM: ReadLimit = ReadLimit { rows: 7, bytes: 1 << 20 };

fn read(format: InputFormat, bytes: &[u8]) -> Vec<RowReadResult> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows");
    std::fs::write(&path, bytes).unwrap();
    let spec = InputSpec::new(InputLocation::File(path), Some(format));
    let mut source = open_dataset(&spec).unwrap().open().unwrap();
    let mut rows = Vec::new();
    loop {
        let before = rows.len();
        let goes_on = source.read(&mut rows, ROOM).unwrap();
        assert!(rows.len() - before <= ROOM.rows);
        if !goes_on {
            break;
        }
    }
    assert!(!source.read(&mut rows, ROOM).unwrap());
    let total = Some(bytes.len() as u64);
    assert!(source.position().read <= bytes.len() as u64 && source.position().total == total);
    rows
}

/// The number and the text of each row, or the number, type and message of a bad one.
fn shown(rows: &[RowReadResult]) -> Vec<String> {
    let show = |row: &RowReadResult| match row {
        Ok(row) => format!("{} {}", row.number(), row.json_text()),
        Err(bad) => format!("{} {} {}", bad.number, bad.kind, bad.message),
    };
    rows.iter().map(show).collect()
}

fn jsonl(bytes: &[u8]) -> Vec<String> {
    shown(&read(InputFormat::Jsonl, bytes))
}

fn csv(bytes: &[u8]) -> Vec<String> {
    shown(&read(InputFormat::Csv, bytes))
}

#[test]
fn lines_are_numbered_as_they_stand_and_blank_ones_are_passed_over() {
    assert_eq!(
        jsonl(b"{\"a\":1}\n\n \t\r\n{\"a\":2}\r\n\xc2\xa0\n  {\"a\": 3} "),
        [r#"1 {"a":1}"#, r#"4 {"a":2}"#, r#"6 {"a": 3}"#]
    );
    assert!(jsonl(b"").is_empty());
    assert!(jsonl(b"\n\n").is_empty());
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_row() {
    assert_eq!(jsonl(b"\xef\xbb\xbf{\"a\":1}\n"), [r#"1 {"a":1}"#]);
    assert_eq!(csv(b"\xef\xbb\xbfa\n1\n"), [r#"2 {"a":"1"}"#]);
}

#[test]
fn a_broken_line_is_one_bad_row_and_the_next_is_read() {
    let found =
        jsonl(b"{\"a\":1}\nnope\n[1]\n{\"a\":\"\xff\"}\n{\"a\":\"\\ud800\"}\n{\"a\":NaN}\n{\"a\":2}\n");
    let beginnings = [
        r#"1 {"a":1}"#,
        "2 InvalidJSON Line 2: expected",
        "3 InvalidRow Line 3: expected a JSON object, got an array",
        "4 InvalidJSON Line 4: not valid UTF-8 at byte 7",
        "5 InvalidJSON Line 5: half of a surrogate pair",
        "6 InvalidJSON Line 6: expected value",
        r#"7 {"a":2}"#,
    ];
    assert_eq!(found.len(), beginnings.len());
    for (row, beginning) in found.iter().zip(beginnings) {
        assert!(row.starts_with(beginning), "{row}");
    }
}

#[test]
fn a_line_longer_than_the_bound_is_one_bad_row() {
    let mut bytes = b"{\"a\":\"".to_vec();
    bytes.resize(64 * 1024 * 1024 + 10, b'x');
    bytes.extend_from_slice(b"\"}\n{\"a\":1}\n");
    assert_eq!(jsonl(&bytes), ["1 InvalidRow Line 1: longer than 64 MiB", r#"2 {"a":1}"#]);
}

#[test]
fn records_are_numbered_from_two_whatever_lines_they_take() {
    let text =
        b"id,\"note, with \"\"quotes\"\"\"\r\n1,\"two\nlines\"\r\n\r\n2,\"a \"\"b\"\"\"\n3,\t\\\xc3\xa9";
    assert_eq!(
        csv(text),
        [
            r#"2 {"id":"1","note, with \"quotes\"":"two\nlines"}"#,
            r#"3 {"id":"2","note, with \"quotes\"":"a \"b\""}"#,
            r#"4 {"id":"3","note, with \"quotes\"":"\t\\é"}"#,
        ]
    );
}

#[test]
fn fields_of_a_record_are_found_by_name() {
    let rows = read(InputFormat::Csv, "id,\"a\"\"b\",é\n1,2,3\n4\n".as_bytes());
    let row = rows[0].as_ref().unwrap();
    assert_eq!(
        [row.field("id"), row.field("a\"b"), row.field("é")],
        [Some("\"1\""), Some("\"2\""), Some("\"3\"")]
    );
    let short = rows[1].as_ref().unwrap();
    assert_eq!(short.fields().collect::<Vec<_>>(), [("id", "\"4\""), ("a\"b", "null"), ("é", "null")]);
}

#[test]
fn short_records_have_nulls_and_long_ones_are_bad_rows() {
    assert_eq!(
        csv(b"a,b\n1\n1,2,3\n,\n\"\"\n"),
        [
            r#"2 {"a":"1","b":null}"#,
            "3 InvalidRow Row 3: too many CSV columns (the record starts on line 3 of the input)",
            r#"4 {"a":"","b":""}"#,
            r#"5 {"a":"","b":null}"#,
        ]
    );
}

#[test]
fn a_header_that_cannot_be_used_is_one_bad_row_and_the_end() {
    for (text, message) in [
        (&b""[..], "CSV input is missing a header row"),
        (b"\n\r\n", "CSV input is missing a header row"),
        (b"a,,b, \n1,2,3,4\n", "CSV header contains blank column names: 2, 4"),
        (b"b,a,c,b,a,b\n1\n", "CSV header contains duplicate column names: a, b"),
        (b"a,\xff\n1\n", "CSV header is not valid UTF-8: column 2"),
        (b"a,\"b\n1\n2\n", "CSV header has a quote that is never closed"),
    ] {
        assert_eq!(csv(text), [format!("1 InvalidRow {message}")]);
    }
    assert!(csv(b"a,b\n").is_empty());
}

#[test]
fn invalid_utf8_in_a_record_names_the_row_and_the_column() {
    assert_eq!(
        csv(b"a,b\n1,\xff\n\xc3,\xa9\n2,3\n"),
        [
            "2 InvalidRow Row 2: column `b` is not valid UTF-8",
            "3 InvalidRow Row 3: column `a` is not valid UTF-8",
            r#"4 {"a":"2","b":"3"}"#,
        ]
    );
}

#[test]
fn a_quote_that_is_never_closed_is_reported_with_its_place() {
    assert_eq!(
        csv(b"a\n\"x\ny\"\n\"stray\n1\n2\n"),
        [
            "2 {\"a\":\"x\\ny\"}",
            "3 InvalidRow Row 3: a quote is never closed, so the rest of the input was read as one value \
             (the record starts on line 4 of the input)",
        ]
    );
}

#[test]
fn tabs_separate_values_of_a_tsv() {
    assert_eq!(
        shown(&read(InputFormat::Tsv, b"a\tb\n1,5\t\"x\ty\"\n1\t2\t3\n")),
        [
            r#"2 {"a":"1,5","b":"x\ty"}"#,
            "3 InvalidRow Row 3: too many TSV columns (the record starts on line 3 of the input)",
        ]
    );
}

#[test]
fn room_bounds_a_read_by_rows_and_by_bytes_but_gives_at_least_one() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("rows.jsonl", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n"), ("rows.csv", "a\n1\n2\n3\n")] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let data = open_dataset(&InputSpec::new(InputLocation::File(path), None)).unwrap();
        for (room, count) in [
            (ReadLimit { rows: 2, bytes: 1000 }, 2),
            (ReadLimit { rows: 9, bytes: 1 }, 1),
            (ReadLimit { rows: 9, bytes: 8 }, if name == "rows.csv" { 1 } else { 2 }),
        ] {
            let mut rows = Vec::new();
            assert!(data.open().unwrap().read(&mut rows, room).unwrap());
            assert_eq!(rows.len(), count, "{name} {room:?}");
        }
    }
}

#[test]
fn the_position_reaches_the_end_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, "{\"a\":1}\n{\"a\":2}\n").unwrap();
    let data = open_dataset(&InputSpec::new(InputLocation::File(path), None)).unwrap();
    let mut source = data.open().unwrap();
    assert_eq!(source.position(), InputReadProgress { read: 0, total: Some(16) });
    let mut rows = Vec::new();
    source.read(&mut rows, ReadLimit { rows: 1, bytes: 1000 }).unwrap();
    assert_eq!(source.position().read, 8);
    while source.read(&mut rows, ROOM).unwrap() {}
    assert_eq!((rows.len(), source.position().read), (2, 16));
}

proptest! {
    #[test]
    fn no_bytes_panic_and_numbers_go_forward(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"\n\r\",:{}a1\t".to_vec())], 0..300),
    ) {
        // The signature of a foreign file type would end the read at once.
        // JSON that does not begin with a list is rejected.
        for (first, format) in [("a", InputFormat::Jsonl), ("a", InputFormat::Csv), ("a", InputFormat::Tsv), ("[", InputFormat::Json)] {
            let rows = read(format, &[first.as_bytes(), &bytes].concat());
            let numbers: Vec<u64> =
                rows.iter().map(|row| row.as_ref().map_or_else(|bad| bad.number, |row| row.number())).collect();
            prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", numbers);
            for row in &rows {
                match row {
                    Ok(row) => prop_assert!(rowmill_types::Row::parse(row.number(), row.json_text().into()).as_ref() == Ok(row)),
                    Err(bad) => prop_assert!(matches!(bad.kind, RowErrorKind::InvalidJson | RowErrorKind::InvalidRow)),
                }
            }
        }
    }
}
