use proptest::prelude::*;

use super::*;

type Found = Result<Vec<Vec<u8>>, &'static str>;

fn records(bytes: &[u8], block: usize, most: usize) -> CsvRecordReader {
    let blocks =
        BlockReader::with_block(Box::new(std::io::Cursor::new(bytes.to_vec())), "rows".into(), None, block);
    CsvRecordReader::new(blocks, RecordBounds { bytes: 10_000, fields: most })
}

fn all(mut records: CsvRecordReader) -> Vec<Found> {
    let mut found = Vec::new();
    let mut line = 0;
    loop {
        let record = match records.next(ReadWait::UntilFound).unwrap() {
            CsvRecord::Fields(fields) => {
                Ok(fields.ranges().map(|range| fields.bytes[range].to_vec()).collect())
            }
            CsvRecord::TooManyFields => Err("too many"),
            CsvRecord::Unclosed => Err("unclosed"),
            CsvRecord::End => return found,
            other => panic!("unexpected: {other:?}"),
        };
        found.push(record);
        assert!(records.line() > line, "lines only go forward");
        line = records.line();
    }
}

fn reference(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let fields = |record: csv::ByteRecord| record.iter().map(<[u8]>::to_vec).collect();
    reader.byte_records().map(|record| fields(record.unwrap())).collect()
}

#[test]
fn an_input_that_ends_inside_quotes_is_reported() {
    for bytes in [&b"a,\"b\nc\n"[..], b"\"", b"a\n\"\"\"", b"\"a\"\"\n"] {
        assert_eq!(all(records(bytes, 8, 9)).last(), Some(&Err("unclosed")), "{bytes:?}");
    }
    for bytes in [&b"a,\"b\""[..], b"\"\"", b"a\"", b"\"a\"b\n", b"\"a\"\"\""] {
        assert!(all(records(bytes, 8, 9)).iter().all(Result::is_ok), "{bytes:?}");
    }
}

#[test]
fn the_line_on_which_a_record_begins_is_known() {
    let mut records = records(b"a\r\n\r\n\"b\nb\"\nc\n\n\nd", 8, 9);
    for line in [1, 3, 5, 8] {
        assert!(matches!(records.next(ReadWait::UntilFound).unwrap(), CsvRecord::Fields(_)));
        assert_eq!(records.line(), line);
    }
}

/// Every result of reading the records after a header, with the lines on which they start.
fn bounded(bytes: &[u8], block: usize, most: usize) -> Vec<(u64, String)> {
    let blocks =
        BlockReader::with_block(Box::new(std::io::Cursor::new(bytes.to_vec())), "rows".into(), None, block);
    let mut records = CsvRecordReader::new(blocks, RecordBounds { bytes: most, fields: 9 });
    records.set_columns(2);
    let mut found = Vec::new();
    loop {
        let record = match records.next(ReadWait::UntilFound).unwrap() {
            CsvRecord::End => return found,
            CsvRecord::Fields(fields) => {
                let text = |range| String::from_utf8_lossy(&fields.bytes[range]).into_owned();
                fields.ranges().map(text).collect::<Vec<_>>().join("|")
            }
            other => format!("{other:?}"),
        };
        assert!(records.output.len() <= SMALL_OUTPUT, "what is passed over is not kept");
        found.push((records.line(), record));
        assert!(found.len() <= bytes.len() + 1, "reading comes to an end");
    }
}

#[test]
fn a_record_over_the_bound_ends_where_its_quotes_say() {
    let found = bounded(b"1,2\n3,\"four\nand, more\nof it\n\",\n5,6\n", 8, 12);
    assert_eq!(found, [(1, "1|2".into()), (2, "TooLong(Ended)".into()), (6, "5|6".into())]);
    let found = bounded(b"1,aaaaaaaaaaaaaaaaaaaaaaaa\r\n5,6\r\n", 8, 12);
    assert_eq!(found, [(1, "TooLong(Ended)".into()), (2, "5|6".into())]);
}

#[test]
fn after_a_quote_that_is_never_closed_reading_goes_on_with_lines_that_look_like_records() {
    let lines: String = (0..20).map(|at| format!("{at},x\n")).collect();
    let found = bounded(format!("\"stray,x\nno record\n{lines}").as_bytes(), 8, 12);
    assert_eq!(found[0], (1, "TooLong(StrayQuote { next_line: 3 })".into()));
    assert_eq!(found[1..], (0..20).map(|at| (at + 3, format!("{at}|x"))).collect::<Vec<_>>());
    let found = bounded(b"1,2\n3,\"stray\nand text\nwithout an end\n", 8, 12);
    assert_eq!(found, [(1, "1|2".into()), (2, "TooLong(Unclosed)".into())]);
}

proptest! {
    #[test]
    fn what_is_read_does_not_depend_on_how_bytes_come_in(
        bytes in prop::collection::vec(prop::sample::select(b"\n\n\n\"\",,,,abc \xc3\xa9".to_vec()), 0..300),
        most in 3usize..40,
        block in 8usize..40,
    ) {
        prop_assert_eq!(bounded(&bytes, block, most), bounded(&bytes, 4096, most));
    }

    #[test]
    fn records_within_the_bound_are_untouched_before_the_first_that_is_too_long(
        bytes in prop::collection::vec(prop::sample::select(b"\n\n\"\",,ab".to_vec()), 0..200),
        most in 3usize..40,
        block in 8usize..40,
    ) {
        let found = bounded(&bytes, block, most);
        let whole = bounded(&bytes, block, 10_000);
        let same = found.iter().zip(&whole).take_while(|(one, other)| one == other).count();
        let first_long = found.iter().position(|(_, record)| record.starts_with("TooLong"));
        prop_assert_eq!(same, first_long.unwrap_or(whole.len()));
    }

    #[test]
    fn records_are_those_of_the_csv_crate(
        bytes in prop::collection::vec(prop::sample::select(b"\n\r\"\",,,ab \xc3\xa9".to_vec()), 0..120),
        block in 8usize..40,
        most in 1usize..6,
    ) {
        // The line number of a record depends only on line feeds.
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| if byte == b'\r' { b'\n' } else { byte }).collect();
        let mut found = all(records(&bytes, block, most));
        let mut expected = reference(&bytes);
        if found.last() == Some(&Err("unclosed")) {
            found.pop();
            expected.pop();
        }
        let bounded = |fields: Vec<Vec<u8>>| if fields.len() > most { Err("too many") } else { Ok(fields) };
        prop_assert_eq!(found, expected.into_iter().map(bounded).collect::<Vec<_>>());
    }

    #[test]
    fn records_written_by_the_csv_crate_are_read_back(
        rows in prop::collection::vec(prop::collection::vec("[ab,\"\r\n é]{0,9}", 2..5), 1..9),
        block in 8usize..40,
    ) {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        for row in &rows {
            writer.write_record(row).unwrap();
        }
        let bytes = writer.into_inner().unwrap();
        let expected: Vec<Found> =
            rows.iter().map(|row| Ok(row.iter().map(|field| field.clone().into_bytes()).collect())).collect();
        prop_assert_eq!(all(records(&bytes, block, 9)), expected);
    }
}
