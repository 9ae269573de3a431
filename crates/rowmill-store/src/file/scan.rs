//! Reads a ledger line by line.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;

use rowmill_core::ledger::LedgerEvent;
use rowmill_core::ports::{LedgerPosition, RecordId, ScannedEvent};
use rowmill_types::{Problem, ProblemCode};

use super::ledger::cannot_read;

/// The result of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scanned {
    /// The number of bytes of whole lines; the rest was truncated by a crash.
    pub(super) length: u64,
    /// Whether there was a truncated line.
    pub(super) torn: bool,
}

/// Passes every whole line of the ledger to `see`, in order. A missing ledger counts as empty.
pub(super) fn scan(
    path: &Path,
    see: &mut dyn FnMut(ScannedEvent<'_>) -> Result<(), Problem>,
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
        match LedgerEvent::parse(&bytes) {
            Ok(event) => {
                let id = RecordId::new(LedgerPosition::from_key(length), read);
                see(ScannedEvent { id, event, line: &bytes })?;
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

    use futures_util::FutureExt;
    use rowmill_core::limits::Spend;
    use rowmill_core::ports::{
        AskedKey, Durability, Group, LedgerRoom, NamedRow, OpenLedger, RunStore, TurnLine,
    };
    use rowmill_core::record::Record;
    use rowmill_testkit::run_header;
    use rowmill_types::{Money, RowId};

    use super::*;
    use crate::file::header::FileHeader;
    use crate::file::{FileRunStore, WorkFolder};

    fn ended() -> Record {
        let line = br#"{"event":"row_ended","envelope":{"id":4,"row_number":4,"ok":true},"telemetry":{}}"#;
        Record::parse([line.as_slice(), b"\n"].concat()).unwrap()
    }

    fn append(open: &OpenLedger, group: Group<'_>) {
        open.ledger.append(open.epoch, group).now_or_never().unwrap().unwrap();
    }

    fn begun(folder: &WorkFolder) -> PathBuf {
        let store = FileRunStore::new(folder.clone());
        let prepared = store.prepare(run_header("now"), LedgerRoom::default()).unwrap();
        let open = store.begin(prepared).unwrap();
        let cover = Some(Spend { cost: Money::from_dollars(0.25).unwrap(), tokens: 7 });
        let id = RowId::Text("five".into());
        let turns = [TurnLine { row: 5, id, asked: AskedKey(7), happening: b"{}".to_vec() }];
        let records = [ended()];
        let taken = [4, 5].map(|number| NamedRow { number, id: RowId::Number(number) });
        let group = Group { taken: &taken, records: &records, turns: &turns, cover, ..Group::default() };
        append(&open, group);
        folder.ledger_path(1)
    }

    fn count(path: &Path) -> (usize, Scanned) {
        let mut seen = 0;
        let scanned = scan(path, &mut |_| {
            seen += 1;
            Ok(())
        });
        (seen, scanned.unwrap())
    }

    #[test]
    fn a_torn_line_is_left_out_and_removed_when_the_run_goes_on() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        let path = begun(&folder);
        let whole = path.metadata().unwrap().len();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"event\":\"row_").unwrap();
        assert_eq!(count(&path), (4, Scanned { length: whole, torn: true }));
        let open = FileRunStore::new(folder).take_up(run_header("now"), LedgerRoom::default()).unwrap();
        append(&open, Group { records: &[ended()], ..Group::default() });
        assert_eq!(count(&path).0, 5);
    }

    #[tokio::test]
    async fn a_durable_ledger_has_what_it_says_when_it_says_so() {
        let home = tempfile::tempdir().unwrap();
        let store = FileRunStore::new(WorkFolder::open(home.path()).unwrap());
        let room = LedgerRoom { durability: Durability::Power, ..LedgerRoom::default() };
        let open = store.begin(store.prepare(run_header("now"), room).unwrap()).unwrap();
        let records = [ended()];
        let group = Group { records: &records, ..Group::default() };
        let appended = open.ledger.append(open.epoch, group).await.unwrap();
        assert_eq!(store.reader().unwrap().read(appended.records[0]).unwrap(), ended().line);
    }

    #[test]
    fn a_broken_line_in_the_middle_is_refused_with_its_number() {
        let home = tempfile::tempdir().unwrap();
        let path = begun(&WorkFolder::open(home.path()).unwrap());
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"nonsense\n{}\n").unwrap();
        let problem = scan(&path, &mut |_| Ok(())).unwrap_err();
        assert!(problem.message.contains("line 5 of the ledger"), "{}", problem.message);
    }

    #[test]
    fn forgetting_a_run_removes_only_what_rowmill_put_there() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        begun(&folder);
        let own = home.path().join("notes.txt");
        std::fs::write(&own, "mine").unwrap();
        FileRunStore::new(folder).forget().unwrap();
        let left: Vec<_> =
            std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [own]);
    }

    #[test]
    fn a_header_of_another_format_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        folder.write_header(&FileHeader { format: 2, ..FileHeader::new(1, run_header("now")) }).unwrap();
        let problem = FileRunStore::new(folder).header().unwrap_err();
        assert!(problem.message.ends_with("has format 2, but this version reads 1"), "{}", problem.message);
    }
}
