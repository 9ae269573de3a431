//! Skipping rows has the same result as reading them, in every format.

use std::sync::Arc;

use proptest::prelude::*;
use rowmill_core::ports::{Dataset, ReadLimit, RowSource};
use rowmill_data::{FileList, InputFile, InputFormat, InputLocation, InputSpec, open_dataset};
use rowmill_types::RowReadResult;

fn rest(source: &mut dyn RowSource) -> Vec<RowReadResult> {
    let mut rows = Vec::new();
    while source.read(&mut rows, ReadLimit { rows: 3, bytes: 1 << 20 }).unwrap() {}
    rows
}

fn same_as_reading(data: &Arc<dyn Dataset>, first: u64, second: u64) {
    let all = rest(&mut *data.open().unwrap());
    let mut source = data.open().unwrap();
    let (mut passed, mut kept) = (0, Vec::new());
    passed += source.skip(first).unwrap();
    assert_eq!(passed, first.min(all.len() as u64));
    // A row that is read in between is not skipped.
    source.read(&mut kept, ReadLimit { rows: 1, bytes: 1 << 20 }).unwrap();
    assert_eq!(kept.as_slice(), all.iter().skip(passed as usize).take(1).cloned().collect::<Vec<_>>());
    passed += kept.len() as u64;
    let expected = second.min(all.len() as u64 - passed);
    assert_eq!(source.skip(second).unwrap(), expected);
    passed += expected;
    assert_eq!(rest(&mut *source), all.iter().skip(passed as usize).cloned().collect::<Vec<_>>());
    assert_eq!(source.skip(5).unwrap(), 0);
}

/// A dataset of these files.
fn files(folder: &std::path::Path, format: InputFormat, texts: &[Vec<u8>]) -> Arc<dyn Dataset> {
    let file = |(at, text): (usize, &Vec<u8>)| {
        let path = folder.join(format!("{at}"));
        std::fs::write(&path, text).unwrap();
        InputFile::new(path, format!("{at}"))
    };
    let files = texts.iter().enumerate().map(file).collect();
    let list = FileList { name: "all".into(), files, identity: None };
    open_dataset(&InputSpec::new(InputLocation::Files(list), Some(format))).unwrap()
}

fn lines() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        &b"{\"a\":1}\n"[..],
        b"\n",
        b"  \r\n",
        b"nope\n",
        b"\xc2\xa0\n",
        b"\x0b\n",
        b"\xff\n",
        b" {}\n",
        b"{\"a\"",
    ]);
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.concat())
}

fn records() -> impl Strategy<Value = Vec<u8>> {
    let record = prop::sample::select(vec![
        &b"1,2\n"[..],
        b"\n",
        b"1\n",
        b"1,2,3\n",
        b"\"x\ny\",2\n",
        b"\xff,1\n",
        b"\"x",
    ]);
    (prop::sample::select(vec![&b"a,b\n"[..], b"", b"a,a\n"]), prop::collection::vec(record, 0..10))
        .prop_map(|(header, records)| [header.to_vec(), records.concat()].concat())
}

fn items() -> impl Strategy<Value = Vec<u8>> {
    let item = prop::sample::select(vec![
        &b"{\"a\":1}"[..],
        b" {\"a\":[1,{}]} ",
        b"7",
        b"\"],\"",
        b"nope",
        b"{\"a\":1} {}",
        b"{",
    ]);
    (prop::collection::vec(item, 0..8), prop::sample::select(vec![&b"]"[..], b",]", b"", b"] x"]))
        .prop_map(|(items, end)| [b"[", items.join(&b","[..]).as_slice(), end].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_that_are_passed_over_are_those_that_would_have_been_read(
        lines in prop::collection::vec(lines(), 1..4),
        records in prop::collection::vec(records(), 1..4),
        items in prop::collection::vec(items(), 1..4),
        first in 0u64..9,
        second in 0u64..9,
    ) {
        let folder = tempfile::tempdir().unwrap();
        for (format, texts) in [(InputFormat::Jsonl, &lines), (InputFormat::Csv, &records), (InputFormat::Json, &items)] {
            same_as_reading(&files(folder.path(), format, texts), first, second);
        }
        // JSON lines with the extension of JSON; anything else that is not a list is rejected.
        let objects: Vec<Vec<u8>> = lines.iter().map(|text| [b"\n{\"a\":1}\n", text.as_slice()].concat()).collect();
        same_as_reading(&files(folder.path(), InputFormat::Json, &objects), first, second);
    }
}
