//! The jobs of a run in its ledger: every change of a job is an event.

use jiff::Timestamp;
use rowmill_core::jobs::{JobRecord, JobTable};
use rowmill_core::ledger::LedgerEvent;
use rowmill_core::ports::{
    Durability, EventGroup, LedgerExtensionEvent, LedgerPosition, LedgerRequirements, OpenLedger, RunStore,
};
use rowmill_types::{Problem, ProblemCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The name of the event. Versions that do not know it must not continue the run: they would send its rows again.
const BATCH_JOB_EVENT: &str = "batch_job";

/// The name of the event that a run has switched from jobs to live calls.
const LANE_SWITCH_EVENT: &str = "lane_switch";

/// Whether an event is one of the batch lane.
pub(crate) fn is_known_event(kind: &str) -> bool {
    [BATCH_JOB_EVENT, LANE_SWITCH_EVENT].contains(&kind)
}

/// What a ledger says of the jobs of a run.
#[derive(Debug, Default)]
pub(crate) struct RecordedJobs {
    /// The jobs.
    pub(crate) jobs: JobTable,
    /// If the run has switched to live calls: the deadline that it did so for, in seconds since 1970.
    switched_for: Option<i64>,
    /// The end of the ledger.
    pub(crate) end: LedgerPosition,
}

impl RecordedJobs {
    /// Whether the run is to go on with live calls: until the deadline that it has switched for.
    pub(crate) fn has_switched(&self) -> bool {
        self.switched_for.is_some_and(|deadline| Timestamp::now().as_second() < deadline)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct LaneSwitch {
    /// The deadline, in seconds since 1970.
    deadline: i64,
}

/// Reads the jobs of a run.
pub(crate) fn read_jobs(store: &dyn RunStore) -> Result<RecordedJobs, Problem> {
    let mut recorded = RecordedJobs::default();
    let end = store.scan(&mut |scanned| {
        let LedgerEvent::Note(note) = scanned.event else { return Ok(()) };
        match note.kind.as_str() {
            BATCH_JOB_EVENT => recorded.jobs.put(parse(&note.data)?),
            LANE_SWITCH_EVENT => recorded.switched_for = Some(parse::<LaneSwitch>(&note.data)?.deadline),
            _ => {}
        }
        Ok(())
    })?;
    Ok(RecordedJobs { end, ..recorded })
}

fn parse<T: DeserializeOwned>(data: &str) -> Result<T, Problem> {
    serde_json::from_str(data).map_err(|error| {
        Problem::new(ProblemCode::LedgerUnusable, "a batch job in the ledger cannot be read").cause(error)
    })
}

/// The ledger between two passes.
#[derive(Debug)]
pub(super) struct JobJournal {
    ledger: OpenLedger,
}

impl JobJournal {
    /// Opens the ledger of a run that a pass has left; `None` if the pass has left nothing. The caller holds the lock on
    /// the run.
    pub(super) fn open(store: &dyn RunStore, durability: Durability) -> Result<Option<Self>, Problem> {
        let Some(header) = store.header()? else { return Ok(None) };
        let ledger = store.reopen(header, LedgerRequirements { rows: 1, durability })?;
        Ok(Some(Self { ledger }))
    }

    /// Records jobs as they are now.
    pub(super) async fn record(&self, jobs: &[JobRecord]) -> Result<(), Problem> {
        let notes: Vec<LedgerExtensionEvent> = jobs.iter().map(|job| event(BATCH_JOB_EVENT, job)).collect();
        self.append(&notes).await
    }

    /// Records that the run goes on with live calls, to meet a deadline in seconds since 1970.
    pub(super) async fn record_switch(&self, deadline: i64) -> Result<(), Problem> {
        self.append(&[event(LANE_SWITCH_EVENT, &LaneSwitch { deadline })]).await
    }

    async fn append(&self, notes: &[LedgerExtensionEvent]) -> Result<(), Problem> {
        let group = EventGroup { notes, ..EventGroup::default() };
        let appended = self.ledger.ledger.append(self.ledger.epoch, group).await?;
        appended.problem.map_or(Ok(()), Err)
    }
}

fn event(kind: &str, data: &impl Serialize) -> LedgerExtensionEvent {
    // Plain data is always valid JSON, so the fallback is never used.
    let data = serde_json::to_string(data).unwrap_or_default();
    LedgerExtensionEvent { kind: kind.to_owned(), required: true, data }
}
