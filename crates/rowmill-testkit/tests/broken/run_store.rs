//! Run stores that violate their contract.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::ports::{
    AppendOutcome, EventGroup, Ledger, LedgerPosition, LedgerRecordId, LedgerRequirements, OpenLedger,
    PreparedRun, RecordReader, RetainedRunParts, RunEpoch, RunLock, RunStore, ScannedEvent,
};
use rowmill_core::run_header::RunHeader;
use rowmill_testkit::MemoryRunStore;
use rowmill_testkit::conformance::{check_killed_store, check_run_store};
use rowmill_types::{Problem, ProblemCode};

use super::assert_reported;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    CountsEarly,
    ForgetsCancel,
    ChangesHeader,
    HasNoReader,
    RefusesNothing,
    TellsWrongRecord,
    LosesIds,
    HasTrouble,
    ReadsSnapshot,
    ReadsForwardOnly,
    InventsBytes,
    ScansBackwards,
    ScansHalf,
    SharesLock,
    KeepsEpoch,
    TakesLateEvents,
    LosesEvents,
    KeepsLedger,
    KeepsHeader,
    Panics,
}

#[derive(Debug, Clone)]
struct Broken {
    manner: Manner,
    inner: MemoryRunStore,
}

fn problem(message: &str) -> Problem {
    Problem::new(ProblemCode::LedgerUnusable, message)
}

impl Broken {
    fn is(&self, manner: Manner) -> bool {
        self.manner == manner
    }

    fn wrap(&self, open: OpenLedger) -> OpenLedger {
        let epoch = if self.is(Manner::KeepsEpoch) { RunEpoch(1) } else { open.epoch };
        let ledger = BrokenLedger { manner: self.manner, inner: open, store: self.inner.clone() };
        OpenLedger { ledger: Arc::new(ledger), epoch }
    }
}

impl RunStore for Broken {
    fn lock(&self) -> Result<RunLock, Problem> {
        if self.is(Manner::SharesLock) { Ok(RunLock::new(())) } else { self.inner.lock() }
    }

    fn header(&self) -> Result<Option<RunHeader>, Problem> {
        let header = self.inner.header()?;
        Ok(match self.manner {
            Manner::ChangesHeader => header.map(|header| RunHeader { run: "other".into(), ..header }),
            _ => header,
        })
    }

    fn prepare(&self, header: RunHeader, room: LedgerRequirements) -> Result<PreparedRun, Problem> {
        if self.is(Manner::CountsEarly) {
            self.inner.finish(header.clone(), RetainedRunParts::Ledger)?;
        }
        self.inner.prepare(header, room)
    }

    fn begin(&self, prepared: PreparedRun) -> Result<OpenLedger, Problem> {
        self.inner.begin(prepared).map(|open| self.wrap(open))
    }

    fn discard_prepared(&self, prepared: PreparedRun) {
        if self.is(Manner::ForgetsCancel) {
            drop(self.inner.begin(prepared));
        } else {
            self.inner.discard_prepared(prepared);
        }
    }

    fn reopen(&self, header: RunHeader, room: LedgerRequirements) -> Result<OpenLedger, Problem> {
        if self.is(Manner::LosesEvents) {
            self.inner.finish(header.clone(), RetainedRunParts::Header)?;
        }
        self.inner.reopen(header, room).map(|open| self.wrap(open))
    }

