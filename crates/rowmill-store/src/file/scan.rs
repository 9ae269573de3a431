//! Reads a ledger line by line.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;

use rowmill_core::ledger::LedgerEvent;
use rowmill_core::ports::{LedgerPosition, LedgerRecordId, ScannedEvent};
use rowmill_types::{Problem, ProblemCode};

use super::ledger::read_problem;

/// The result of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScanOutcome {
    /// The number of bytes of whole lines; the rest was truncated by a crash.
    pub(super) length: u64,
    /// Whether there was a truncated line.
    pub(super) torn: bool,
}

/// Passes every whole line of the ledger to `see`, in order. A missing ledger counts as empty.
pub(super) fn scan_ledger_file(
    path: &Path,
    see: &mut dyn FnMut(ScannedEvent<'_>) -> Result<(), Problem>,
) -> Result<ScanOutcome, Problem> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(ScanOutcome { length: 0, torn: false });
        }
        opened => opened.map_err(|error| read_problem(path, &error))?,
    };
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut bytes = Vec::new();
    let (mut length, mut number) = (0u64, 0u64);
    loop {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes).map_err(|error| read_problem(path, &error))?;
        if read == 0 {
            return Ok(ScanOutcome { length, torn: false });
        }
        number += 1;
        if bytes.last() != Some(&b'\n') {
            return Ok(ScanOutcome { length, torn: true });
        }
        match LedgerEvent::parse(&bytes) {
            Ok(event) => {
                let id = LedgerRecordId::new(LedgerPosition::from_key(length), read);
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
        AnswerKey, Durability, EventGroup, LedgerRequirements, NamedRow, OpenLedger, RowStepEvent, RunStore,
    };
    use rowmill_core::record::RowRecord;
    use rowmill_testkit::run_header;
    use rowmill_types::{Money, RowId};

    use super::*;
    use crate::file::header::FileHeader;
    use crate::file::{FileRunStore, WorkFolder};

    fn ended() -> RowRecord {
        let line = br#"{"event":"row_ended","envelope":{"id":4,"row_number":4,"ok":true},"telemetry":{}}"#;
        RowRecord::parse([line.as_slice(), b"\n"].concat()).unwrap()
    }

    fn append(open: &OpenLedger, group: EventGroup<'_>) {
        open.ledger.append(open.epoch, group).now_or_never().unwrap().unwrap();
    }

    fn begun(folder: &WorkFolder) -> PathBuf {
        let store = FileRunStore::new(folder.clone());
        let prepared = store.prepare(run_header("now"), LedgerRequirements::default()).unwrap();
        let open = store.begin(prepared).unwrap();
        let cover = Some(Spend { cost: Money::from_dollars(0.25).unwrap(), tokens: 7 });
        let id = RowId::Text("five".into());
        let turns = [RowStepEvent { row: 5, id, answer_key: AnswerKey(7), step_event: b"{}".to_vec() }];
        let records = [ended()];
        let taken = [4, 5].map(|number| NamedRow { number, id: RowId::Number(number) });
        let group = EventGroup {
            taken: &taken,
            records: &records,
            turns: &turns,
            spent_at_most: cover,
            ..EventGroup::default()
        };
        append(&open, group);
        folder.ledger_path(1)
    }

    fn count(path: &Path) -> (usize, ScanOutcome) {
        let mut seen = 0;
        let scanned = scan_ledger_file(path, &mut |_| {
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
        assert_eq!(count(&path), (4, ScanOutcome { length: whole, torn: true }));
        let open =
            FileRunStore::new(folder).reopen(run_header("now"), LedgerRequirements::default()).unwrap();
        append(&open, EventGroup { records: &[ended()], ..EventGroup::default() });
        assert_eq!(count(&path).0, 5);
    }

    #[tokio::test]
    async fn a_durable_ledger_has_what_it_says_when_it_says_so() {
        let home = tempfile::tempdir().unwrap();
        let store = FileRunStore::new(WorkFolder::open(home.path()).unwrap());
        let room = LedgerRequirements { durability: Durability::Power, ..LedgerRequirements::default() };
        let open = store.begin(store.prepare(run_header("now"), room).unwrap()).unwrap();
        let records = [ended()];
        let group = EventGroup { records: &records, ..EventGroup::default() };
        let appended = open.ledger.append(open.epoch, group).await.unwrap();
        assert_eq!(store.reader().unwrap().read(appended.records[0]).unwrap(), ended().line);
    }

    #[test]
    fn a_broken_line_in_the_middle_is_refused_with_its_number() {
        let home = tempfile::tempdir().unwrap();
        let path = begun(&WorkFolder::open(home.path()).unwrap());
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"nonsense\n{}\n").unwrap();
        let problem = scan_ledger_file(&path, &mut |_| Ok(())).unwrap_err();
        assert!(problem.message.contains("line 5 of the ledger"), "{}", problem.message);
    }

    #[test]
    fn forgetting_a_run_removes_only_what_rowmill_put_there() {
        let home = tempfile::tempdir().unwrap();
        let folder = WorkFolder::open(home.path()).unwrap();
        begun(&folder);
        let own = home.path().join("notes.txt");
        std::fs::write(&own, "mine").unwrap();
        FileRunStore::new(folder).remove().unwrap();
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
