//! Folders of documents become rows, one per file, whatever the files contain.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::{Dataset, ReadLimit, RequestedDatasetPart, RowSource};
use rowmill_data::{DocumentIdRule, InputFormat, InputLocation, InputSpec, open_dataset};
use rowmill_testkit::sample_files as made;
use rowmill_types::{ProblemCode, RowErrorKind, RowReadResult};
use serde_json::{Value, json};

const ROOM: ReadLimit = ReadLimit { rows: 100, bytes: 1 << 20 };

fn documents(folder: &Path, document_ids: DocumentIdRule) -> Arc<dyn Dataset> {
    let input = InputSpec::new(InputLocation::File(folder.into()), None);
    open_dataset(&InputSpec { document_ids, ..input }).unwrap()
}

fn all(mut source: Box<dyn RowSource>) -> Vec<RowReadResult> {
    let mut rows = Vec::new();
    while source.read(&mut rows, ROOM).unwrap() {}
    rows
}

fn values(rows: &[RowReadResult]) -> Vec<Value> {
    rows.iter().map(|row| serde_json::from_str(row.as_ref().unwrap().json_text()).unwrap()).collect()
}

fn column(rows: &[RowReadResult], name: &str) -> Vec<String> {
    values(rows).iter().map(|row| row[name].as_str().unwrap().to_owned()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let rows = all(documents(folder, DocumentIdRule::Path).open().unwrap());
    let inside = |path: String| path.strip_prefix(&format!("{}/", folder.display())).unwrap().to_owned();
    column(&rows, "path").into_iter().map(inside).collect()
}

fn write(folder: &Path, files: &[(&str, &[u8])]) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn every_file_is_a_row_that_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let pdf = made::pdf(&["Invoice"]);
    let docx = made::docx(&made::paragraph("hello"));
    let xlsx = made::archive(&[("[Content_Types].xml", "<x/>"), ("xl/workbook.xml", "<x/>")]);
    let pptx = made::archive(&[("docProps/app.xml", "<x/>"), ("ppt/presentation.xml", "<x/>")]);
    let png = made::png(7);
    write(
        folder.path(),
        &[
            ("b/\"scan\".pdf", &pdf),
            ("b/letter.docx", &docx),
            ("empty.txt", b""),
            ("a.png", &png),
            ("notes.md", b"# Notes"),
            ("data.json", b"{}"),
            ("sheet.xlsx", &xlsx),
            ("talk", &pptx),
            ("unknown", b"\0\x01\x02"),
        ],
    );
    let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let scan = fs::File::options().append(true).open(folder.path().join("b/\"scan\".pdf")).unwrap();
    scan.set_modified(modified).unwrap();
    let data = documents(folder.path(), DocumentIdRule::Path);
    let rows = all(data.open().unwrap());
    assert_eq!(
        column(&rows, "media_type"),
        [
            "image/png",
            "application/pdf",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/json",
            "text/plain",
            "text/markdown",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "application/octet-stream",
        ]
    );
    let digest = ring::digest::digest(&ring::digest::SHA256, &pdf);
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = json!({
        "path": format!("{}/b/\"scan\".pdf", folder.path().display()),
        "name": "\"scan\".pdf",
        "media_type": "application/pdf",
        "size": pdf.len(),
        "digest": digest,
        "modified": "2023-11-14T22:13:20Z",
    });
    assert_eq!(values(&rows)[1], expected);
    let row = rows[1].as_ref().unwrap();
    let fields: Vec<_> = row.fields().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(fields, ["path", "name", "media_type", "size", "digest", "modified"]);
    assert_eq!((row.number(), row.field("name")), (2, Some(r#""\"scan\".pdf""#)));
    let columns: Vec<_> = data.columns().unwrap().unwrap().into_iter().map(|column| column.name).collect();
    assert_eq!((columns, data.count().unwrap()), (fields, Some(9)));
}

#[test]
fn files_come_in_the_order_of_their_paths_without_hidden_ones() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["b.txt", "a/z.txt", "a/y/x.txt", "a.txt", ".hidden", ".git/config", "a/.DS_Store", "B.txt"];
    write(folder.path(), &files.map(|name| (name, &b"x"[..])));
    assert_eq!(names(folder.path()), ["B.txt", "a/y/x.txt", "a/z.txt", "a.txt", "b.txt"]);
}

#[test]
fn a_relative_folder_gives_relative_paths() {
    // The tests run in the folder of the crate.
    let rows = all(documents(Path::new("tests/suite/remote_support"), DocumentIdRule::Path).open().unwrap());
    assert_eq!(column(&rows, "path"), ["tests/suite/remote_support/mod.rs"]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_once_and_never_in_circles() {
    use std::os::unix::fs::symlink;
    let place = tempfile::tempdir().unwrap();
    let (folder, other) = (place.path().join("in"), place.path().join("other"));
    write(place.path(), &[("in/a/one.txt", b"1"), ("other/two.txt", b"2"), ("other/deep/three.txt", b"3")]);
    symlink(&folder, folder.join("a/itself")).unwrap();
    symlink(folder.join("a"), folder.join("again")).unwrap();
    symlink(&other, folder.join("l1")).unwrap();
    symlink(&other, folder.join("l2")).unwrap();
    symlink(other.join("deep"), folder.join("l3")).unwrap();
    symlink(&folder, other.join("back")).unwrap();
    symlink(other.join("two.txt"), folder.join("file")).unwrap();
    symlink("..", other.join("deep/up")).unwrap();
    assert_eq!(names(&folder), ["a/one.txt", "file", "l1/deep/three.txt", "l1/two.txt"]);
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_is_a_failed_row_and_never_left_out() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("a.txt", b"a"), ("closed.txt", b"c"), ("gone.txt", b"g"), ("z.txt", b"z")]);
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).unwrap();
    fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"h\xff.txt")), "x").unwrap();
    let data = documents(folder.path(), DocumentIdRule::Content);
    fs::remove_file(folder.path().join("gone.txt")).unwrap();
    let closed = folder.path().join("closed.txt");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    // Root can read everything, so no access is denied.
    let readable = fs::File::open(&closed).is_ok();

    let rows = all(data.open().unwrap());
    assert_eq!(rows.len(), 6);
    let numbers: Vec<_> =
        rows.iter().map(|row| row.as_ref().map_or_else(|bad| bad.number, |row| row.number())).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let message = |at: usize| {
        let bad = rows[at].as_ref().unwrap_err();
        assert_eq!(bad.kind, RowErrorKind::Attachment);
        bad.message.replace(&format!("{}/", folder.path().display()), "")
    };
    if !readable {
        assert_eq!(message(1), "permission denied: `closed.txt`");
    }
    assert_eq!(message(2), "file not found: `dangling`");
    assert_eq!(message(3), "file not found: `gone.txt`");
    assert_eq!(message(4), "path of a file is not valid UTF-8: `h\u{fffd}.txt`");
    assert_eq!(rows[5].as_ref().unwrap().field("name"), Some(r#""z.txt""#));
}

#[test]
fn with_ids_by_content_copies_are_left_out_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("a", b"one"), ("b", b"two"), ("c", b"one"), ("d", b"one"), ("e", b"three")]);
    let data = documents(folder.path(), DocumentIdRule::Content);
    assert_eq!((data.count().unwrap(), data.read_notice()), (None, None));
    let rows = all(data.open().unwrap());
    assert_eq!(column(&rows, "name"), ["a", "b", "e"]);
    let numbers: Vec<_> = rows.iter().map(|row| row.as_ref().unwrap().number()).collect();
    assert_eq!(numbers, [1, 2, 5]);
    let place = folder.path().display();
    let expected = format!(
        "skipped 2 duplicate files; the first is `{place}/c`, which has the same content as `{place}/a`"
    );
    assert_eq!((data.count().unwrap(), data.read_notice().as_deref()), (Some(3), Some(expected.as_str())));

    let mut source = data.open().unwrap();
    assert_eq!(source.skip(2).unwrap(), 2);
    assert_eq!(column(&all(source), "name"), ["e"]);
    assert_eq!(data.open().unwrap().skip(9).unwrap(), 3);
    assert_eq!(data.read_notice().as_deref(), Some(expected.as_str()), "what was told once is not added up");
    assert_eq!(all(documents(folder.path(), DocumentIdRule::Path).open().unwrap()).len(), 5);
    assert_eq!((DocumentIdRule::Path.field(), DocumentIdRule::Content.field()), ("path", "digest"));
}

