//! Whole runs with a store in memory, and rows that wait for something outside of the process.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use rowmill_core::ledger::LedgerEvent;
use rowmill_core::ports::{LedgerRequirements, Model, RunStore};
use rowmill_core::resume::{ResumeCounts, ResumeIndex};
use rowmill_engine::execute_run;
use rowmill_testkit::{MemoryRunStore, run_header};
use rowmill_types::{CallError, CallFailure, Completion, Request};

use crate::support::{Bench, Watched};

/// Parks every call whose prompt has no answer yet.
#[derive(Debug, Default)]
struct ParkingModel {
    answers: BTreeSet<String>,
    keys: Mutex<Vec<String>>,
}

impl Model for ParkingModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(async move {
            self.keys.lock().unwrap().push(request.key.clone());
            let asked = &request.messages[0].text;
            if self.answers.contains(asked) {
                return Ok(Completion::from_text("answered"));
            }
            Err(CallError::new(CallFailure::Parked, format!("job for {asked}")))
        })
    }
}

/// The resume state of the run in a store.
fn resume_of(store: &MemoryRunStore) -> ResumeIndex {
    let mut resume = ResumeIndex::default();
    let scanned = store.scan(&mut |scanned| {
        match scanned.event {
            LedgerEvent::Taken(rows) => resume.add_taken_rows(rows),
            LedgerEvent::Released(rows) => resume.add_released_rows(&rows),
            LedgerEvent::Parked(row) => resume.add_parked_row(&row),
            LedgerEvent::Ended(head) => resume.add_ended_row(&head, scanned.id),
            _ => {}
        }
        Ok(())
    });
    scanned.unwrap();
    resume
}

/// Makes one pass over five rows and returns what it left.
async fn pass(store: &MemoryRunStore, answers: &[&str]) -> (Watched, u64, Vec<String>) {
    let answers = answers.iter().map(|text| (*text).to_owned()).collect();
    let model = Arc::new(ParkingModel { answers, keys: Mutex::default() });
    let mut bench = Bench::new(5, model.clone());
    bench.plan.resume = resume_of(store);
    bench.plan.ledger = match store.header().unwrap() {
        Some(header) => store.reopen(header, LedgerRequirements::default()).unwrap(),
        None => {
            store.begin(store.prepare(run_header("now"), LedgerRequirements::default()).unwrap()).unwrap()
        }
    };
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert!(end.stopped.is_none(), "{:?}", end.stopped);
    let mut keys = model.keys.lock().unwrap().clone();
    keys.sort();
    (watched, end.parked_rows, keys)
}

#[tokio::test(start_paused = true)]
async fn parked_rows_leave_memory_and_go_on_in_a_later_pass_without_a_disk() {
    let store = MemoryRunStore::default();
    let (first, parked, keys) = pass(&store, &["2"]).await;
    assert_eq!((first.numbers(), parked), (vec![2], 4), "rows behind a parked one are published");
    let counts = ResumeCounts { done: 1, parked: 4, ..ResumeCounts::default() };
    assert_eq!(resume_of(&store).counts(), counts, "nothing is in flight or unknown");
    let mut waits_for = Vec::new();
    let scanned = store.scan(&mut |scanned| {
        if let LedgerEvent::Parked(row) = scanned.event {
            waits_for.extend(row.waits_for);
        }
        Ok(())
    });
    scanned.unwrap();
    waits_for.sort();
    assert_eq!(waits_for, ["job for 1", "job for 3", "job for 4", "job for 5"]);

    let (second, parked, again) = pass(&store, &["1", "2", "3", "4"]).await;
    assert_eq!((second.numbers(), parked), (vec![1, 2, 3, 4], 1), "the kept record is published again");
    assert_eq!(
        keys.iter().filter(|key| !key.contains("-2-")).collect::<Vec<_>>(),
        again.iter().collect::<Vec<_>>()
    );
    assert_eq!(resume_of(&store).counts(), ResumeCounts { done: 4, parked: 1, ..ResumeCounts::default() });

    let (third, parked, _) = pass(&store, &["5"]).await;
    assert_eq!((third.numbers(), parked), (vec![1, 2, 3, 4, 5], 0));
    assert_eq!(third.outcomes(), ["ok"; 5]);
    assert_eq!(resume_of(&store).counts(), ResumeCounts { done: 5, ..ResumeCounts::default() });
}

#[tokio::test(start_paused = true)]
async fn a_run_that_lost_its_store_to_another_process_stops_and_keeps_what_it_has() {
    let store = MemoryRunStore::default();
    let model = Arc::new(ParkingModel { answers: BTreeSet::from(["1".into()]), keys: Mutex::default() });
    let mut bench = Bench::new(1, model);
    let open = store.begin(store.prepare(run_header("now"), LedgerRequirements::default()).unwrap()).unwrap();
    store.reopen(run_header("later"), LedgerRequirements::default()).unwrap();
    bench.plan.ledger = open;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert!(matches!(&end.stopped, Some(rowmill_engine::StopCause::Problem(problem))
        if problem.message == "another process goes on with the run"));
    assert!(watched.numbers().is_empty(), "nobody learns of what is not on record");
}
