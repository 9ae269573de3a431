//! CSV that is truncated, quoted in any way, or separated by other characters.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use rowmill_core::ports::ReadLimit;
use rowmill_data::{
    FieldDelimiter, InputFormat, InputLocation, InputSpec, open_dataset, overriding_delimiter_of,
};
use rowmill_types::{ProblemCode, RowReadResult};
use tempfile::TempDir;

const ROOM: ReadLimit = ReadLimit { rows: 3, bytes: 100 };

fn read(path: &Path) -> Vec<RowReadResult> {
    let mut source =
        open_dataset(&InputSpec::new(InputLocation::File(path.into()), None)).unwrap().open().unwrap();
    let mut rows = Vec::new();
    while source.read(&mut rows, ROOM).unwrap() {}
    rows
}

fn number(row: &RowReadResult) -> u64 {
    row.as_ref().map_or_else(|bad| bad.number, |row| row.number())
}

#[test]
fn a_file_cut_at_every_byte_loses_no_row_before_the_cut() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.csv");
    let whole =
        "id,text,note\r\n1,\"a \"\"b\"\"\nc\",x\n2,plain,\"é\"\n\n3,\"\",\n4,\"long, very\r\nlong\",z\n5,a,b";
    fs::write(&path, whole).unwrap();
    let expected = read(&path);
    assert_eq!(expected.len(), 5);
    for cut in 0..whole.len() {
        fs::write(&path, &whole.as_bytes()[..cut]).unwrap();
        let found = read(&path);
        assert!(found.len() <= expected.len().max(1), "{cut}");
        let sure = found.len().saturating_sub(1);
        assert_eq!(found[..sure], expected[..sure], "{cut}");
        let numbers: Vec<u64> = found.iter().map(number).collect();
        assert!(numbers.is_sorted_by(|one, other| one < other), "{cut}: {numbers:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_quotes_are_read_to_the_end_and_as_often_the_same(
        bytes in prop::collection::vec(prop::sample::select(b"\n\r\"\"\",,;ab \xc3\xa9".to_vec()), 0..200),
    ) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("rows.csv");
        fs::write(&path, [b"a,b,c\n", bytes.as_slice()].concat()).unwrap();
        let rows = read(&path);
        prop_assert_eq!(&rows, &read(&path));
        let numbers: Vec<u64> = rows.iter().map(number).collect();
        prop_assert!(numbers.is_sorted_by(|one, other| one < other));
        for row in rows.iter().flatten() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(row.json_text()).is_ok(), "{}", row.json_text());
            prop_assert_eq!(row.fields().count(), 3);
        }
    }
}

fn csv(text: &str, delimiter: Option<&str>) -> (TempDir, InputSpec) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.csv");
    fs::write(&path, text).unwrap();
    let delimiter = delimiter.map(|text| FieldDelimiter::parse(text).unwrap());
    (folder, InputSpec { delimiter, ..InputSpec::new(InputLocation::File(path), None) })
}

fn first(spec: &InputSpec) -> (String, Option<String>) {
    let data = open_dataset(spec).unwrap();
    let mut rows = Vec::new();
    data.open().unwrap().read(&mut rows, ROOM).unwrap();
    (rows[0].as_ref().unwrap().json_text().to_owned(), data.read_notice().map(|notice| notice.to_string()))
}

#[test]
fn other_delimiters_are_recognised_and_reported_once() {
    for (text, message) in
        [("a;b\n1;2,5\n", "semicolons"), ("a\tb\n1\t2,5\n", "tabs"), ("a|b\n1|2,5\n", "`|`")]
    {
        let (folder, spec) = csv(text, None);
        let (row, notice) = first(&spec);
        assert_eq!(row, r#"{"a":"1","b":"2,5"}"#, "{text}");
        let path = folder.path().join("rows.csv");
        assert_eq!(
            notice.unwrap(),
            format!(
                "`{}` is read with {message} as its delimiter; if that is wrong, name it, such as `delimiter: ,`",
                path.display()
            )
        );
        let data = open_dataset(&spec).unwrap();
        assert!(data.read_notice().is_some() && data.read_notice().is_none(), "told once");
    }
    let (_folder, spec) = csv("a,b;c\n1,2;3\n", None);
    assert_eq!(first(&spec), (r#"{"a":"1","b;c":"2;3"}"#.to_owned(), None));
}

#[test]
fn a_named_delimiter_counts_and_is_refused_for_other_formats() {
    let (folder, spec) = csv("a;b,c\n1;2,3\n", Some(";"));
    assert_eq!(first(&spec), (r#"{"a":"1","b,c":"2,3"}"#.to_owned(), None));
    assert_eq!(overriding_delimiter_of(&spec).unwrap().unwrap().to_string(), ";");
    let (_folder, same) = csv("a;b\n1;2\n", Some(";"));
    assert_eq!(overriding_delimiter_of(&same).unwrap(), None, "it changes no row");
    let (_folder, tabs) = csv("a\tb\n1\t2\n", Some(","));
    assert_eq!(first(&tabs).0, "{\"a\\tb\":\"1\\t2\"}");
    let path = folder.path().join("rows.jsonl");
    fs::write(&path, "{}\n").unwrap();
    let spec =
        InputSpec { delimiter: spec.delimiter, ..InputSpec::new(InputLocation::File(path.clone()), None) };
    let problem = open_dataset(&spec).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Usage);
    let name = path.display();
    assert_eq!(
        problem.message,
        format!("`delimiter` is only for CSV and TSV, but `{name}` is read as jsonl")
    );
    let spec = InputSpec { format: Some(InputFormat::Tsv), ..spec };
    assert!(open_dataset(&spec).is_ok());
}

#[test]
fn a_record_over_the_bound_is_one_failed_row_and_the_others_are_read() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.csv");
    let long = "x,".repeat(33 << 20);
    fs::write(&path, format!("a,b\n1,2\n3,\"{long}\n\"\n4,5\n")).unwrap();
    let rows = read(&path);
    let texts: Vec<&str> =
        rows.iter().map(|row| row.as_ref().map_or_else(|bad| &*bad.message, |row| row.json_text())).collect();
    let failed = "Row 3: longer than 64 MiB (the record starts on line 3 of the input)";
    assert_eq!(texts, [r#"{"a":"1","b":"2"}"#, failed, r#"{"a":"4","b":"5"}"#]);
}
