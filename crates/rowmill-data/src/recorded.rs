//! Rows that are recorded as they arrive, so that every read returns the same ones.
//!
//! A query may return different rows, or the same in a different order, each time it is run. Its rows are
//! written to a file on the first read, one line each: `{"number":7,"row":{…}}`, or
//! `{"number":8,"bad":{"kind":"InvalidJson","message":"…"}}` for a bad row.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rowmill_core::json_text::write_compact;
use rowmill_core::ports::{Dataset, DatasetColumn, InputIdentity, InputReadProgress, ReadLimit, RowSource};
use rowmill_types::settings::{OVERWRITE, WORK_DIR};
use rowmill_types::{BadRow, DiagnosticText, Problem, ProblemCode, Row, RowErrorKind, RowReadResult};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How many rows are read at once for recording.
const ROOM: ReadLimit = ReadLimit { rows: 1024, bytes: 1 << 20 };

/// Writes all rows of `rows` to `file`, which is at `path`, and returns a dataset that reads them from there.
///
/// # Errors
///
/// The rows cannot be read, or the file cannot be written.
pub fn record_rows_in_file(
    rows: Arc<dyn Dataset>,
    file: File,
    path: &Path,
) -> Result<Arc<dyn Dataset>, Problem> {
    let mut source = rows.open()?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let (mut batch, mut line) = (Vec::new(), String::new());
    loop {
        let more = source.read(&mut batch, ROOM)?;
        for row in batch.drain(..) {
            line.clear();
            write_line(&row, &mut line);
            out.write_all(line.as_bytes()).map_err(|error| cannot_record(path, &error))?;
        }
        if !more {
            break;
        }
    }
    let file = out.into_inner().map_err(|error| cannot_record(path, error.error()))?;
    // A resume relies on this file, so it must be at least as durable as the ledger.
    file.sync_data().map_err(|error| cannot_record(path, &error))?;
    Ok(open_recorded_rows(rows, file))
}

/// The rows that an earlier call of [`record_rows_in_file`] wrote to `file`. All other properties are taken from
/// `rows`, whose rows are not read.
#[must_use]
pub fn open_recorded_rows(rows: Arc<dyn Dataset>, file: File) -> Arc<dyn Dataset> {
    Arc::new(RecordedRows { rows, file: Arc::new(file) })
}

#[derive(Debug)]
struct RecordedRows {
    rows: Arc<dyn Dataset>,
    /// Kept open for readers, whatever happens to its name.
    file: Arc<File>,
}

impl Dataset for RecordedRows {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        let total = self.file.metadata().ok().map(|found| found.len());
        let place = FileCursor { file: Arc::clone(&self.file), at: 0 };
        let reader = BufReader::with_capacity(1 << 18, place);
        Ok(Box::new(RecordedSource { reader, read: 0, total, line: Vec::new() }))
    }

    fn is_rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.rows.identity()
    }

    fn columns(&self) -> Result<Option<Vec<DatasetColumn>>, Problem> {
        self.rows.columns()
    }

    fn sql_types(&self) -> Result<Option<Vec<String>>, Problem> {
        self.rows.sql_types()
    }

    fn default_id_field(&self) -> Option<&str> {
        self.rows.default_id_field()
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        self.rows.read_notice()
    }

    fn is_untyped(&self) -> bool {
        self.rows.is_untyped()
    }
}

/// A position in a file that others read, too.
struct FileCursor {
    file: Arc<File>,
    at: u64,
}

impl Read for FileCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

struct RecordedSource {
    reader: BufReader<FileCursor>,
    read: u64,
    total: Option<u64>,
    line: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct BadFields {
    kind: RowErrorKind,
    message: String,
}

#[derive(Deserialize)]
struct LineFields<'a> {
    number: u64,
    #[serde(borrow)]
    row: Option<&'a RawValue>,
    bad: Option<BadFields>,
}

impl RecordedSource {
    /// Reads the next line; `false` at the end.
    fn next_line(&mut self) -> Result<bool, Problem> {
        self.line.clear();
        let read = self.reader.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| unreadable(&error.to_string()))?;
        self.read += read as u64;
        Ok(read > 0)
    }
}

impl RowSource for RecordedSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < room.rows.max(1) && (rows == 0 || bytes < room.bytes) {
            if !self.next_line()? {
                return Ok(false);
            }
            batch.push(parsed(&self.line)?);
            rows += 1;
            bytes += self.line.len();
        }
        Ok(true)
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        let mut passed = 0;
        while passed < rows && self.next_line()? {
            passed += 1;
        }
        Ok(passed)
    }

    fn position(&self) -> InputReadProgress {
        InputReadProgress { read: self.read, total: self.total }
    }
}

