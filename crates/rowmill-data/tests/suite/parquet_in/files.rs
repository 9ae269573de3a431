//! Files with every compression, and several files as one table.

use std::fs::{self, File};
use std::io::Write as _;

use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use rowmill_core::ports::{ColumnKind, DatasetColumn, RequestedDatasetPart};
use rowmill_testkit::sample_rows::{SampleFormat, write_sample_rows};
use rowmill_types::ProblemCode;

use super::support::{Folder, array, open, open_all, rows_of, texts};

fn words(count: usize) -> ArrayRef {
    array(StringArray::from_iter_values((0..count).map(|at| format!("word {}", at % 7))))
}

fn numbers(count: i64) -> ArrayRef {
    array(Int64Array::from_iter_values(0..count))
}

#[test]
fn every_codec_is_unpacked() {
    let folder = Folder::new();
    let plain = texts(&folder.write("a.parquet", vec![("n", numbers(500)), ("w", words(500))]));
    assert_eq!(plain.get(8).unwrap(), r#"{"n":8,"w":"word 1"}"#);
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::BROTLI(BrotliLevel::default()),
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties =
                WriterProperties::builder().set_compression(codec).set_writer_version(version).build();
            let path =
                folder.write_with("a.parquet", properties, vec![("n", numbers(500)), ("w", words(500))]);
            assert_eq!(texts(&path), plain, "{codec} {version:?}");
        }
    }
}

#[test]
fn a_file_that_is_packed_as_a_whole_is_unpacked_first() {
    let folder = Folder::new();
    let path = folder.write("a.parquet", vec![("n", numbers(3))]);
    let bytes = fs::read(&path).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes).unwrap();
    for (name, packed) in [
        ("a.parquet.gz", gzip.finish().unwrap()),
        ("a.parquet.zst", zstd::encode_all(bytes.as_slice(), 1).unwrap()),
    ] {
        fs::write(folder.path(name), packed).unwrap();
        assert_eq!(texts(&folder.path(name)), texts(&path), "{name}");
    }
    fs::write(folder.path("a.parquet.gz"), b"\x1f\x8b rubbish").unwrap();
    let problem = open(&folder.path("a.parquet.gz")).unwrap_err();
    assert_eq!(problem.code, ProblemCode::InputUnreadable);
}

#[test]
fn made_rows_are_the_same_from_parquet_and_from_jsonl() {
    let folder = Folder::new();
    for (rows, seed) in [(3_000, 1), (0, 0)] {
        let path = folder.path("made.parquet");
        write_sample_rows(File::create(&path).unwrap(), SampleFormat::Parquet, rows, seed).unwrap();
        let mut lines = Vec::new();
        write_sample_rows(&mut lines, SampleFormat::Jsonl, rows, seed).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        assert_eq!(texts(&path), lines.lines().collect::<Vec<_>>());
        let mut table = Vec::new();
        write_sample_rows(&mut table, SampleFormat::Csv, rows, seed).unwrap();
        let mut table = csv::Reader::from_reader(table.as_slice());
        let header = table.headers().unwrap().clone();
        for (line, record) in lines.lines().zip(table.records()) {
            let row: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
            for (name, cell) in header.iter().zip(&record.unwrap()) {
                let expected = match &row[name] {
                    serde_json::Value::Null => String::new(),
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                assert_eq!(cell, expected, "{name} of {line}");
            }
        }
    }
}

#[test]
fn files_are_joined_by_the_names_of_their_columns() {
    let folder = Folder::new();
    let paths = [
        folder.write("1.parquet", vec![("a", array(Int64Array::from(vec![1, 2]))), ("b", words(2))]),
        folder.write("2.parquet", vec![("b", words(0)), ("a", array(Int64Array::from(Vec::<i64>::new())))]),
        folder.write("3.parquet", vec![("c", words(1)), ("a", array(Float64Array::from(vec![0.5])))]),
        folder.write("4.parquet", vec![("a", array(Int32Array::from(vec![7]))), ("b", words(1))]),
    ];
    let dataset = open_all(&paths).unwrap();
    let rows = rows_of(dataset.as_ref(), &RequestedDatasetPart::default());
    let shown: Vec<_> = rows.iter().map(|row| (row.number(), row.json_text())).collect();
    assert_eq!(
        shown,
        [
            (1, r#"{"a":1,"b":"word 0","c":null}"#),
            (2, r#"{"a":2,"b":"word 1","c":null}"#),
            (3, r#"{"a":0.5,"b":null,"c":"word 0"}"#),
            (4, r#"{"a":7,"b":"word 0","c":null}"#),
        ]
    );
    assert_eq!(dataset.count().unwrap(), Some(4));
    let column = |name: &str, kind| DatasetColumn { name: name.into(), kind };
    let columns = [("a", ColumnKind::Real), ("b", ColumnKind::Text), ("c", ColumnKind::Text)];
    assert_eq!(dataset.columns().unwrap().unwrap(), columns.map(|(name, kind)| column(name, kind)));
    let position = |source: &dyn rowmill_core::ports::RowSource| source.position();
    let mut source = dataset.open().unwrap();
    assert_eq!(position(source.as_ref()).read, 0);
    super::support::drain(source.as_mut());
    let end = position(source.as_ref());
    assert_eq!(Some(end.read), end.total);
    assert_eq!(dataset.identity().unwrap().size, end.total);
}

#[test]
fn a_type_that_differs_between_files_is_reported_with_both_names() {
    let folder = Folder::new();
    let paths = [
        folder.write("1.parquet", vec![("a", numbers(1))]),
        folder.write("2.parquet", vec![("a", numbers(1))]),
        folder.write("3.parquet", vec![("a", words(1))]),
    ];
    let problem = open_all(&paths).unwrap_err();
    assert_eq!(
        problem.message,
        "column `a` differs between files: integer in `1.parquet`, text in `3.parquet`"
    );
    assert_eq!(problem.code, ProblemCode::InputUnreadable);
    assert!(problem.hint.is_some());
}

#[test]
fn columns_of_the_same_name_get_numbers() {
    let folder = Folder::new();
    let field = |name: &str| Field::new(name, DataType::Int64, false);
    let schema = std::sync::Arc::new(Schema::new(vec![field("a"), field("a_1"), field("a")]));
    let batch = RecordBatch::try_new(schema.clone(), vec![numbers(1), numbers(1), numbers(1)]).unwrap();
    let path = folder.path("a.parquet");
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert_eq!(texts(&path), [r#"{"a":0,"a_1":0,"a_2":0}"#]);
}
