//! A run that is kept in memory, as long as its store exists.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::fingerprint::RunFingerprint;
use rowmill_core::ledger::{LedgerEvent, write_event_group};
use rowmill_core::limits::Spend;
use rowmill_core::ports::{
    AppendOutcome, EventGroup, InputIdentity, Ledger, LedgerPosition, LedgerRecordId, LedgerRequirements,
    OpenLedger, PreparedRun, RecordReader, RetainedRunParts, RunEpoch, RunLock, RunStore, ScannedEvent,
};
use rowmill_core::run_header::RunHeader;
use rowmill_types::{Money, Problem, ProblemCode};

/// Keeps a run in memory. Clones share the same store.
#[derive(Debug, Clone, Default)]
pub struct MemoryRunStore {
    kept: Arc<Mutex<StoredRun>>,
    lock: Arc<Mutex<bool>>,
}

#[derive(Debug, Default)]
struct StoredRun {
    header: Option<RunHeader>,
    events: EventLines,
    /// The last epoch that was assigned, including those of deleted runs.
    last_epoch: RunEpoch,
    prepared: Option<(RunHeader, EventLines)>,
}

/// The lines of a ledger, one after the other.
type EventLines = Arc<Mutex<Vec<u8>>>;

#[derive(Debug)]
struct MemoryLedger {
    kept: Arc<Mutex<StoredRun>>,
    events: EventLines,
    epoch: RunEpoch,
}

/// Releases a lock when dropped.
struct LockGuard(Arc<Mutex<bool>>);

impl Drop for LockGuard {
    fn drop(&mut self) {
        *locked(&self.0) = false;
    }
}

impl MemoryRunStore {
    fn open(&self, events: &EventLines, epoch: RunEpoch) -> OpenLedger {
        let ledger = MemoryLedger { kept: Arc::clone(&self.kept), events: Arc::clone(events), epoch };
        OpenLedger { ledger: Arc::new(ledger), epoch }
    }
}

impl StoredRun {
    fn next_epoch(&mut self) -> RunEpoch {
        self.last_epoch = self.last_epoch.next();
        self.last_epoch
    }
}

impl RunStore for MemoryRunStore {
    fn lock(&self) -> Result<RunLock, Problem> {
        if std::mem::replace(&mut *locked(&self.lock), true) {
            return Err(Problem::new(ProblemCode::OutputBusy, "another run has its ledger here"));
        }
        Ok(RunLock::new(LockGuard(Arc::clone(&self.lock))))
    }

    fn header(&self) -> Result<Option<RunHeader>, Problem> {
        Ok(locked(&self.kept).header.clone())
    }

    fn prepare(&self, header: RunHeader, _: LedgerRequirements) -> Result<PreparedRun, Problem> {
        let mut kept = locked(&self.kept);
        let epoch = kept.next_epoch();
        let (header, events) = (RunHeader { epoch, ..header }, EventLines::default());
        kept.prepared = Some((header.clone(), Arc::clone(&events)));
        Ok(PreparedRun { header, ledger: self.open(&events, epoch) })
    }

    fn begin(&self, prepared: PreparedRun) -> Result<OpenLedger, Problem> {
        let mut kept = locked(&self.kept);
        let ready = kept.prepared.take().ok_or_else(|| unusable("no run was prepared"))?;
        (kept.header, kept.events) = (Some(ready.0), ready.1);
        Ok(prepared.ledger)
    }

    fn discard_prepared(&self, _: PreparedRun) {
        locked(&self.kept).prepared = None;
    }

    fn reopen(&self, header: RunHeader, _: LedgerRequirements) -> Result<OpenLedger, Problem> {
        let mut kept = locked(&self.kept);
        let epoch = kept.next_epoch();
        kept.header = Some(RunHeader { epoch, ..header });
        Ok(self.open(&kept.events, epoch))
    }

    fn scan(
        &self,
        see: &mut dyn FnMut(ScannedEvent<'_>) -> Result<(), Problem>,
    ) -> Result<LedgerPosition, Problem> {
        let events = Arc::clone(&locked(&self.kept).events);
        let lines = locked(&events).clone();
        let mut place = 0;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let event = LedgerEvent::parse(line).map_err(|what| unusable(&what))?;
            see(ScannedEvent {
                id: LedgerRecordId::new(LedgerPosition::from_key(place), line.len()),
                event,
                line,
            })?;
            place += line.len() as u64;
        }
        Ok(LedgerPosition::from_key(place))
    }

    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem> {
        Ok(Box::new(MemoryReader(Arc::clone(&locked(&self.kept).events))))
    }

    fn finish(&self, header: RunHeader, retention: RetainedRunParts) -> Result<(), Problem> {
        let mut kept = locked(&self.kept);
        kept.header = Some(RunHeader { epoch: kept.last_epoch, ..header });
        if retention == RetainedRunParts::Header {
            kept.events = EventLines::default();
        }
        Ok(())
    }

    fn remove(&self) -> Result<(), Problem> {
        let mut kept = locked(&self.kept);
        (kept.header, kept.events) = (None, EventLines::default());
        Ok(())
    }
}

impl Ledger for MemoryLedger {
    fn append<'a>(
        &'a self,
        epoch: RunEpoch,
        group: EventGroup<'a>,
    ) -> BoxFuture<'a, Result<AppendOutcome, Problem>> {
        let last = locked(&self.kept).header.as_ref().map_or(epoch, |header| header.epoch);
        if epoch != self.epoch || last > epoch {
            let refused = Problem::new(ProblemCode::OutputBusy, "another process goes on with the run");
            return std::future::ready(Err(refused)).boxed();
        }
        let mut events = locked(&self.events);
        let ranges = write_event_group(&group, &mut events);
        let records = ranges
            .into_iter()
            .map(|range| LedgerRecordId::new(LedgerPosition::from_key(range.start as u64), range.len()))
            .collect();
        std::future::ready(Ok(AppendOutcome { records, problem: None })).boxed()
    }

    fn reader(&self) -> Result<Box<dyn RecordReader>, Problem> {
        Ok(Box::new(MemoryReader(Arc::clone(&self.events))))
    }

    fn position(&self) -> LedgerPosition {
        LedgerPosition::from_key(locked(&self.events).len() as u64)
    }
}

struct MemoryReader(EventLines);

impl RecordReader for MemoryReader {
    fn read(&mut self, id: LedgerRecordId) -> Result<Vec<u8>, Problem> {
        let events = locked(&self.0);
        let start = usize::try_from(id.position().key()).unwrap_or(usize::MAX);
        let found = events.get(start..start.saturating_add(id.event_length()));
        found.map(<[u8]>::to_vec).ok_or_else(|| unusable("there is no such record"))
    }
}

/// The header of a sample run; `at`, its start time, distinguishes it from others.
#[must_use]
pub fn run_header(at: &str) -> RunHeader {
    let fingerprint = RunFingerprint {
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
    let spent = Spend { cost: Money::from_pico(7), tokens: 3 };
    RunHeader { spent, ..RunHeader::new("run", at, &fingerprint, None) }
}

fn unusable(message: &str) -> Problem {
    Problem::new(ProblemCode::LedgerUnusable, message)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
