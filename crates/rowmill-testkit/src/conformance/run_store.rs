//! The contract of run stores.

use std::sync::Arc;

use rowmill_core::ledger::LedgerEvent;
use rowmill_core::limits::Spend;
use rowmill_core::ports::{
    AnswerKey, EventGroup, LedgerExtensionEvent, LedgerPosition, LedgerRecordId, LedgerRequirements,
    NamedRow, OpenLedger, ParkedRow, RecordReader, RetainedRunParts, RowStepEvent, RunStore,
};
use rowmill_core::record::RowRecord;
use rowmill_core::run_header::RunHeader;
use rowmill_types::RowId;

use super::check_suite::{CheckResult, CheckSuite, ensure};
use super::records;
use crate::run_header;

/// The length of a large result.
const LARGE: usize = 1 << 20;

/// The capacity that a store should reserve in the suites.
pub(super) const ROOM: LedgerRequirements =
    LedgerRequirements { rows: 16, durability: rowmill_core::ports::Durability::Process };

/// Checks a store against the contract of [`RunStore`]; returns every violation, nothing if it satisfies the
/// contract. `open` returns the store of the same run each time, as another process would open it; the run
/// must not exist yet.
///
/// A prepared run does not exist before it is started. A record is found by its id, byte for byte, as soon as
/// `append` has returned, by readers that were created before or later; a scan returns every event in order.
/// A resumed run keeps its events and gets a higher epoch, and appending with a lower one is rejected. Only
/// one process can hold the lock. Finishing a run, starting it again and forgetting it are visible
/// afterwards.
///
/// The store should have room on its disk: a reserve that has to be used is reported as a violation.
///
/// ```
/// use std::sync::Arc;
///
/// use rowmill_testkit::MemoryRunStore;
/// use rowmill_testkit::conformance::check_run_store;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let store = MemoryRunStore::default();
/// assert_eq!(check_run_store(&|| Arc::new(store.clone())).await, Vec::<String>::new());
/// # });
/// ```
pub async fn check_run_store(open: &(dyn Fn() -> Arc<dyn RunStore> + Sync)) -> Vec<String> {
    let mut suite = CheckSuite::default();
    let store = open();
    suite.check("a run that is not there", || {
        ensure(header(&*open())?.is_none(), || "it has a header".into())?;
        has_events(&*open(), 0)
    });
    suite.check("preparing a run and not beginning it", || {
        let prepared = store.prepare(run_header("first"), ROOM).map_err(problem_text)?;
        ensure(header(&*open())?.is_none(), || "it counts before it is begun".into())?;
        store.discard_prepared(prepared);
        ensure(header(&*open())?.is_none(), || "it counts although it was cancelled".into())
    });
    let mut begun = None;
    suite.check("beginning a run", || {
        begun = Some(begin(&*store, "first")?);
        has_header(&*open(), "first")?;
        has_events(&*open(), 0)
    });
    let Some(first) = begun else { return suite.deviations() };
    let mut kept = Vec::new();
    check_appending(&mut suite, open, &first, &mut kept).await;
    suite.check("the lock", || {
        let lock = store.lock().map_err(problem_text)?;
        ensure(open().lock().is_err(), || "two hold it at once".into())?;
        drop(lock);
        open().lock().map(drop).map_err(|problem| format!("it is not given back: {}", problem.message))
    });
    let taken_up = check_taking_up(&mut suite, open, &first, &mut kept).await;
    if let Some(second) = taken_up {
        check_ends(&mut suite, open, &second);
    }
    suite.deviations()
}

/// A record that was appended, and the id by which it is found.
type AppendedRecord = (LedgerRecordId, Vec<u8>);

