//! Implementations of `AttachmentLoader` that violate their contract.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use rowmill_core::ports::AttachmentLoader;
use rowmill_testkit::conformance::{AttachmentFacts, check_attachments};
use rowmill_types::{Attachment, Row, RowError, RowErrorKind};

use super::assert_reported;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    Fails,
    TurnsAround,
    OnlyOnce,
    OnlyOneAtOnce,
    BreaksWhenDropped,
    LiesAboutDigest,
    HasNoMediaType,
    NamesFolders,
    CallsBytesText,
    AddsFiles,
    GoesWithout,
    FailsSilently,
    Panics,
}

#[derive(Debug)]
struct Broken {
    manner: Manner,
    loads: AtomicUsize,
    under_way: AtomicUsize,
}

/// The digest of a text.
fn digest(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Broken {
    fn file(&self, name: &str) -> Attachment {
        let bytes: &[u8] = if self.manner == Manner::CallsBytesText { b"\xff" } else { name.as_bytes() };
        let media_type = if self.manner == Manner::HasNoMediaType { "text" } else { "text/plain" };
        let folder = if self.manner == Manner::NamesFolders { "in/" } else { "" };
        let digest = if self.manner == Manner::LiesAboutDigest { String::new() } else { digest(bytes) };
        Attachment {
            name: format!("{folder}{name}"),
            media_type: media_type.to_owned(),
            bytes: Bytes::copy_from_slice(bytes),
            digest,
        }
    }

    async fn files(&self, row: &Row) -> Result<Vec<Attachment>, RowError> {
        let failed = |message: &str| Err(RowError::new(RowErrorKind::Attachment, message));
        let before = self.under_way.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        let is_late = self.loads.fetch_add(1, Ordering::SeqCst) > 0;
        // The suite makes eight loads at once; a dropped load counts for ever.
        let hindered = match self.manner {
            Manner::OnlyOneAtOnce => before > 0,
            Manner::BreaksWhenDropped => before == 1 && self.loads.load(Ordering::SeqCst) > 10,
            Manner::OnlyOnce => is_late,
            Manner::Fails => true,
            _ => false,
        };
        match row.json_text() {
            _ if hindered => failed("not now"),
            "{}" if self.manner == Manner::AddsFiles => Ok(vec![self.file("a.txt")]),
            "{}" => Ok(Vec::new()),
            "{\"gone\":1}" => match self.manner {
                Manner::GoesWithout => Ok(Vec::new()),
                Manner::FailsSilently => failed(""),
                Manner::Panics => panic!("no such file"),
                _ => failed("no such file"),
            },
            _ if self.manner == Manner::TurnsAround => Ok(vec![self.file("b.txt"), self.file("a.txt")]),
            _ => Ok(vec![self.file("a.txt"), self.file("b.txt")]),
        }
    }
}

impl AttachmentLoader for Broken {
    fn load<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Vec<Attachment>, RowError>> {
        Box::pin(self.files(row))
    }
}

#[tokio::test(start_paused = true)]
async fn every_promise_of_what_brings_files_is_checked() {
    let row = |text: &str| Row::parse(1, text.to_owned()).unwrap();
    let names = vec!["a.txt".to_owned(), "b.txt".to_owned()];
    let facts = AttachmentFacts {
        row: row("{\"files\":2}"),
        names,
        without: Some(row("{}")),
        missing: Some(row("{\"gone\":1}")),
    };
    for (manner, expected) in [
        (Manner::Right, ""),
        (Manner::Fails, "a row with files: it fails: not now"),
        (
            Manner::TurnsAround,
            "a row with files: its files are [\"b.txt\", \"a.txt\"] instead of [\"a.txt\", \"b.txt\"]",
        ),
        (Manner::OnlyOnce, "the same row again: it fails: not now"),
        (Manner::OnlyOneAtOnce, "rows at once: it fails: not now"),
        (Manner::BreaksWhenDropped, "a row after one was given up: it fails: not now"),
        (Manner::LiesAboutDigest, "a row with files: the digest of `a.txt` is reported as ``"),
        (Manner::HasNoMediaType, "a row with files: `text` is no media type"),
        (Manner::NamesFolders, "a row with files: its files are [\"in/a.txt\""),
        (Manner::CallsBytesText, "a row with files: `a.txt` is declared as text and is not"),
        (Manner::AddsFiles, "a row without files: it has 1 files"),
        (
            Manner::GoesWithout,
            "a row with a file that cannot be brought: it goes on with 0 files instead of failing",
        ),
        (Manner::FailsSilently, "a row with a file that cannot be brought: it does not say why"),
        (Manner::Panics, "a row with a file that cannot be brought: it panicked: no such file"),
    ] {
        let loads = AtomicUsize::new(0);
        let attachments = Broken { manner, loads, under_way: AtomicUsize::new(0) };
        assert_reported(&manner, &check_attachments(&attachments, &facts).await, expected);
    }
    let mut folders = facts.clone();
    folders.names = vec!["in/a.txt".to_owned(), "in/b.txt".to_owned()];
    let manner = Manner::NamesFolders;
    let attachments = Broken { manner, loads: AtomicUsize::new(0), under_way: AtomicUsize::new(0) };
    let found = check_attachments(&attachments, &folders).await;
    assert_reported(&manner, &found, "a row with files: the name `in/a.txt` has folders");
}
