//! Every format, every selection, every sink and the attachment loader keep the contracts of their ports,
//! checked by the testkit's suites.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_data::output::{LineSink, SinkContent, open_result_rows};
use rowmill_data::{
    AttachmentSpec, DocumentIdRule, FileList, InputFile, InputFormat, InputLocation, InputSpec, SqlSettings,
    attachment_loader, open_dataset, select_columns, sql_dataset, where_dataset,
};
use rowmill_testkit::conformance::{
    AttachmentFacts, DatasetFacts, ReadExtent, RowNumbering, SinkFacts, check_attachments, check_dataset,
    check_sink,
};
use rowmill_testkit::sample_files as made;
use rowmill_testkit::sample_rows::{SampleFormat, write_sample_rows};
use rowmill_types::{AttachmentKind, AttachmentRules, Row};
use tempfile::TempDir;

const LINES: &str = "{\"id\": \"a\", \"n\": 1, \"word\": \"grün\"}\n\n{\"id\": \"b\", \"n\": 2.50}\nnope\n\
                     {\"id\": \"c\", \"n\": 3, \"word\": null, \"tags\": [1, {\"x\": \"}\"}]}\n[1]\n \t\n\
                     {\"id\": \"d\", \"word\": \"\\u00fc\\n\", \"n\": -4}\n{}\n{\"id\": \"e\", \"n\": 5}";
const RECORDS: &str = "id,n,word\na,1,grün\nb,2\nc,3,x,y\n\"d\n\",4,\"say \"\"hi\"\"\"\n,,\ne,5,last\n";