    fn scan(
        &self,
        see: &mut dyn FnMut(ScannedEvent<'_>) -> Result<(), Problem>,
    ) -> Result<LedgerPosition, Problem> {
        let mut seen = Vec::new();
        let end = self.inner.scan(&mut |scanned| {
            seen.push((scanned.id, scanned.event, scanned.line.to_vec()));
            Ok(())
        })?;
        match self.manner {
            Manner::ScansBackwards => seen.reverse(),
            Manner::ScansHalf => seen.truncate(seen.len() / 2),
            _ => {}
        }
        for (id, event, line) in seen {
            see(ScannedEvent { id, event, line: &line })?;
        }
        Ok(end)
    }

    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem> {
        self.inner.reader()
    }

    fn finish(&self, header: RunHeader, retention: RetainedRunParts) -> Result<(), Problem> {
        let retention = if self.is(Manner::KeepsLedger) { RetainedRunParts::Ledger } else { retention };
        self.inner.finish(header, retention)
    }

    fn remove(&self) -> Result<(), Problem> {
        if self.is(Manner::KeepsHeader) { Ok(()) } else { self.inner.remove() }
    }
}

#[derive(Debug)]
struct BrokenLedger {
    manner: Manner,
    inner: OpenLedger,
    store: MemoryRunStore,
}

impl BrokenLedger {
    async fn write(&self, group: EventGroup<'_>) -> Result<AppendOutcome, Problem> {
        if self.manner == Manner::RefusesNothing && group.taken.is_empty() && group.records.is_empty() {
            return Err(problem("nothing to write"));
        }
        assert!(self.manner != Manner::Panics || group.records.len() < 40, "too many");
        let late = self.manner == Manner::TakesLateEvents
            && self.store.header()?.is_some_and(|header| header.epoch > self.inner.epoch);
        if late {
            return Ok(AppendOutcome { records: Vec::new(), problem: None });
        }
        let mut appended = self.inner.ledger.append(self.inner.epoch, group).await?;
        match self.manner {
            Manner::TellsWrongRecord => appended.records.reverse(),
            Manner::LosesIds => drop(appended.records.pop()),
            Manner::HasTrouble => appended.problem = Some(problem("the disk is full")),
            _ => {}
        }
        Ok(appended)
    }
}

impl Ledger for BrokenLedger {
    fn append<'a>(
        &'a self,
        _: RunEpoch,
        group: EventGroup<'a>,
    ) -> BoxFuture<'a, Result<AppendOutcome, Problem>> {
        self.write(group).boxed()
    }

    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem> {
        if self.manner == Manner::HasNoReader {
            return Err(problem("no second handle"));
        }
        let end = self.position();
        Ok(Box::new(BrokenReader {
            manner: self.manner,
            inner: self.inner.ledger.reader()?,
            end,
            last: Mutex::default(),
        }))
    }

    fn position(&self) -> LedgerPosition {
        self.inner.ledger.position()
    }
}

struct BrokenReader {
    manner: Manner,
    inner: Box<dyn RecordReader>,
    /// The end of the ledger when the reader was created.
    end: LedgerPosition,
    last: Mutex<LedgerPosition>,
}

impl RecordReader for BrokenReader {
    fn read(&mut self, id: LedgerRecordId) -> Result<Vec<u8>, Problem> {
        let last = std::mem::replace(&mut *self.last.lock().unwrap(), id.position());
        match self.manner {
            Manner::ReadsForwardOnly if id.position() < last => Err(problem("cannot go back")),
            Manner::ReadsSnapshot if id.position() >= self.end => Err(problem("it was not there")),
            Manner::InventsBytes => self.inner.read(id).or(Ok(vec![0; id.event_length()])),
            _ => self.inner.read(id),
        }
    }
}

#[tokio::test]
async fn every_promise_of_a_store_of_runs_is_checked() {
    for (manner, expected) in [
        (Manner::Right, ""),
        (Manner::CountsEarly, "preparing a run and not beginning it: it counts before it is begun"),
        (Manner::ForgetsCancel, "preparing a run and not beginning it: it counts although it was cancelled"),
        (Manner::ChangesHeader, "beginning a run: its header is another"),
        (
            Manner::HasNoReader,
            "a reader before anything was appended: it could not be done: no second handle",
        ),
        (Manner::RefusesNothing, "appending nothing: it could not be done: nothing to write"),
        (Manner::TellsWrongRecord, "appending several records: a record is another one"),
        (Manner::LosesIds, "appending one record: not every record has an id"),
        (Manner::HasTrouble, "appending nothing: there is trouble: the disk is full"),
        (Manner::ReadsSnapshot, "appending one record: a record is not found: it was not there"),
        (Manner::ReadsForwardOnly, "reading everything again, the last first: a record is not found"),
        (Manner::InventsBytes, "reading what is not there: it gave bytes, and there are none"),
        (Manner::ScansBackwards, "scanning: the positions of events do not go up"),
        (Manner::ScansHalf, "scanning: it gave "),
        (Manner::SharesLock, "the lock: two hold it at once"),
        (Manner::KeepsEpoch, "taking a run up: it has no later epoch"),
        (Manner::TakesLateEvents, "appending with an epoch that is over: it is not refused"),
        (Manner::LosesEvents, "taking a run up: events are lost or were added"),
        (Manner::KeepsLedger, "finishing a run without its ledger: it has "),
        (Manner::KeepsHeader, "forgetting a run: it has a header"),
        (Manner::Panics, "appending many records: it panicked: too many"),
    ] {
        let store = Broken { manner, inner: MemoryRunStore::default() };
        assert_reported(&manner, &check_run_store(&|| Arc::new(store.clone())).await, expected);
    }
}

#[test]
fn a_store_that_lost_what_it_confirmed_is_reported() {
    let reported = check_killed_store(&MemoryRunStore::default(), Some(1));
    assert_eq!(reported.len(), 1);
    assert!(reported[0].ends_with("rows are lost that were appended: [0, 1, 2, 3, 4, 5]"), "{reported:?}");
}