async fn check_appending(
    suite: &mut CheckSuite,
    open: &(dyn Fn() -> Arc<dyn RunStore> + Sync),
    first: &OpenLedger,
    kept: &mut Vec<AppendedRecord>,
) {
    let mut early = None;
    suite.check("a reader before anything was appended", || {
        early = Some(first.ledger.reader().map_err(problem_text)?);
        Ok(())
    });
    let Some(mut early) = early else { return };
    for (what, records) in groups() {
        let doing = format!("appending {what}");
        suite
            .wait_for(&doing, async {
                append(first, &records, kept).await?;
                finds(&mut *early, kept.iter().rev().take(records.len()))
            })
            .await;
    }
    suite.check("reading everything again, the last first", || finds(&mut *early, kept.iter().rev()));
    suite.check("a reader that is made later", || {
        finds(&mut *first.ledger.reader().map_err(problem_text)?, kept.iter())?;
        finds(&mut *open().reader().map_err(problem_text)?, kept.iter())
    });
    suite.check("two readers at the same time", || {
        let mut other = first.ledger.reader().map_err(problem_text)?;
        kept.iter().try_for_each(|one| {
            finds(&mut *early, [one].into_iter())?;
            finds(&mut *other, [one].into_iter())
        })
    });
    suite.check("reading what is not there", || {
        let id = LedgerRecordId::new(LedgerPosition::from_key(u64::MAX / 4), 10);
        ensure(early.read(id).is_err(), || "it gave bytes, and there are none".to_owned())
    });
    suite.check("scanning", || {
        let end = scans(&*open(), kept)?;
        ensure(end == first.ledger.position(), || "it ends elsewhere than the ledger".into())
    });
}

async fn check_taking_up(
    suite: &mut CheckSuite,
    open: &(dyn Fn() -> Arc<dyn RunStore> + Sync),
    first: &OpenLedger,
    kept: &mut Vec<AppendedRecord>,
) -> Option<OpenLedger> {
    let mut taken_up = None;
    suite.check("taking a run up", || {
        let end = first.ledger.position();
        let second = open().reopen(run_header("second"), ROOM).map_err(problem_text)?;
        ensure(second.epoch > first.epoch, || "it has no later epoch".into())?;
        has_header(&*open(), "second")?;
        ensure(second.ledger.position() == end, || "events are lost or were added".into())?;
        taken_up = Some(second);
        Ok(())
    });
    let second = taken_up?;
    suite
        .wait_for("appending with an epoch that is over", async {
            let taken = [named(1)];
            let late =
                first.ledger.append(first.epoch, EventGroup { taken: &taken, ..EventGroup::default() }).await;
            ensure(late.is_err(), || "it is not refused".into())
        })
        .await;
    suite
        .wait_for("appending after a run was taken up", async {
            append(&second, &[records::ok(900, "later")], kept).await?;
            finds(&mut *open().reader().map_err(problem_text)?, kept.iter())?;
            scans(&*open(), kept).map(drop)
        })
        .await;
    Some(second)
}

fn check_ends(suite: &mut CheckSuite, open: &(dyn Fn() -> Arc<dyn RunStore> + Sync), second: &OpenLedger) {
    suite.check("finishing a run with its ledger", || {
        let events = count_events(&*open())?;
        open().finish(run_header("third"), RetainedRunParts::Ledger).map_err(problem_text)?;
        has_header(&*open(), "third")?;
        has_events(&*open(), events)
    });
    suite.check("finishing a run without its ledger", || {
        open().finish(run_header("fourth"), RetainedRunParts::Header).map_err(problem_text)?;
        has_header(&*open(), "fourth")?;
        has_events(&*open(), 0)
    });
    suite.check("beginning anew where a run is", || {
        let again = begin(&*open(), "fifth")?;
        ensure(again.epoch > second.epoch, || "it has no later epoch".into())?;
        has_header(&*open(), "fifth")?;
        has_events(&*open(), 0)
    });
    suite.check("forgetting a run", || {
        open().remove().map_err(problem_text)?;
        ensure(header(&*open())?.is_none(), || "it has a header".into())?;
        has_events(&*open(), 0)
    });
}

fn named(number: u64) -> NamedRow {
    NamedRow { number, id: RowId::Text(format!("row {number}").into()) }
}

fn header(store: &dyn RunStore) -> Result<Option<RunHeader>, String> {
    store.header().map_err(problem_text)
}

/// Checks the header: a store sets the epoch and may set positions; everything else is as it was given.
fn has_header(store: &dyn RunStore, at: &str) -> CheckResult {
    let found = header(store)?.ok_or("it has no header")?;
    let expected = RunHeader {
        epoch: found.epoch,
        counted: found.counted,
        turns_from: found.turns_from,
        settled_to: found.settled_to,
        ..run_header(at)
    };
    ensure(found == expected, || format!("its header is another: {found:?}"))
}

fn count_events(store: &dyn RunStore) -> Result<usize, String> {
    let mut count = 0;
    let scanned = store.scan(&mut |_| {
        count += 1;
        Ok(())
    });
    scanned.map(|_| count).map_err(problem_text)
}

fn has_events(store: &dyn RunStore, expected: usize) -> CheckResult {
    let found = count_events(store)?;
    ensure(found == expected, || format!("it has {found} events instead of {expected}"))
}

