//! Ledgers that break their contract.

use std::sync::{Arc, Mutex};

use rowmill_core::ports::{Appended, Group, Ledger, LedgerReader, Span};
use rowmill_testkit::conformance::check_ledger;
use rowmill_types::{Problem, ProblemCode};

use super::assert_told;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    HasNoReader,
    RefusesNothing,
    TellsWrongPlace,
    TellsTheStart,
    LeavesGaps,
    CutsLargeRecords,
    HasTrouble,
    ReadsSnapshot,
    ReadsForwardOnly,
    ReadsOnlyEarly,
    SharesReaders,
    InventsBytes,
    Panics,
}

#[derive(Debug, Clone)]
struct Broken {
    manner: Manner,
    bytes: Arc<Mutex<Vec<u8>>>,
    reads: Arc<Mutex<u64>>,
}

fn problem(message: &str) -> Problem {
    Problem::new(ProblemCode::LedgerUnusable, message)
}

impl Ledger for Broken {
    fn append(&mut self, group: Group<'_>) -> Result<Appended, Problem> {
        let nothing = group.taken.is_empty() && group.records.is_empty();
        if self.manner == Manner::RefusesNothing && nothing {
            return Err(problem("nothing to write"));
        }
        assert!(self.manner != Manner::Panics || group.records.len() < 40, "too many");
        let mut bytes = self.bytes.lock().unwrap();
        let at = bytes.len() as u64;
        for record in group.records {
            let line = &record.line;
            let most =
                if self.manner == Manner::CutsLargeRecords { line.len().min(65_536) } else { line.len() };
            bytes.extend_from_slice(&line[..most]);
            if self.manner == Manner::LeavesGaps {
                bytes.push(b'\n');
            }
        }
        for turn in group.turns {
            turn.write(&mut bytes);
        }
        let records = match self.manner {
            Manner::TellsWrongPlace => bytes.len() as u64,
            Manner::TellsTheStart => 0,
            _ => at,
        };
        let trouble = (self.manner == Manner::HasTrouble).then(|| problem("the disk is full"));
        Ok(Appended { records, trouble })
    }

    fn reader(&self) -> Result<Box<dyn LedgerReader>, Problem> {
        let is_late = !self.bytes.lock().unwrap().is_empty();
        match self.manner {
            Manner::HasNoReader => Err(problem("no second handle")),
            Manner::ReadsOnlyEarly if is_late => Err(problem("no third handle")),
            _ => {
                let mut bytes = self.bytes.clone();
                if self.manner == Manner::ReadsSnapshot {
                    bytes = Arc::new(Mutex::new(self.bytes.lock().unwrap().clone()));
                }
                let reads =
                    if self.manner == Manner::SharesReaders { self.reads.clone() } else { Arc::default() };
                Ok(Box::new(Reader { manner: self.manner, bytes, reads, late: is_late }))
            }
        }
    }
}

struct Reader {
    manner: Manner,
    bytes: Arc<Mutex<Vec<u8>>>,
    reads: Arc<Mutex<u64>>,
    late: bool,
}

impl LedgerReader for Reader {
    fn read(&mut self, span: Span) -> Result<Vec<u8>, Problem> {
        let mut last = self.reads.lock().unwrap();
        let back = match self.manner {
            Manner::ReadsForwardOnly => span.offset < *last,
            // The early reader and a later one get in each other's way at the same place.
            Manner::SharesReaders => self.late && span.offset == *last && span.offset > 0,
            _ => false,
        };
        *last = span.offset;
        if back {
            return Err(problem("cannot go back"));
        }
        let bytes = self.bytes.lock().unwrap();
        let start = usize::try_from(span.offset).unwrap();
        match bytes.get(start..start.saturating_add(span.length as usize)) {
            Some(found) => Ok(found.to_vec()),
            None if self.manner == Manner::InventsBytes => Ok(vec![0; span.length as usize]),
            None => Err(problem("no such bytes")),
        }
    }
}

#[test]
fn every_promise_of_a_ledger_is_checked() {
    for (manner, expected) in [
        (Manner::Right, ""),
        (Manner::HasNoReader, "a reader before anything was appended: it cannot be made: no second handle"),
        (Manner::RefusesNothing, "appending nothing: it could not be done: nothing to write"),
        (Manner::TellsWrongPlace, "appending one record: the record at "),
        (
            Manner::TellsTheStart,
            "appending several records: the records are said to be at 0, and those before end at",
        ),
        (Manner::LeavesGaps, "appending several records: the record at "),
        (Manner::CutsLargeRecords, "appending a large record: the record at "),
        (Manner::HasTrouble, "appending nothing: there is trouble: the disk is full"),
        (Manner::ReadsSnapshot, "appending one record: the record at 0 with "),
        (Manner::ReadsForwardOnly, "reading everything again, the last first: the record at "),
        (Manner::ReadsOnlyEarly, "a reader that is made later: it cannot be made: no third handle"),
        (Manner::SharesReaders, "two readers at the same time: the record at "),
        (Manner::InventsBytes, "reading what is not there: it gave bytes, and there are none"),
        (Manner::Panics, "appending many records: it panicked: too many"),
    ] {
        let mut ledger = Broken { manner, bytes: Arc::default(), reads: Arc::default() };
        assert_told(&manner, &check_ledger(&mut ledger), expected);
    }
}