fn write(folder: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

fn of_file(path: &Path) -> Arc<dyn Dataset> {
    open_dataset(&InputSpec::new(InputLocation::File(path.into()), None)).unwrap()
}

fn made_rows(folder: &TempDir, name: &str, format: SampleFormat) -> Arc<dyn Dataset> {
    let path = folder.path().join(name);
    write_sample_rows(File::create(&path).unwrap(), format, 60, 7).unwrap();
    of_file(&path)
}

fn several(folder: &TempDir, format: InputFormat, texts: &[&str]) -> Arc<dyn Dataset> {
    let file = |(number, text): (usize, &&str)| {
        let name = format!("{number}.part");
        InputFile::new(write(folder, &name, text), name)
    };
    let files = texts.iter().enumerate().map(file).collect();
    let list = FileList { name: "all".into(), files, identity: None };
    open_dataset(&InputSpec::new(InputLocation::Files(list), Some(format))).unwrap()
}

fn known(rows: usize, bad: &[u64], numbering: RowNumbering) -> DatasetFacts {
    DatasetFacts { rows: Some(rows), bad: Some(bad.to_vec()), numbering, ..DatasetFacts::default() }
}

#[track_caller]
fn assert_kept(what: &str, dataset: &dyn Dataset, facts: &DatasetFacts) {
    let found = check_dataset(dataset, facts);
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn every_text_format_keeps_the_contract_of_datasets() {
    let folder = TempDir::new().unwrap();
    let growing = |rows, bad| known(rows, bad, RowNumbering::Growing);
    let array = "[{\"id\": \"a\", \"n\": 1}, 7, {\"n\": \"grün]\"}, nope, {}]";
    for (name, text, facts) in [
        ("rows.jsonl", LINES, growing(8, &[4, 6][..])),
        ("empty.jsonl", "", growing(0, &[])),
        ("blank.jsonl", "\n\n \n", growing(0, &[])),
        ("rows.csv", RECORDS, growing(6, &[4])),
        ("header.csv", "a,b\n", growing(0, &[])),
        ("open.csv", "a,b\n1,2\n\"x", growing(2, &[3])),
        ("rows.tsv", "id\tn\na\t1\nb\t\n", growing(2, &[])),
        ("rows.json", array, known(5, &[2, 4], RowNumbering::FromOne)),
        ("lines.json", "{\"a\": 1}\n{\"a\": 2}\nnope\n", known(3, &[3], RowNumbering::FromOne)),
    ] {
        assert_kept(name, &*of_file(&write(&folder, name, text)), &facts);
    }
    for (name, format) in [("made.jsonl", SampleFormat::Jsonl), ("made.csv", SampleFormat::Csv)] {
        assert_kept(name, &*made_rows(&folder, name, format), &growing(60, &[]));
    }
    let parts = several(&folder, InputFormat::Jsonl, &[LINES, "", "{\"id\": \"f\"}\n", "\n"]);
    assert_kept("several files", &*parts, &growing(9, &[4, 6]));
    let parts = several(&folder, InputFormat::Csv, &[RECORDS, "id\n", "id,m\nx,y\n"]);
    assert_kept("several tables", &*parts, &DatasetFacts { rows: Some(7), ..DatasetFacts::default() });
}

#[test]
fn parquet_keeps_the_contract_of_datasets() {
    let folder = TempDir::new().unwrap();
    let facts = known(60, &[], RowNumbering::FromOne);
    assert_kept("one file", &*made_rows(&folder, "made.parquet", SampleFormat::Parquet), &facts);
    let path = folder.path().join("made.parquet");
    let file = |name: &str| InputFile::new(path.clone(), name.into());
    let list = FileList { name: "all".into(), files: vec![file("a"), file("b")], identity: None };
    let twice =
        open_dataset(&InputSpec::new(InputLocation::Files(list), Some(InputFormat::Parquet))).unwrap();
    assert_kept("two files", &*twice, &known(120, &[], RowNumbering::FromOne));
}

#[test]
fn folders_of_documents_keep_the_contract_of_datasets() {
    let folder = TempDir::new().unwrap();
    for (name, bytes) in [
        ("a/letter.txt", "grün".as_bytes().to_vec()),
        ("a/copy.txt", "grün".as_bytes().to_vec()),
        ("b.pdf", made::pdf(&["one"])),
        ("c.png", made::png(3)),
        ("d \"x\".md", Vec::new()),
    ] {
        write(&folder, name, bytes);
    }
    for (document_ids, rows, numbering) in [
        (DocumentIdRule::Path, 5, RowNumbering::FromOne),
        (DocumentIdRule::Content, 4, RowNumbering::Growing),
    ] {
        let location = InputLocation::File(folder.path().into());
        let documents = open_dataset(&InputSpec { document_ids, ..InputSpec::new(location, None) }).unwrap();
        assert_kept(&format!("{document_ids:?}"), &*documents, &known(rows, &[], numbering));
    }
}

#[test]
fn what_sql_selects_keeps_the_contract_of_datasets() {
    let folder = TempDir::new().unwrap();
    let lines = of_file(&write(&folder, "rows.jsonl", LINES));
    let made = made_rows(&folder, "made.parquet", SampleFormat::Parquet);
    let query = |input: &Arc<dyn Dataset>, sql: &str| {
        sql_dataset(input.clone(), sql, &SqlSettings { temp: folder.path(), types: &[] }, Arc::new(|_| ()))
            .unwrap()
    };
    for (input, sql, rows) in [
        (&lines, "SELECT * FROM input", 6),
        (&lines, "SELECT id, n * 2 AS twice FROM input WHERE n > 1 ORDER BY n DESC", 3),
        (&lines, "SELECT count(*) AS rows FROM input", 1),
        (&lines, "SELECT id FROM input LIMIT 2", 2),
        (&made, "SELECT id, title FROM input WHERE id > 50", 10),
        (&made, "SELECT id, title FROM input LIMIT 5", 5),
    ] {
        let reach = if sql.contains("LIMIT") { ReadExtent::WhatIsNeeded } else { ReadExtent::Everything };
        let facts = DatasetFacts { reach, ..known(rows, &[], RowNumbering::FromOne) };
        assert_kept(sql, &*query(input, sql), &facts);
    }
    let filtered = |input: &Arc<dyn Dataset>, condition: &str| {
        where_dataset(
            input.clone(),
            condition,
            &SqlSettings { temp: folder.path(), types: &[] },
            Arc::new(|_| ()),
        )
        .unwrap()
    };
    for (input, condition, rows, bad) in [
        (&lines, "n >= 2", 5, &[4, 6][..]),
        (&lines, "false", 2, &[4, 6]),
        (&lines, "n = (SELECT max(n) FROM input)", 3, &[4, 6]),
        (&made, "id >= (SELECT max(o.id) FROM input o WHERE o.id < input.id)", 60 - 1, &[]),
        (&made, "id % 2 = 0", 30, &[]),
        (&made, "id < 4 AND split IS NOT NULL", 3, &[]),
    ] {
        assert_kept(condition, &*filtered(input, condition), &known(rows, bad, RowNumbering::Growing));
    }
    let columns = |input: Arc<dyn Dataset>, names: &[&str]| {
        select_columns(input, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
    };
    assert_kept(
        "columns of lines",
        &*columns(lines.clone(), &["word", "id"]),
        &known(8, &[4, 6], RowNumbering::Growing),
    );
    assert_kept(
        "columns of a table",
        &*columns(made.clone(), &["tags", "id"]),
        &known(60, &[], RowNumbering::FromOne),
    );
    let both = columns(filtered(&made, "id > 30"), &["price", "id"]);
    assert_kept("columns of some rows", &*both, &known(30, &[], RowNumbering::Growing));
}

#[test]
fn results_as_rows_keep_the_contract_of_datasets() {
    let folder = TempDir::new().unwrap();
    let envelopes = "{\"id\":1,\"row_number\":1,\"ok\":true,\"result\":{\"label\":\"x\",\"id\":7},\"error\":null}\n\
                     {\"id\":2,\"row_number\":2,\"ok\":true,\"result\":\"grün\",\"error\":null}\n";
    let rows = open_result_rows(&write(&folder, "out.jsonl", envelopes)).unwrap();
    assert_kept("results", &*rows, &known(2, &[], RowNumbering::FromOne));
}

#[test]
fn lines_keep_the_contract_of_sinks() {
    let folder = TempDir::new().unwrap();
    for part in [SinkContent::Envelopes, SinkContent::Failures, SinkContent::Telemetry] {
        let path = write(&folder, "out.jsonl", "{\"from\":\"before\"}\ncut off");
        let mut sink = LineSink::append(&path, part, 18).unwrap();
        let line = |bytes: &[u8]| Some([bytes, b"\n"].concat());
        let facts = SinkFacts {
            written: Box::new(|| fs::read(&path).unwrap()),
            leaves: Box::new(move |published| match part {
                SinkContent::Envelopes => line(published.envelope),
                SinkContent::Failures if published.ok => None,
                SinkContent::Failures => line(published.envelope),
                // Rows without calls have little telemetry, and two of them may have the same.
                SinkContent::Telemetry => line(published.telemetry),
            }),
        };
        let found = check_sink(&mut sink, &facts);
        assert!(found.is_empty(), "{part:?}:\n{}", found.join("\n"));
    }
}

#[tokio::test]
async fn files_of_rows_keep_the_contract_of_attachments() {
    let folder = TempDir::new().unwrap();
    write(&folder, "in/a.pdf", made::pdf(&["Invoice"]));
    write(&folder, "b.txt", "grün");
    let kind = |media_type| AttachmentKind { media_type, max_bytes: 1 << 20 };
    let rules = AttachmentRules { kinds: vec![kind("application/pdf")], max_total: 1 << 21, max_count: 3 };
    let files = attachment_loader(AttachmentSpec {
        fields: vec!["scan".into()],
        documents: false,
        extract: None,
        archive: None,
        base: folder.path().into(),
        rules,
        http: None,
    });
    let row = |text: &str| Row::parse(1, text.to_owned()).unwrap();
    let facts = AttachmentFacts {
        row: row("{\"scan\": [\"in/a.pdf\", \"b.txt\"]}"),
        names: vec!["a.pdf".into(), "b.txt".into()],
        without: None,
        missing: Some(row("{\"scan\": [\"b.txt\", \"gone.txt\"]}")),
    };
    assert_eq!(check_attachments(&*files, &facts).await, Vec::<String>::new());
}
