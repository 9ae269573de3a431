//! Files of rows arrive byte for byte, or the row fails with the reason.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use rowmill_data::{
    AttachmentSpec, InputLocation, InputSpec, TextExtractor, attachment_loader, open_dataset,
};
use rowmill_http::HttpClient;
use rowmill_testkit::{permissions_are_enforced, sample_files as made};
use rowmill_types::{Attachment, AttachmentKind, AttachmentRules, Row, RowErrorKind, RowReadResult};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn rules() -> AttachmentRules {
    let kind = |media_type, max_bytes| AttachmentKind { media_type, max_bytes };
    let kinds = vec![kind("application/pdf", 1 << 20), kind("image/*", 4096), kind("audio/wav", 4096)];
    AttachmentRules { kinds, max_total: 1 << 21, max_count: 3 }
}

fn spec(base: &Path) -> AttachmentSpec {
    AttachmentSpec {
        fields: vec!["scan".into()],
        documents: false,
        extract: None,
        archive: None,
        base: base.into(),
        rules: rules(),
        http: None,
    }
}

fn row(value: &Value) -> Row {
    Row::parse(1, value.to_string()).unwrap()
}

async fn load(spec: AttachmentSpec, value: &Value) -> Result<Vec<Attachment>, String> {
    attachment_loader(spec).load(&row(value)).await.map_err(|error| {
        assert_eq!((error.kind, error.attempts), (RowErrorKind::Attachment, None));
        error.message.to_string()
    })
}

fn parts(file: &Attachment) -> (&str, &str, &[u8]) {
    (&file.name, &file.media_type, &file.bytes)
}

#[tokio::test]
async fn files_arrive_byte_for_byte_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (pdf, png) = (made::pdf(&["Invoice 7"]), made::png(1));
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::write(folder.path().join("in/a.pdf"), &pdf).unwrap();
    fs::write(folder.path().join("b.jpg"), &png).unwrap();
    fs::write(folder.path().join("c.json"), "{\"é\": 1}").unwrap();
    let absolute = folder.path().join("b.jpg").display().to_string();
    let files = load(spec(folder.path()), &json!({"scan": ["in/a.pdf", absolute, "c.json"]})).await.unwrap();
    let found: Vec<_> = files.iter().map(parts).collect();
    assert_eq!(
        found,
        [
            ("a.pdf", "application/pdf", &pdf[..]),
            ("b.jpg", "image/png", &png),
            ("c.json", "text/plain", "{\"é\": 1}".as_bytes()),
        ],
        "a picture is sent as what it is, and text as text"
    );
    assert_eq!(files[2].text(), Some("{\"é\": 1}"));
    assert_eq!(files[2].digest, sha256("{\"é\": 1}".as_bytes()));

    let address = format!("file://{absolute}");
    let data = format!("data:image/png;base64,{}", base64::engine::general_purpose::STANDARD.encode(&png));
    for (value, name) in [(&address, "b.jpg"), (&data, "scan.png")] {
        let files = load(spec(folder.path()), &json!({"scan": value})).await.unwrap();
        assert_eq!(parts(&files[0]), (name, "image/png", &png[..]));
    }
}

fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_row_without_its_file_fails() {
    let folder = tempfile::tempdir().unwrap();
    for (value, message) in [
        (json!({"other": 1}), "field `scan` is missing, so there is no file to send"),
        (json!({"scan": null}), "field `scan` is null, so there is no file to send"),
        (json!({"scan": " "}), "field `scan` is empty, so there is no file to send"),
        (json!({"scan": []}), "field `scan` is an empty list, so there is no file to send"),
        (json!({"scan": 7}), "field `scan` must hold a path or a list of paths"),
        (json!({"scan": ["a", null]}), "field `scan` must hold a path or a list of paths"),
        (json!({"scan": "s3://bucket/a"}), "field `scan`: files cannot be read from `s3://`; use a path"),
        (
            json!({"scan": "https://me:word@example.com/a.pdf?key=secret"}),
            "`https://example.com/a.pdf` is a URL, and only local files are read; use a path",
        ),
    ] {
        assert_eq!(load(spec(folder.path()), &value).await.unwrap_err(), message, "{value}");
    }
}