#[test]
fn a_read_hands_on_after_its_room_and_after_much_work() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c", "d"] {
        fs::File::create(folder.path().join(name)).unwrap().set_len(20 << 20).unwrap();
    }
    let data = documents(folder.path(), DocumentIdRule::Path);
    let mut rows = Vec::new();
    assert!(data.open().unwrap().read(&mut rows, ReadLimit { rows: 1, ..ROOM }).unwrap());
    assert_eq!(rows.len(), 1);
    rows.clear();
    assert!(data.open().unwrap().read(&mut rows, ReadLimit { bytes: 1, ..ROOM }).unwrap());
    assert_eq!(rows.len(), 1);
    rows.clear();
    let mut source = data.open().unwrap();
    assert!(source.read(&mut rows, ROOM).unwrap());
    assert_eq!((rows.len(), source.position().read, source.position().total), (2, 2, Some(4)));
    assert_eq!(source.skip(1).unwrap(), 1);
    rows.clear();
    while source.read(&mut rows, ROOM).unwrap() {}
    assert_eq!(column(&rows, "name"), ["d"]);
    assert_eq!(source.skip(1).unwrap(), 0);
}

#[test]
fn a_digest_that_nobody_asks_for_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let huge = folder.path().join("huge.bin");
    // Reading this file would take longer than any test may.
    fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    let data = documents(folder.path(), DocumentIdRule::Path);
    let part = RequestedDatasetPart {
        columns: Some(vec!["name".into(), "size".into()]),
        ..RequestedDatasetPart::default()
    };
    let rows = values(&all(data.open_part(&part).unwrap()));
    assert_eq!(
        (&rows[0]["size"], rows[0].get("digest"), rows[0].get("media_type")),
        (&json!(1_u64 << 40), None, None)
    );
    assert_eq!(data.open().unwrap().skip(5).unwrap(), 1);
}

