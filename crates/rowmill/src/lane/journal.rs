//! The jobs of a run in its ledger: every change of a job is an event.

use rowmill_core::jobs::{JobRecord, JobTable};
use rowmill_core::ledger::LedgerEvent;
use rowmill_core::ports::{
    CustomEvent, Durability, EventGroup, LedgerPosition, LedgerReserve, OpenLedger, RunStore,
};
use rowmill_types::{Problem, ProblemCode};

/// The name of the event. Versions that do not know it must not continue the run: they would send its rows again.
pub(crate) const BATCH_JOB_EVENT: &str = "batch_job";

/// Reads the jobs of a run, and the end of its ledger.
pub(crate) fn read_jobs(store: &dyn RunStore) -> Result<(JobTable, LedgerPosition), Problem> {
    let mut jobs = JobTable::default();
    let end = store.scan(&mut |scanned| {
        let LedgerEvent::Note(note) = scanned.event else { return Ok(()) };
        if note.kind == BATCH_JOB_EVENT {
            jobs.put(serde_json::from_str(&note.data).map_err(|error| {
                Problem::new(ProblemCode::LedgerUnusable, "a batch job in the ledger cannot be read")
                    .cause(error)
            })?);
        }
        Ok(())
    })?;
    Ok((jobs, end))
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
        let ledger = store.reopen(header, LedgerReserve { rows: 1, durability })?;
        Ok(Some(Self { ledger }))
    }

    /// Records jobs as they are now.
    pub(super) async fn record(&self, jobs: &[JobRecord]) -> Result<(), Problem> {
        let notes: Vec<CustomEvent> = jobs.iter().map(event_of).collect();
        let group = EventGroup { notes: &notes, ..EventGroup::default() };
        let appended = self.ledger.ledger.append(self.ledger.epoch, group).await?;
        appended.problem.map_or(Ok(()), Err)
    }
}

fn event_of(job: &JobRecord) -> CustomEvent {
    // Plain data is always valid JSON, so the fallback is never used.
    let data = serde_json::to_string(job).unwrap_or_default();
    CustomEvent { kind: BATCH_JOB_EVENT.to_owned(), required: true, data }
}