/// Writes files that cannot be sent, each with the reason.
fn unusable(folder: &Path) -> Vec<(&'static str, &'static str)> {
    let pdf = made::pdf(&["text"]);
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    fs::create_dir(folder.join("folder.pdf")).unwrap();
    write("empty.pdf", b"");
    write("no-header.pdf", b"\x00\x01 no pdf");
    write("text.pdf", b"this is text");
    write("cut.pdf", &pdf[..pdf.len() / 2]);
    write("cut.png", &made::png(3)[..40]);
    write("not.png", b"GARBAGE\x00\x01");
    write("unknown", b"\x00\x01\x02\x03");
    write("latin.txt", b"caf\xe9 au lait");
    write("latin.html", b"<p>caf\xe9");
    write("letter.docx", &made::docx(&made::paragraph("x")));
    write("song.mp3", b"ID3\x04\x00\x00\x00\x00\x00\x00");
    let huge = fs::File::create(folder.join("huge.pdf")).unwrap();
    std::io::Write::write_all(&mut &huge, b"%PDF-1.7\n").unwrap();
    huge.set_len(1 << 40).unwrap();
    vec![
        ("missing.pdf", "file not found: `missing.pdf`"),
        ("empty.pdf/a", "file not found: `empty.pdf/a`"),
        ("folder.pdf", "`folder.pdf` is a folder, not a file"),
        ("empty.pdf", "`empty.pdf` is empty"),
        (
            "no-header.pdf",
            "`no-header.pdf` is broken: its name says application/pdf, but it does not start like one",
        ),
        ("text.pdf", "`text.pdf` is broken: its name says application/pdf, but its content is text/plain"),
        ("cut.pdf", "`cut.pdf` is broken or truncated: its end (`%%EOF`) is missing"),
        ("cut.png", "`cut.png` is broken or truncated: its end (`IEND`) is missing"),
        ("not.png", "`not.png` is broken: its name says image/png, but it does not start like one"),
        ("unknown", "`unknown` has an unknown type: neither its content nor its extension is recognized"),
        ("latin.txt", "`latin.txt` is text/plain, but not valid UTF-8 at byte 4; save it as UTF-8"),
        ("latin.html", "`latin.html` is text/html, but not valid UTF-8 at byte 7; save it as UTF-8"),
        (
            "letter.docx",
            "`letter.docx` is application/vnd.openxmlformats-officedocument.wordprocessingml.document, which \
             the model does not accept; it accepts application/pdf, image/*, audio/wav and text",
        ),
        (
            "song.mp3",
            "`song.mp3` is audio/mpeg, which the model does not accept; it accepts application/pdf, image/*, \
             audio/wav and text",
        ),
        (
            "huge.pdf",
            "`huge.pdf` is too large: it has 1099511627776 bytes, and the model accepts at most 1048576 of \
             application/pdf",
        ),
    ]
}

#[tokio::test]
async fn a_file_that_cannot_be_sent_fails_its_row_and_is_never_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("{}/", folder.path().display());
    fs::write(folder.path().join("good.txt"), "good").unwrap();
    for (name, reason) in unusable(folder.path()) {
        // A valid file before it does not save the row.
        let value = json!({"scan": ["good.txt", name]});
        let message = load(spec(folder.path()), &value).await.unwrap_err();
        assert_eq!(message.replace(&place, ""), reason, "{name}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_without_permission_and_a_pipe_fail_their_rows() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.pdf");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let message = load(spec(folder.path()), &json!({"scan": "pipe.pdf"})).await.unwrap_err();
    assert_eq!(message, format!("`{}` is not a file", pipe.display()));

    let closed = folder.path().join("closed.pdf");
    fs::write(&closed, made::pdf(&["x"])).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    if !permissions_are_enforced(&closed, "attach::a_file_without_permission_and_a_pipe_fail_their_rows") {
        return;
    }
    let message = load(spec(folder.path()), &json!({"scan": "closed.pdf"})).await.unwrap_err();
    assert_eq!(message, format!("permission denied: `{}`", closed.display()));
}

#[tokio::test]
async fn a_row_with_too_many_files_or_bytes_fails() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "x".repeat(1 << 20)).unwrap();
    let message = load(spec(folder.path()), &json!({"scan": (["a.txt"; 4])})).await.unwrap_err();
    assert_eq!(message, "the row has 4 files, and the model accepts at most 3");
    let message = load(spec(folder.path()), &json!({"scan": (["a.txt"; 3])})).await.unwrap_err();
    assert_eq!(
        message,
        "the files of the row are too large: they have 3145728 bytes together, and the model accepts at most \
         2097152"
    );
    assert_eq!(load(spec(folder.path()), &json!({"scan": (["a.txt"; 2])})).await.unwrap().len(), 2);
}