#[test]
fn a_growing_folder_stays_the_same_input() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("a.txt", b"a")]);
    let before = documents(folder.path(), DocumentIdRule::Content).identity().unwrap();
    write(folder.path(), &[("b.txt", b"b")]);
    assert_eq!(documents(folder.path(), DocumentIdRule::Content).identity().unwrap(), before);
}

#[test]
fn patterns_and_single_files_are_documents_too() {
    let folder = tempfile::tempdir().unwrap();
    let pdf = made::pdf(&["x"]);
    write(folder.path(), &[("b.pdf", &pdf), ("a.pdf", &pdf), ("rows.csv", b"a\n1\n")]);
    let of = |input: &str, format| {
        let location = InputLocation::parse(&format!("{}/{input}", folder.path().display())).unwrap();
        let data = open_dataset(&InputSpec::new(location, format)).unwrap();
        column(&all(data.open().unwrap()), "name")
    };
    assert_eq!(of("*.pdf", None), ["a.pdf", "b.pdf"]);
    assert_eq!(of("a.pdf", None), ["a.pdf"]);
    assert_eq!(of("rows.csv", Some(InputFormat::Documents)), ["rows.csv"]);
}

#[test]
fn a_folder_without_files_and_a_folder_of_tables_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let input = |format| InputSpec::new(InputLocation::File(folder.path().into()), format);
    assert_eq!(open_dataset(&input(None)).unwrap_err().code, ProblemCode::InputNotFound);
    write(folder.path(), &[("README.md", b"x"), ("rows.jsonl", b"{\"a\":1}\n"), (".x.jsonl", b"{}\n")]);
    let rows = all(open_dataset(&input(Some(InputFormat::Jsonl))).unwrap().open().unwrap());
    assert_eq!(values(&rows), [json!({"a": 1})]);
    let problem = open_dataset(&input(Some(InputFormat::Csv))).unwrap_err();
    assert_eq!(problem.message, format!("no csv file in folder `{}`", folder.path().display()));
}
