//! The contract of run stores if the appending process is killed.

use std::collections::BTreeSet;
use std::io::Write as _;

use rowmill_core::ledger::LedgerEvent;
use rowmill_core::ports::{EventGroup, NamedRow, RunStore};
use rowmill_types::RowId;

use super::check_suite::{CheckSuite, ensure};
use super::records;
use super::run_store::{ROOM, problem_text};
use crate::run_header;

/// Records per group.
const EACH: u64 = 3;

/// Starts or resumes the run in a store, and appends groups until the process is killed. The number of every
/// group for which `append` has returned is printed on a line of its own.
///
/// # Errors
///
/// The store failed.
pub async fn append_until_killed(store: &dyn RunStore) -> Result<(), String> {
    let _lock = store.lock().map_err(problem_text)?;
    let ended = ended_rows(store)?;
    let open = match store.header().map_err(problem_text)? {
        Some(header) => store.reopen(header, ROOM).map_err(problem_text)?,
        None => {
            let prepared = store.prepare(run_header("killed"), ROOM).map_err(problem_text)?;
            store.begin(prepared).map_err(problem_text)?
        }
    };
    // A kill may have left the last group incomplete.
    for group in ended.len() as u64 / EACH.. {
        let rows: Vec<u64> = (group * EACH..(group + 1) * EACH).filter(|row| !ended.contains(row)).collect();
        let records: Vec<_> = rows.iter().map(|row| records::ok(*row, &"text ".repeat(200))).collect();
        let taken: Vec<_> =
            rows.iter().map(|row| NamedRow { number: *row, id: RowId::Number(*row) }).collect();
        let group_of = EventGroup { taken: &taken, records: &records, ..EventGroup::default() };
        open.ledger.append(open.epoch, group_of).await.map_err(problem_text)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{group}").and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Checks a store after the process of [`append_until_killed`] was killed, which had printed the numbers of
/// all groups up to `confirmed` and nothing after it; returns every violation of the contract.
#[must_use]
pub fn check_killed_store(store: &dyn RunStore, confirmed: Option<u64>) -> Vec<String> {
    let mut suite = CheckSuite::default();
    suite.check("a run whose process was killed", || {
        drop(store.lock().map_err(|problem| format!("its lock is still held: {}", problem.message))?);
        let ended = ended_rows(store)?;
        let rows = confirmed.map_or(0, |last| (last + 1) * EACH);
        let lost: Vec<u64> = (0..rows).filter(|row| !ended.contains(row)).collect();
        ensure(lost.is_empty(), || format!("rows are lost that were appended: {lost:?}"))?;
        // One more group may have been in progress.
        let most = rows + EACH;
        ensure(ended.iter().all(|row| *row < most), || "it has rows that nobody appended".into())
    });
    suite.deviations()
}

/// The rows that have ended according to the run.
fn ended_rows(store: &dyn RunStore) -> Result<BTreeSet<u64>, String> {
    let mut rows = BTreeSet::new();
    let mut twice = None;
    let scanned = store.scan(&mut |scanned| {
        if let LedgerEvent::Ended(head) = scanned.event
            && !rows.insert(head.number)
        {
            twice = Some(head.number);
        }
        Ok(())
    });
    scanned.map_err(problem_text)?;
    match twice {
        Some(row) => Err(format!("row {row} has two records")),
        None => Ok(rows),
    }
}