/// Rows of a folder of documents.
fn rows_of(folder: &Path) -> Vec<RowReadResult> {
    let location = InputLocation::File(folder.into());
    let data = open_dataset(&InputSpec::new(location, None)).unwrap();
    let mut rows = Vec::new();
    let room = rowmill_core::ports::ReadLimit { rows: 1000, bytes: 1 << 20 };
    let mut source = data.open().unwrap();
    while source.read(&mut rows, room).unwrap() {}
    rows
}

#[tokio::test]
async fn two_hundred_documents_are_two_hundred_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    let mut contents = HashMap::new();
    for number in 0..194_u8 {
        let (ending, bytes) = if number % 2 == 0 {
            ("pdf", made::pdf(&[&format!("Invoice {number}")]))
        } else {
            ("png", made::png(number))
        };
        let path = folder.path().join(format!("{number:03}.{ending}"));
        fs::write(&path, &bytes).unwrap();
        contents.insert(path, bytes);
    }
    let broken = made::pdf(&["cut"]);
    fs::write(folder.path().join("broken-1.pdf"), &broken[..60]).unwrap();
    fs::write(folder.path().join("broken-2.png"), b"\x89PNX\r\n\0\0").unwrap();
    fs::write(folder.path().join("changed.pdf"), made::pdf(&["before"])).unwrap();
    fs::write(folder.path().join("empty.pdf"), b"").unwrap();
    fs::write(folder.path().join("gone.pdf"), made::pdf(&["gone"])).unwrap();
    fs::write(folder.path().join("large.png"), [&made::png(1)[..], &[0; 5000]].concat()).unwrap();
    let rows = rows_of(folder.path());
    assert_eq!(rows.len(), 200);
    fs::remove_file(folder.path().join("gone.pdf")).unwrap();
    fs::write(folder.path().join("changed.pdf"), made::pdf(&["after!"])).unwrap();

    let loader =
        attachment_loader(AttachmentSpec { fields: Vec::new(), documents: true, ..spec(Path::new("")) });
    let mut failures = Vec::new();
    for row in &rows {
        let row = row.as_ref().unwrap();
        let path: PathBuf = serde_json::from_str(row.field("path").unwrap()).unwrap();
        match loader.load(row).await {
            Ok(files) => {
                assert_eq!((files.len(), &files[0].bytes[..]), (1, &contents.remove(&path).unwrap()[..]));
                assert_eq!(format!("\"{}\"", files[0].digest), row.field("digest").unwrap());
            }
            Err(error) => failures.push(error.message.replace(&format!("{}/", folder.path().display()), "")),
        }
    }
    assert!(contents.is_empty(), "every good file was sent");
    assert_eq!(
        failures,
        [
            "`broken-1.pdf` is broken or truncated: its end (`%%EOF`) is missing",
            "`broken-2.png` is broken: its name says image/png, but it does not start like one",
            "`changed.pdf` changed after its row was created",
            "`empty.pdf` is empty",
            "file not found: `gone.pdf`",
            "`large.png` is too large: it has 5067 bytes, and the model accepts at most 4096 of image/png",
        ]
    );
}

#[tokio::test]
async fn what_was_sent_is_kept_once_by_digest() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("kept/here");
    let (pdf, text) = (made::pdf(&["Keep me"]), "note");
    fs::write(folder.path().join("a.pdf"), &pdf).unwrap();
    fs::write(folder.path().join("copy.pdf"), &pdf).unwrap();
    fs::write(folder.path().join("n.md"), text).unwrap();
    let loader = attachment_loader(AttachmentSpec { archive: Some(archive.clone()), ..spec(folder.path()) });
    for value in [json!({"scan": ["a.pdf", "n.md"]}), json!({"scan": ["copy.pdf", "a.pdf"]})] {
        loader.load(&row(&value)).await.unwrap();
    }
    let (pdf_digest, text_digest) = (sha256(&pdf), sha256(text.as_bytes()));
    let kept = |digest: &str, ending: &str| {
        archive.join(digest.get(..2).unwrap()).join(format!("{digest}.{ending}"))
    };
    assert_eq!(fs::read(kept(&pdf_digest, "pdf")).unwrap(), pdf);
    assert_eq!(fs::read(kept(&text_digest, "txt")).unwrap(), text.as_bytes());
    let index = fs::read_to_string(archive.join("index.jsonl")).unwrap();
    let lines: Vec<Value> = index.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let path = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(
        lines,
        [
            json!({"digest": pdf_digest, "name": "a.pdf", "path": path("a.pdf"), "media_type": "application/pdf", "size": pdf.len()}),
            json!({"digest": text_digest, "name": "n.md", "path": path("n.md"), "media_type": "text/markdown", "size": 4}),
        ]
    );
    #[cfg(unix)]
    for private in [kept(&pdf_digest, "pdf"), archive.join("index.jsonl"), archive.clone()] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o077, 0, "{}", private.display());
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_kept_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "a").unwrap();
    let blocked = folder.path().join("a.txt/archive");
    let keeping = AttachmentSpec { archive: Some(blocked.clone()), ..spec(folder.path()) };
    let message = load(keeping, &json!({"scan": "a.txt"})).await.unwrap_err();
    let place = folder.path().display();
    let begin =
        format!("`{place}/a.txt` was not sent, because it cannot be archived in `{}`: ", blocked.display());
    assert!(message.starts_with(&begin), "{message}");
}

