//! Reading a ledger back, one line at a time.

use std::fs::File;
use std::io::{BufRead, BufReader};
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
///
/// # Errors
///
/// The file cannot be read, a line before the last is broken, or `saw` fails.
pub fn scan(
    path: &Path,
    mut saw: impl FnMut(Line, Span, &[u8]) -> Result<(), Problem>,
) -> Result<Scanned, Problem> {
    let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
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

    use rowmill_core::fingerprint::Fingerprint;
    use rowmill_core::ports::{Group, InputIdentity, Ledger};
    use rowmill_core::record::Record;

    use super::*;
    use crate::file::{FileLedger, WorkFolder, started_line};

    fn fingerprint() -> Fingerprint {
        Fingerprint {
            input: InputIdentity { path: "-".into(), size: None, probe: None },
            id_field: None,
            model: "passthrough".into(),
            prompt: String::new(),
            instruction: None,
            schema: None,
        }
    }

    fn ended() -> Record {
        let line = b"{\"event\":\"row_ended\",\"envelope\":{\"id\":4,\"row_number\":4,\"ok\":true},\"telemetry\":{}}\n";
        Record::parse(line.to_vec()).unwrap()
    }

    fn ledger(folder: &WorkFolder) -> FileLedger {
        let first = started_line("r", "now", &fingerprint(), None);
        let mut ledger = FileLedger::create(folder, &first, 1024).unwrap();
        ledger.append(Group { taken: &[4, 5], records: &[ended()] }).unwrap();
        ledger
    }

    fn described(folder: &WorkFolder) -> (Vec<String>, Scanned) {
        let mut seen = Vec::new();
        let scanned = scan(&folder.ledger(), |line, _, _| {
            seen.push(match line {
                Line::Started(started) => format!("started {}", started.run),
                Line::Taken(rows) => format!("taken {rows:?}"),
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
        drop(ledger(&folder));
        let whole = folder.ledger().metadata().unwrap().len();
        OpenOptions::new()
            .append(true)
            .open(folder.ledger())
            .unwrap()
            .write_all(b"{\"event\":\"row_")
            .unwrap();

        let (seen, scanned) = described(&folder);

        assert_eq!(seen, ["started r", "taken [4, 5]", "ended 4"]);
        assert_eq!(scanned, Scanned { length: whole, torn: true });
        let mut again = FileLedger::reopen(&folder, scanned.length, 0).unwrap();
        again.append(Group { records: &[ended()], ..Group::default() }).unwrap();
        assert_eq!(described(&folder).0.len(), 4);
    }

    #[test]
    fn a_record_is_read_back_by_its_span() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        let ledger = ledger(&folder);
        let mut span = None;
        scan(&folder.ledger(), |line, at, _| {
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
        drop(ledger(&folder));
        let mut file = OpenOptions::new().append(true).open(folder.ledger()).unwrap();
        file.write_all(b"nonsense\n{}\n").unwrap();
        let problem = scan(&folder.ledger(), |_, _, _| Ok(())).unwrap_err();
        assert!(problem.message.contains("line 4 of the ledger"), "{}", problem.message);
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
}
