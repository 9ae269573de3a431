//! Reading a ledger back, one line at a time.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;

use rowmill_core::ports::Span;
use rowmill_types::{Problem, ProblemCode};

use super::format::{Line, parse};
use super::ledger::cannot_read;

/// How a scan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned {
    /// How many bytes of whole lines there are; what follows was cut by a crash.
    pub length: u64,
    /// Whether something was cut.
    pub torn: bool,
}

/// Gives every whole line of the ledger to `saw`, in order, with its bytes and place.
/// A ledger that is not there is an empty one.
///
/// # Errors
///
/// The file cannot be read, a line before the last is broken, or `saw` fails.
pub fn scan(
    path: &Path,
    mut saw: impl FnMut(Line, Span, &[u8]) -> Result<(), Problem>,
) -> Result<Scanned, Problem> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Scanned { length: 0, torn: false }),
        opened => opened.map_err(|error| cannot_read(path, &error))?,
    };
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut bytes = Vec::new();
    let (mut length, mut number) = (0u64, 0u64);
    loop {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes).map_err(|error| cannot_read(path, &error))?;
        if read == 0 {
            return Ok(Scanned { length, torn: false });
        }
        number += 1;
        if bytes.last() != Some(&b'\n') {
            return Ok(Scanned { length, torn: true });
        }
        match parse(&bytes) {
            Ok(line) => {
                let span = Span { offset: length, length: u32::try_from(read).unwrap_or(u32::MAX) };
                saw(line, span, &bytes)?;
            }
            Err(what) => {
                return Err(Problem::new(
                    ProblemCode::LedgerUnusable,
                    format!("line {number} of the ledger `{}` cannot be read: {what}", path.display()),
                )
                .hint("move the work folder away to resume from the output alone"));
            }
        }
        length += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::PathBuf;

    use rowmill_core::fingerprint::Fingerprint;
    use rowmill_core::limits::Spend;
    use rowmill_core::ports::{AskedKey, Group, InputIdentity, Ledger, TurnLine};
    use rowmill_core::record::Record;
    use rowmill_types::{Money, RowId};

    use super::*;
    use crate::file::{FileLedger, Header, WorkFolder};

    fn header() -> Header {
        let fingerprint = Fingerprint {
            input: InputIdentity { path: "-".into(), size: None, probe: None },
            id_field: None,
            model: "passthrough".into(),
            prompt: String::new(),
            instruction: None,
            schema: None,
            agents: None,
            query: None,
            delimiter: None,
            columns: None,
            files: None,
        };
        Header::new("r", "now", &fingerprint, None)
    }

    fn ended() -> Record {
        let line = br#"{"event":"row_ended","envelope":{"id":4,"row_number":4,"ok":true},"telemetry":{}}"#;
        Record::parse([line.as_slice(), b"\n"].concat()).unwrap()
    }

    fn ledger(folder: &WorkFolder) -> (FileLedger, PathBuf) {
        folder.write_header(&header()).unwrap();
        let mut ledger = FileLedger::open(folder, &header(), 0, 1024).unwrap();
        let cover = Some(Spend { cost: Money::from_dollars(0.25).unwrap(), tokens: 7 });
        let id = RowId::Text("five".into());
        let turns = [TurnLine { row: 5, id, asked: AskedKey(7), happening: b"{}".to_vec() }];
        let group = Group { taken: &[4, 5], records: &[ended()], turns: &turns, released: &[9], cover };
        ledger.append(group).unwrap();
        (ledger, folder.ledger(&header()))
    }

    fn described(path: &Path) -> (Vec<String>, Scanned) {
        let mut seen = Vec::new();
        let scanned = scan(path, |line, _, _| {
            seen.push(match line {
                Line::Taken(rows) => format!("taken {rows:?}"),
                Line::Released(rows) => format!("released {rows:?}"),
                Line::Cover(spent) => format!("at most {} and {} tokens", spent.cost, spent.tokens),
                Line::Turn(row, id) => format!("turn of {row}, {id}"),
                Line::Ended(head) => format!("ended {}", head.id),
            });
            Ok(())
        });
        (seen, scanned.unwrap())
    }

    #[test]
    fn what_was_appended_is_read_back_in_order_and_a_torn_line_is_left_out() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        let (_, path) = ledger(&folder);
        let whole = path.metadata().unwrap().len();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"event\":\"row_").unwrap();

        let (seen, scanned) = described(&path);

        assert_eq!(
            seen,
            ["ended 4", "turn of 5, five", "released [9]", "at most $0.25 and 7 tokens", "taken [4, 5]"]
        );
        assert_eq!(scanned, Scanned { length: whole, torn: true });
        let mut again = FileLedger::open(&folder, &header(), scanned.length, 0).unwrap();
        again.append(Group { records: &[ended()], ..Group::default() }).unwrap();
        assert_eq!(described(&path).0.len(), 6);
    }

    #[test]
    fn a_record_is_read_back_by_its_span() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        let (ledger, path) = ledger(&folder);
        let mut span = None;
        scan(&path, |line, at, _| {
            if matches!(line, Line::Ended(_)) {
                span = Some(at);
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(ledger.reader().unwrap().read(span.unwrap()).unwrap(), ended().line);
    }

    #[test]
    fn a_broken_line_in_the_middle_is_refused_with_its_number() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        let (_, path) = ledger(&folder);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"nonsense\n{}\n").unwrap();
        let problem = scan(&path, |_, _, _| Ok(())).unwrap_err();
        assert!(problem.message.contains("line 6 of the ledger"), "{}", problem.message);
    }

    #[test]
    fn clearing_removes_only_what_rowmill_put_there() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        drop(ledger(&folder));
        let own = home.path().join("notes.txt");
        std::fs::write(&own, "mine").unwrap();
        folder.clear().unwrap();
        let left: Vec<_> =
            std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [own]);
    }

    #[test]
    fn a_header_of_another_format_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        folder.write_header(&Header { format: 2, ..header() }).unwrap();
        let problem = folder.header().unwrap_err();
        assert!(problem.message.ends_with("has format 2, this version reads 1"), "{}", problem.message);
    }
}