/// Loads from a server that returns one answer.
async fn load_answer(head: &str, body: &[u8], name: &str) -> Result<Vec<Attachment>, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let answer = [format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n").as_bytes(), body].concat();
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(socket.read(&mut request).await.unwrap() > 0);
        // A client that has read enough may close the connection before the end.
        drop(socket.write_all(&answer).await);
        drop(socket.shutdown().await);
    };
    let http = Some(HttpClient::new(&|_| None));
    let value = json!({"scan": format!("http://{host}/{name}?key=secret")});
    let ((), loaded) = tokio::join!(serve, load(AttachmentSpec { http, ..spec(Path::new("")) }, &value));
    loaded.map_err(|message| message.replace(&host, "host"))
}

#[tokio::test]
async fn files_are_fetched_and_checked_like_others() {
    let pdf = made::pdf(&["fetched"]);
    let whole = format!("200 OK\r\ncontent-length: {}", pdf.len());
    let files = load_answer(&whole, &pdf, "in/a.pdf").await.unwrap();
    assert_eq!(parts(&files[0]), ("a.pdf", "application/pdf", &pdf[..]));
    assert_eq!(load_answer("200 OK", &pdf, "a").await.unwrap()[0].media_type, "application/pdf");
    for (head, body, message) in [
        ("404 Not Found", &b"no"[..], "`http://host/a.pdf` returned status 404"),
        (
            "200 OK\r\ncontent-length: 99999999",
            b"%PDF-",
            "`http://host/a.pdf` is too large: it has 99999999 bytes, and the model accepts at most 2097152",
        ),
        (
            "200 OK",
            b"<!DOCTYPE html><p>Please sign in",
            "`http://host/a.pdf` is broken: its name says application/pdf, but its content is text/html",
        ),
    ] {
        assert_eq!(load_answer(head, body, "a.pdf").await.unwrap_err(), message);
    }
    let cut = load_answer(&whole, &pdf[..20], "a.pdf").await.unwrap_err();
    assert!(cut.starts_with("`http://host/a.pdf` could not be downloaded completely: "), "{cut}");
}

#[tokio::test]
async fn with_extraction_the_model_gets_text() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("kept");
    fs::write(folder.path().join("a.pdf"), made::pdf(&["Total 12"])).unwrap();
    fs::write(folder.path().join("b.md"), "# As it is").unwrap();
    fs::write(folder.path().join("c.png"), made::png(1)).unwrap();
    fs::write(folder.path().join("d.html"), b"<p>caf\xe9").unwrap();
    let extracting =
        |archive| AttachmentSpec { extract: Some(TextExtractor::InProcess), archive, ..spec(folder.path()) };
    let files =
        load(extracting(Some(archive.clone())), &json!({"scan": ["a.pdf", "b.md", "d.html"]})).await.unwrap();
    assert_eq!(parts(&files[2]), ("d.html", "text/plain", "café".as_bytes()));
    assert_eq!(parts(&files[0]), ("a.pdf", "text/plain", &b"Total 12"[..]));
    assert_eq!(parts(&files[1]), ("b.md", "text/markdown", &b"# As it is"[..]));
    let digest = sha256(b"Total 12");
    assert_eq!(files[0].digest, digest);
    let kept = archive.join(digest.get(..2).unwrap()).join(format!("{digest}.txt"));
    assert_eq!(fs::read(kept).unwrap(), b"Total 12", "what was sent is kept");
    let message = load(extracting(None), &json!({"scan": "c.png"})).await.unwrap_err();
    assert!(message.contains("is image/png, from which no text can be extracted"), "{message}");
}
