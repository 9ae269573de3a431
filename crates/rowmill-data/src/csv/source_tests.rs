use super::*;

const ROOM: ReadLimit = ReadLimit { rows: usize::MAX, bytes: usize::MAX };

fn source(bytes: &'static [u8], max: usize) -> CsvRowSource {
    let blocks = BlockReader::with_block(Box::new(bytes), "rows".into(), None, 8);
    let mut source =
        CsvRowSource::new(blocks, InputFormat::Csv, DelimiterChoice::default(), RecordPlacement::default());
    source.records.set_bounds(RecordBounds { bytes: max, fields: 8 });
    source
}

fn read(bytes: &'static [u8], max: usize) -> Vec<RowReadResult> {
    let mut source = source(bytes, max);
    let mut rows = Vec::new();
    while source.read(&mut rows, ROOM).unwrap() {}
    assert!(!source.read(&mut rows, ROOM).unwrap(), "the end stays the end");
    rows
}

fn messages(rows: &[RowReadResult]) -> Vec<&str> {
    rows.iter().map(|row| row.as_ref().map_or_else(|bad| bad.message.as_str(), Row::json_text)).collect()
}

#[test]
fn a_record_over_the_bound_is_one_bad_row_and_reading_goes_on() {
    let rows = read(b"a,b\n1,2\n\n3,\"and a long text\nof lines\"\n4,5\n", 20);
    assert_eq!(
        messages(&rows),
        [
            r#"{"a":"1","b":"2"}"#,
            "Row 3: longer than 64 MiB (the record starts on line 4 of the input)",
            r#"{"a":"4","b":"5"}"#,
        ]
    );
}

#[test]
fn a_stray_quote_costs_the_lines_up_to_the_bound_and_says_where_reading_goes_on() {
    let rows = read(b"a,b\n1,2\n3,\"stray\n4,5\n6,7\n8,9\n10,11\n12,13\n", 20);
    assert_eq!(
        messages(&rows),
        [
            r#"{"a":"1","b":"2"}"#,
            "Row 3: longer than 64 MiB, because a quote is not closed; reading continues at line 8 of the \
             input, which again has as many columns as the header (the record starts on line 3 of the \
             input)",
            r#"{"a":"12","b":"13"}"#,
        ]
    );
}

#[test]
fn a_quote_that_is_never_closed_in_one_column_takes_the_rest_and_says_so() {
    let rows = read(b"a\n1\n\n\"stray\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", 20);
    assert_eq!(
        messages(&rows),
        [
            r#"{"a":"1"}"#,
            "Row 3: longer than 64 MiB, and a quote is never closed, so the rest of the input was read as \
             one value (the record starts on line 4 of the input)",
        ]
    );
}

#[test]
fn rows_that_are_skipped_are_counted_as_rows_that_are_read() {
    let bytes = b"a,b\n1,2\n3,\"and a long text\nof lines\"\n4,5\n6,7,8\n9,\"never closed";
    let rows = read(bytes, 20);
    for skipped in 0..=rows.len() {
        let mut source = source(bytes, 20);
        assert_eq!(source.skip(skipped as u64).unwrap(), skipped as u64);
        let mut rest = Vec::new();
        while source.read(&mut rest, ROOM).unwrap() {}
        assert_eq!(messages(&rest), messages(&rows)[skipped..], "{skipped}");
    }
}

#[test]
fn a_header_over_its_bounds_is_one_bad_row() {
    assert_eq!(messages(&read(b"a,b,c,d,e,f,g,h,i\n1\n", 90)), ["CSV header has more than 1048576 columns"]);
    assert_eq!(messages(&read(&[b'x'; 100], 20)), ["CSV header is longer than 64 MiB"]);
}

#[test]
fn a_record_of_very_many_fields_is_passed_over() {
    let rows = read(b"a,b\n1,2\n1,2,3,4,5,6,7,8,9\n3,4\n", 90);
    let expected = [
        r#"{"a":"1","b":"2"}"#,
        "Row 3: too many CSV columns (the record starts on line 3 of the input)",
        r#"{"a":"3","b":"4"}"#,
    ];
    assert_eq!(messages(&rows), expected);
}

#[test]
fn rows_that_have_come_are_handed_on_before_more_is_read() {
    let blocks = BlockReader::with_block(Box::new(&b"a\n1\n2\n3\n4\n5\n"[..]), "rows".into(), None, 8);
    let mut source =
        CsvRowSource::new(blocks, InputFormat::Csv, DelimiterChoice::default(), RecordPlacement::default());
    let mut rows = Vec::new();
    assert!(source.read(&mut rows, ROOM).unwrap());
    assert_eq!(messages(&rows), [r#"{"a":"1"}"#, r#"{"a":"2"}"#, r#"{"a":"3"}"#]);
}
