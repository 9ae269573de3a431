//! Folders that are tables in parts, and the fields in their folder names.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Int64Array, StringArray};
use rowmill_core::ports::{
    ColumnCondition, ColumnKind, ComparisonOperator, ComparisonValue, Dataset, DatasetColumn, ReadLimit,
    RequestedDatasetPart,
};
use rowmill_data::{
    InputFormat, InputLocation, InputSpec, SqlSettings, local_input_files, open_dataset, sql_dataset,
};
use rowmill_types::ProblemCode;
use tempfile::TempDir;

use crate::parquet_in::support::{Folder, array};

const ROOM: ReadLimit = ReadLimit { rows: usize::MAX, bytes: usize::MAX };

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn open(folder: &Path) -> Arc<dyn Dataset> {
    open_dataset(&InputSpec::new(InputLocation::File(folder.into()), None)).unwrap()
}

fn rows(data: &dyn Dataset, part: &RequestedDatasetPart) -> Vec<String> {
    let mut source = data.open_part(part).unwrap();
    let mut rows = Vec::new();
    while source.read(&mut rows, ROOM).unwrap() {}
    rows.into_iter().map(|row| row.unwrap().json_text().to_owned()).collect()
}

fn all(folder: &Path) -> Vec<String> {
    rows(&*open(folder), &RequestedDatasetPart::default())
}