fn begin(store: &dyn RunStore, at: &str) -> Result<OpenLedger, String> {
    let prepared = store.prepare(run_header(at), ROOM).map_err(problem_text)?;
    store.begin(prepared).map_err(problem_text)
}

fn groups() -> Vec<(&'static str, Vec<RowRecord>)> {
    let many = (10..60).map(|number| records::ok(number, "one of many")).collect();
    vec![
        ("nothing", Vec::new()),
        ("one record", vec![records::ok(1, "yes")]),
        ("rows that are taken", Vec::new()),
        ("several records", vec![records::ok(2, "größer"), records::failed(3), records::ok(4, "")]),
        ("a large record", vec![records::ok(5, &"x".repeat(LARGE)), records::ok(6, "after it")]),
        ("many records", many),
    ]
}

/// Appends the records with samples of all other data; the first group is empty.
async fn append(open: &OpenLedger, records: &[RowRecord], kept: &mut Vec<AppendedRecord>) -> CheckResult {
    let id = RowId::Text("seven".into());
    let turns =
        [RowStepEvent { row: 7, id: id.clone(), answer_key: AnswerKey(7), step_event: b"{}".to_vec() }];
    let parked = [ParkedRow { row: 8, id, waits_for: vec!["a job".into()], failed_before: None }];
    let notes =
        [LedgerExtensionEvent { kind: "something_new".into(), required: false, data: "{\"a\":1}".into() }];
    let taken = [7, 8, 9].map(named);
    let group = if kept.is_empty() && records.is_empty() {
        EventGroup::default()
    } else {
        EventGroup {
            taken: &taken,
            records,
            turns: &turns,
            parked: &parked,
            released: &taken[2..],
            spent_at_most: Some(Spend::default()),
            notes: &notes,
        }
    };
    let before = open.ledger.position();
    let appended = open.ledger.append(open.epoch, group).await.map_err(problem_text)?;
    ensure(appended.records.len() == records.len(), || "not every record has an id".into())?;
    for (id, RowRecord { line, .. }) in appended.records.iter().zip(records) {
        ensure(id.position() >= before, || "a record is reported to stand before earlier events".into())?;
        kept.push((*id, line.clone()));
    }
    let trouble = appended.problem.map(|problem| problem.to_string());
    ensure(trouble.is_none(), || format!("there is trouble: {}", trouble.unwrap_or_default()))
}

fn finds<'a>(
    reader: &mut dyn RecordReader,
    mut kept: impl Iterator<Item = &'a AppendedRecord>,
) -> CheckResult {
    kept.try_for_each(|(id, line)| {
        let found =
            reader.read(*id).map_err(|problem| format!("a record is not found: {}", problem.message))?;
        ensure(found == *line, || "a record is another one".to_owned())
    })
}

/// Scans, and compares the ended rows with the kept records; returns the position of the next event.
fn scans(store: &dyn RunStore, kept: &[AppendedRecord]) -> Result<LedgerPosition, String> {
    let (mut ended, mut kinds, mut last) = (Vec::new(), std::collections::BTreeSet::new(), None);
    let mut in_order = true;
    let scanned = store.scan(&mut |scanned| {
        in_order &= last.is_none_or(|last| last < scanned.id.position());
        last = Some(scanned.id.position());
        kinds.insert(kind(&scanned.event));
        if let LedgerEvent::Ended(_) = scanned.event {
            ended.push((scanned.id, scanned.line.to_vec()));
        }
        Ok(())
    });
    let end = scanned.map_err(problem_text)?;
    ensure(in_order, || "the positions of events do not go up".into())?;
    ensure(last.is_none_or(|last| last < end), || "it ends before its last event".into())?;
    ensure(ended == kept, || format!("it gave {} records instead of {}", ended.len(), kept.len()))?;
    ensure(kinds.len() == 7, || format!("of the kinds of events it gave only {kinds:?}"))?;
    Ok(end)
}

fn kind(event: &LedgerEvent) -> &'static str {
    match event {
        LedgerEvent::Taken(_) => "taken",
        LedgerEvent::Released(_) => "released",
        LedgerEvent::SpentAtMost(_) => "spent",
        LedgerEvent::Turn(..) => "turn",
        LedgerEvent::Parked(_) => "parked",
        LedgerEvent::Ended(_) => "ended",
        LedgerEvent::Note(_) => "note",
    }
}

pub(super) fn problem_text(problem: rowmill_types::Problem) -> String {
    format!("it could not be done: {}", problem.message)
}
