//! Compressed text is read like text, whatever its name is; truncation and damage are reported.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use rowmill_core::ports::ReadLimit;
use rowmill_data::{InputFormat, InputLocation, InputSpec, open_dataset, spool_input};
use rowmill_types::{Problem, ProblemCode};

const ROOM: ReadLimit = ReadLimit { rows: 100, bytes: 1 << 20 };

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    // As the command does, with a checksum.
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The texts of the rows, and the problem that ended the read.
fn read(format: InputFormat, bytes: &[u8]) -> (Vec<String>, Option<Problem>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.txt");
    std::fs::write(&path, bytes).unwrap();
    let data = open_dataset(&InputSpec::new(InputLocation::File(path), Some(format))).unwrap();
    let mut source = data.open().unwrap();
    let mut rows = Vec::new();
    let problem = loop {
        match source.read(&mut rows, ROOM) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(problem) => break Some(problem),
        }
    };
    let total = bytes.len() as u64;
    assert_eq!(source.position().total, Some(total));
    assert!(source.position().read <= total);
    if problem.is_none() {
        assert_eq!(source.position().read, total, "progress reaches the packed size");
    }
    (rows.into_iter().map(|row| row.unwrap().json_text().to_owned()).collect(), problem)
}

#[test]
fn gzip_and_zstd_are_known_by_their_first_bytes() {
    let skippable = [&b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"[..], &zstd(b"{\"a\":1}\n{\"a\":2}\n")].concat();
    let padded = [gzip(b"{\"a\":1}\n{\"a\":2}\n"), vec![0; 700]].concat();
    let with_mark = gzip("\u{feff}{\"a\":1}\n{\"a\":2}".as_bytes());
    for bytes in [
        gzip(b"{\"a\":1}\n{\"a\":2}\n"),
        [gzip(b"{\"a\":1}\n{\"a\""), gzip(b":2}\n"), gzip(b"")].concat(),
        padded,
        with_mark,
        zstd(b"{\"a\":1}\n{\"a\":2}\n"),
        [zstd(b"{\"a\":1}\n"), zstd(b"{\"a\":2}\n")].concat(),
        skippable,
    ] {
        assert_eq!(read(InputFormat::Jsonl, &bytes), (vec![r#"{"a":1}"#.into(), r#"{"a":2}"#.into()], None));
    }
    for pack in [gzip, zstd] {
        assert_eq!(read(InputFormat::Csv, &pack(b"a\n1\n")).0, [r#"{"a":"1"}"#]);
        assert_eq!(read(InputFormat::Json, &pack(b"[{\"a\":1}]")).0, [r#"{"a":1}"#]);
        assert_eq!(read(InputFormat::Jsonl, &pack(b"")), (vec![], None));
    }
}

#[test]
fn packed_input_that_is_cut_gives_the_rows_before_and_then_says_so() {
    let text: String =
        (0..50_000).map(|n| format!("{{\"n\":{n},\"x\":\"{}\"}}\n", n * 7919 % 1000)).collect();
    for (packing, bytes) in [("gzip", gzip(text.as_bytes())), ("zstd", zstd(text.as_bytes()))] {
        let cut = &bytes[..bytes.len() * 9 / 10];
        let (rows, problem) = read(InputFormat::Jsonl, cut);
        assert!(rows.len() > 30_000 && rows.len() < 50_000, "{packing}: {}", rows.len());
        assert!(text.starts_with(&rows.join("\n")));
        let problem = problem.unwrap();
        assert_eq!(problem.code, ProblemCode::InputUnreadable);
        let beginning = format!("input ends in the middle of its {packing} data: `");
        assert!(problem.message.starts_with(&beginning), "{}", problem.message);
        // Truncated within its first bytes, and after its content.
        for length in [5, bytes.len() - 1] {
            let problem = read(InputFormat::Jsonl, &bytes[..length]).1.unwrap();
            assert!(problem.message.starts_with(&beginning), "{length}: {}", problem.message);
        }
    }
}

#[test]
fn packed_input_that_is_damaged_says_so() {
    let text: String =
        (0..50_000).map(|n| format!("{{\"n\":{n},\"x\":\"{}\"}}\n", n * 7919 % 1000)).collect();
    for (packing, mut bytes) in [("gzip", gzip(text.as_bytes())), ("zstd", zstd(text.as_bytes()))] {
        let middle = bytes.len() / 2;
        bytes[middle..middle + 64].fill(0xff);
        // A damaged block may decompress to anything, so rows are not checked.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        std::fs::write(&path, &bytes).unwrap();
        let data = open_dataset(&InputSpec::new(InputLocation::File(path), None)).unwrap();
        let mut source = data.open().unwrap();
        let mut rows = Vec::new();
        let problem = loop {
            match source.read(&mut rows, ROOM) {
                Ok(more) => assert!(more, "damage is never the end"),
                Err(problem) => break problem,
            }
        };
        assert_eq!(problem.code, ProblemCode::InputUnreadable);
        let beginning = format!("input is damaged in the middle of its {packing} data: `");
        assert!(problem.message.starts_with(&beginning), "{}", problem.message);
        assert!(problem.cause.is_some());
    }
    let trailing = [gzip(b"{\"a\":1}\n"), b"more".to_vec()].concat();
    let (rows, problem) = read(InputFormat::Jsonl, &trailing);
    assert_eq!(rows, [r#"{"a":1}"#]);
    assert_eq!(problem.unwrap().code, ProblemCode::InputUnreadable);
}

#[test]
fn what_is_packed_must_be_text() {
    for (bytes, kind, hint) in [
        (gzip(b"PK\x03\x04\x14"), "a ZIP archive or a spreadsheet", "decompress"),
        (zstd(b"PAR1\x15\x04"), "a Parquet file", "`input_format: parquet`"),
        (gzip(b"\xff\xfe{\x00"), "UTF-16", "iconv"),
        (gzip(&gzip(b"{}")), "compressed twice (gzip inside)", "decompress"),
        (gzip(&zstd(b"{}")), "compressed twice (zstd inside)", "decompress"),
    ] {
        let problem = read(InputFormat::Jsonl, &bytes).1.unwrap();
        assert_eq!(problem.code, ProblemCode::InputFormat);
        assert!(problem.message.starts_with(&format!("input is not UTF-8 text but {kind}: `")), "{problem}");
        assert!(problem.hint.unwrap().contains(hint), "{kind}");
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_spooled_copies_are_unpacked_too() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("rows");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let spec = InputSpec::new(InputLocation::File(pipe.clone()), Some(InputFormat::Jsonl));
    for spooled in [false, true] {
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            let bytes = gzip(b"{\"a\":1}\n{\"a\":2}\n");
            move || std::fs::OpenOptions::new().write(true).open(pipe).unwrap().write_all(&bytes).unwrap()
        });
        let data = if spooled {
            spool_input(&spec, folder.path(), ("copy-", ".spool")).unwrap()
        } else {
            open_dataset(&spec).unwrap()
        };
        let mut rows = Vec::new();
        let mut source = data.open().unwrap();
        while source.read(&mut rows, ROOM).unwrap() {}
        writer.join().unwrap();
        assert_eq!(rows.len(), 2);
    }
}