#[test]
fn a_folder_that_is_called_as_a_table_is_one_table() {
    let home = TempDir::new().unwrap();
    let jsonl = home.path().join("rows.jsonl");
    write(
        &jsonl,
        &[
            ("part-1.jsonl", "{\"a\":1}\n"),
            ("part-0.jsonl", "{\"a\":0}\n"),
            ("_SUCCESS", ""),
            ("_metadata", "x"),
            (".part-0.jsonl.crc", "x"),
            ("_temporary/part-9.jsonl", "{\"a\":9}\n"),
        ],
    );
    assert_eq!(all(&jsonl), [r#"{"a":0}"#, r#"{"a":1}"#]);
    let csv = home.path().join("rows.csv");
    write(&csv, &[("b.csv", "a\n2\n"), ("a.csv", "a\n1\n"), ("README.md", "no row")]);
    assert_eq!(all(&csv), [r#"{"a":"1"}"#, r#"{"a":"2"}"#]);
    let lines = home.path().join("other.jsonl");
    write(&lines, &[("part-00000.json", "{\"a\":1}\n{\"a\":2}\n")]);
    assert_eq!(all(&lines), [r#"{"a":1}"#, r#"{"a":2}"#]);
    let unnamed = home.path().join("unnamed.csv");
    write(&unnamed, &[("part-00000", "a\n1\n"), ("LICENSE", "no row")]);
    assert_eq!(all(&unnamed), [r#"{"a":"1"}"#]);
}

#[test]
fn a_folder_without_parts_is_refused_and_one_of_other_files_has_documents() {
    let home = TempDir::new().unwrap();
    let empty = home.path().join("rows.parquet");
    write(&empty, &[("_SUCCESS", ""), (".hidden.parquet", "x")]);
    let problem = open_dataset(&InputSpec::new(InputLocation::File(empty.clone()), None)).unwrap_err();
    assert_eq!(problem.code, ProblemCode::InputNotFound);
    assert_eq!(problem.message, format!("no parquet file in folder `{}`", empty.display()));
    let documents = home.path().join("papers");
    write(&documents, &[("year=2026/a.txt", "x"), ("year=2026/rows.csv", "a\n")]);
    let spec = InputSpec::new(InputLocation::File(documents), None);
    assert_eq!(local_input_files(&spec).unwrap().unwrap().1, InputFormat::Documents);
    let named = InputSpec {
        format: Some(InputFormat::Documents),
        ..InputSpec::new(InputLocation::File(empty), None)
    };
    assert_eq!(local_input_files(&named).unwrap().unwrap().1, InputFormat::Documents);
}

#[test]
fn folders_that_name_fields_give_them_to_all_rows() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("sales");
    write(
        &folder,
        &[
            ("year=2026/month=02/b.jsonl", "{\"n\":3}\n"),
            ("year=2026/month=01/a.jsonl", "{\"n\": 1}\n{}\n{\"n\":2,\"month\":\"x\",\"z\":0}\n"),
            ("year=2025/month=12/c.jsonl", "{\"n\":0}\n"),
            ("_SUCCESS", ""),
            (".crc/month=1/x.jsonl", "{}\n"),
        ],
    );
    assert_eq!(
        all(&folder),
        [
            r#"{"n":0,"year":2025,"month":12}"#,
            r#"{"n":1,"year":2026,"month":1}"#,
            r#"{"year":2026,"month":1}"#,
            r#"{"n":2,"month":1,"z":0,"year":2026}"#,
            r#"{"n":3,"year":2026,"month":2}"#,
        ]
    );
    let csv = home.path().join("by-city");
    write(&csv, &[("city=S%C3%A3o%20Paulo/a.csv", "n\n1\n"), ("city=Rome/a.csv", "n,city\n2,Milan\n")]);
    assert_eq!(all(&csv), [r#"{"n":"2","city":"Rome"}"#, r#"{"n":"1","city":"São Paulo"}"#]);
}

#[test]
fn the_same_file_in_another_folder_is_another_input() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("rows");
    write(&folder, &[("k=1/a.jsonl", "{}\n")]);
    let before = open(&folder).identity().unwrap();
    fs::rename(folder.join("k=1"), folder.join("k=2")).unwrap();
    assert_ne!(open(&folder).identity().unwrap(), before);
}

fn condition(column: &str, comparison: ComparisonOperator, value: ComparisonValue) -> ColumnCondition {
    ColumnCondition { column: column.into(), comparison, value }
}

#[test]
fn parquet_in_folders_has_typed_columns_that_are_selected_and_compared() {
    let files = Folder::new();
    for (folder, first) in [("year=2025/kind=a", 0), ("year=2026/kind=b", 10), ("year=2026/kind=c", 20)] {
        fs::create_dir_all(files.path(&format!("table/{folder}"))).unwrap();
        let numbers = Int64Array::from_iter_values(first..first + 2);
        // The file also has the column, with another value and another type.
        let kinds = Int64Array::from_iter_values([7, 8]);
        files
            .write(&format!("table/{folder}/p.parquet"), vec![("kind", array(kinds)), ("n", array(numbers))]);
    }
    let data = open(&files.path("table"));
    let column = |name: &str, kind| DatasetColumn { name: name.into(), kind };
    assert_eq!(
        data.columns().unwrap().unwrap(),
        [
            column("kind", ColumnKind::Text),
            column("n", ColumnKind::Integer),
            column("year", ColumnKind::Integer)
        ]
    );
    assert_eq!(data.count().unwrap(), Some(6));
    assert_eq!(
        rows(&*data, &RequestedDatasetPart::default())[..2],
        [r#"{"kind":"a","n":0,"year":2025}"#, r#"{"kind":"a","n":1,"year":2025}"#]
    );
    let part = |columns: &[&str], conditions| RequestedDatasetPart {
        columns: Some(columns.iter().map(|name| (*name).to_owned()).collect()),
        conditions,
    };
    let late = condition("year", ComparisonOperator::AtLeast, ComparisonValue::Integer(2026));
    assert_eq!(rows(&*data, &part(&["year"], vec![late.clone()])), [r#"{"year":2026}"#; 4]);
    let of_c = condition("kind", ComparisonOperator::Equal, ComparisonValue::Text("c".into()));
    let found = rows(&*data, &part(&["n"], vec![late, of_c]));
    assert_eq!(found, [r#"{"n":20}"#, r#"{"n":21}"#]);
}

#[test]
fn a_folder_of_parquet_is_read_as_its_files_are() {
    let files = Folder::new();
    fs::create_dir_all(files.path("x.parquet")).unwrap();
    for (name, text) in [("b.parquet", "y"), ("a.parquet", "x")] {
        files.write(&format!("x.parquet/{name}"), vec![("t", array(StringArray::from(vec![text])))]);
    }
    fs::write(files.path("x.parquet/_SUCCESS"), "").unwrap();
    assert_eq!(all(&files.path("x.parquet")), [r#"{"t":"x"}"#, r#"{"t":"y"}"#]);
}

#[test]
fn columns_that_folders_name_have_types_in_queries_over_parquet() {
    let home = Folder::new();
    for (year, lang, n) in [("2025", "de", 1), ("2026", "de", 2), ("2026", "en", 3)] {
        fs::create_dir_all(home.path(&format!("rows.parquet/year={year}/lang={lang}"))).unwrap();
        let name = format!("rows.parquet/year={year}/lang={lang}/part.parquet");
        home.write(&name, vec![("n", array(Int64Array::from(vec![n])))]);
    }
    let (temp, input) = (TempDir::new().unwrap(), open(&home.path("rows.parquet")));
    let query = |sql: &str| {
        let settings = SqlSettings { temp: temp.path(), types: &[] };
        rows(
            &*sql_dataset(Arc::clone(&input), sql, &settings, Arc::new(|_| ())).unwrap(),
            &RequestedDatasetPart::default(),
        )
    };
    assert_eq!(
        query(
            "SELECT n, year, typeof(year) AS y, typeof(lang) AS l FROM input WHERE year = 2026 AND lang = 'en'"
        ),
        [r#"{"n":3,"year":2026,"y":"BIGINT","l":"VARCHAR"}"#]
    );
    assert_eq!(
        query("SELECT year + 1 AS y, sum(n) AS s FROM input GROUP BY ALL ORDER BY ALL"),
        [r#"{"y":2026,"s":1}"#, r#"{"y":2027,"s":5}"#]
    );
}