fn write_line(row: &RowReadResult, line: &mut String) {
    match row {
        Ok(row) => {
            line.push_str(&format!("{{\"number\":{},\"row\":", row.number()));
            // The text of a row may span lines; here it must be a single one.
            if row.json_text().contains('\n') {
                write_compact(row.json_text(), line);
            } else {
                line.push_str(row.json_text());
            }
        }
        Err(BadRow { number, kind, message }) => {
            let bad = serde_json::to_string(&BadFields { kind: *kind, message: message.clone() });
            // Plain data always serializes, so the fallback is never used.
            line.push_str(&format!("{{\"number\":{number},\"bad\":{}", bad.unwrap_or_default()));
        }
    }
    line.push_str("}\n");
}

fn parsed(line: &[u8]) -> Result<RowReadResult, Problem> {
    let fields: LineFields<'_> =
        serde_json::from_slice(line).map_err(|error| unreadable(&error.to_string()))?;
    match (fields.row, fields.bad) {
        (Some(row), _) => Ok(Row::parse(fields.number, row.get().to_owned())),
        (None, Some(bad)) => Ok(Err(BadRow { number: fields.number, kind: bad.kind, message: bad.message })),
        (None, None) => Err(unreadable("a line has no row")),
    }
}

fn unreadable(what: &str) -> Problem {
    let message = "the query results of this run, recorded in its work folder, cannot be read";
    Problem::new(ProblemCode::LedgerUnusable, message)
        .cause(what)
        .hint(format!("start over with {OVERWRITE}, which runs the query again"))
}

fn cannot_record(path: &Path, error: &io::Error) -> Problem {
    let message = format!("cannot record the query results in `{}`", path.display());
    Problem::new(ProblemCode::WriteFailed, message)
        .cause(error)
        .hint(format!("free some space, or choose another folder with {WORK_DIR}; nothing was sent"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputFormat, InputLocation, InputSpec, open_dataset};

    fn texts(rows: &dyn Dataset) -> Vec<String> {
        let mut source = rows.open().unwrap();
        let mut batch = Vec::new();
        while source.read(&mut batch, ReadLimit { rows: 2, bytes: 1 << 20 }).unwrap() {}
        let shown = |row: &RowReadResult| match row {
            Ok(row) => format!("{} {}", row.number(), row.json_text()),
            Err(bad) => format!("{} {} {}", bad.number, bad.kind, bad.message),
        };
        batch.iter().map(shown).collect()
    }

    #[test]
    fn recorded_rows_are_those_that_were_read_whatever_becomes_of_the_input() {
        let home = tempfile::tempdir().unwrap();
        let input = home.path().join("in.jsonl");
        std::fs::write(&input, "{\"a\": 1.50}\n\nbroken\n{\"b\":\"x\\ny\"}\n").unwrap();
        let rows =
            open_dataset(&InputSpec::new(InputLocation::File(input.clone()), Some(InputFormat::Jsonl)))
                .unwrap();
        let expected = texts(&*rows);
        assert_eq!(expected.len(), 3);
        let path = home.path().join("rows");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        let recorded = record_rows_in_file(Arc::clone(&rows), file, &path).unwrap();
        std::fs::write(&input, "{\"other\":1}\n").unwrap();
        std::fs::rename(&path, home.path().join("elsewhere")).unwrap();
        assert_eq!(texts(&*recorded), expected);
        assert_eq!(texts(&*recorded), expected, "read again");
        let again = open_recorded_rows(rows, File::open(home.path().join("elsewhere")).unwrap());
        assert_eq!(texts(&*again), expected);
        let mut source = again.open().unwrap();
        assert_eq!((source.skip(2).unwrap(), source.skip(9).unwrap()), (2, 1));
    }

    #[test]
    fn a_row_that_is_spread_over_lines_is_recorded_on_one() {
        let mut line = String::new();
        write_line(&Row::parse(3, "{\n \"a\": 1.50,\n \"b\": \"x y\"\n}".into()), &mut line);
        assert_eq!(line, "{\"number\":3,\"row\":{\"a\":1.50,\"b\":\"x y\"}}\n");
    }

    #[test]
    fn recorded_rows_take_little_more_than_their_text() {
        let home = tempfile::tempdir().unwrap();
        let (input, path) = (home.path().join("in.jsonl"), home.path().join("rows"));
        let line = |n: usize| format!("{{ \"n\" : {n}, \"text\" : \"{}\" }}\n", "x".repeat(50));
        let text: String = (0..1_000).map(line).collect();
        std::fs::write(&input, &text).unwrap();
        let rows =
            open_dataset(&InputSpec::new(InputLocation::File(input), Some(InputFormat::Jsonl))).unwrap();
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        drop(record_rows_in_file(rows, file, &path).unwrap());
        let held = std::fs::metadata(&path).unwrap().len() as usize;
        assert!(held <= text.len() + 1_000 * 25, "{held} bytes for {} of text", text.len());
    }
}
