//! Commits: everything that happened goes to the ledger in one write, and is reported only after that.

use rowmill_core::ports::{EventGroup, LedgerRecordId, RunEvent};
use rowmill_core::record::{RowRecord, RowReport, total_cost, total_usage};

use crate::RowExecutionSetup;
use crate::prepared::EndedRow;
use crate::publish::{QueuedContent, QueuedRecord};
use crate::row_work::RunContext;
use crate::run_driver::RunDriver;
use crate::stop_policy::StopCause;

impl RunDriver {
    /// Writes what happened since the last commit, then passes it on.
    pub(crate) async fn commit(&mut self, shared: &RunContext) {
        if self.uncommitted.is_empty() {
            return;
        }
        let happened = std::mem::take(&mut self.uncommitted);
        let worker = &shared.worker;
        let mut ended = happened.ended;
        let again: Vec<EndedRow> = ended.extract_if(.., |ended| ended.again).collect();
        let unkept = ended.iter().filter(|ended| self.keeps_records && ended.kept_first.is_none());
        let records: Vec<RowRecord> = unkept.map(|ended| ended.record(worker)).collect();
        let group = EventGroup {
            taken: &happened.taken,
            records: &records,
            parked: &happened.parked,
            released: &happened.released,
            ..EventGroup::default()
        };
        match shared.account.append(group).await {
            Err(problem) => {
                self.stop_early(StopCause::Problem(problem));
                // No answer could be stored any more, so calls in flight are aborted and none are made.
                self.stop.abort();
            }
            Ok(appended) => {
                if appended.problem.is_some() {
                    self.held_records.get_or_insert_default();
                }
                self.publish(happened.kept, &mut ended, records, appended.records);
                for kept in &again {
                    let error = kept.result().as_ref().err();
                    self.observer.observe(&RunEvent::FinishedAgain { number: kept.number, error });
                }
                ended.iter().for_each(|ended| self.settle(ended, worker));
                if !happened.released.is_empty() {
                    self.observer.observe(&RunEvent::Released { rows: happened.released.len() });
                }
                if !happened.parked.is_empty() {
                    self.observer.observe(&RunEvent::Parked { rows: happened.parked.len() });
                }
                // After the ended rows, so that no observer sees more rows in flight than allowed.
                if !happened.taken.is_empty() {
                    self.observer.observe(&RunEvent::Taken { rows: happened.taken.len() });
                }
                if let Some(problem) = appended.problem {
                    self.stop_early(StopCause::Problem(problem));
                }
            }
        }
    }

    fn publish(
        &mut self,
        kept: Vec<QueuedRecord>,
        ended: &mut [EndedRow],
        records: Vec<RowRecord>,
        ids: Vec<LedgerRecordId>,
    ) {
        let mut queued_records = kept;
        let mut records = records.into_iter().zip(ids);
        for ended in ended {
            let kept_first = ended.kept_first.take().map(|kept| *kept);
            let Some((record, id)) = kept_first.or_else(|| records.next()) else { break };
            queued_records
                .push(QueuedRecord { ordinal: ended.ordinal, content: QueuedContent::Ended(record, id) });
        }
        match (&mut self.held_records, &self.publisher) {
            (Some(held), _) => held.append(&mut queued_records),
            (None, Some(publisher)) => publisher.send(queued_records),
            (None, None) => {}
        }
    }

    /// Counts a row that is in the ledger.
    fn settle(&mut self, ended: &EndedRow, worker: &RowExecutionSetup) {
        let called = self.in_flight.remove(&ended.ordinal);
        let result = ended.result();
        // The row's record includes the calls of earlier parts of the run, but they do not count for this part.
        let calls = ended.own_calls();
        self.tally.add(&RowReport { outcome: result, calls, ..ended.report(worker) });
        self.tally.unknown_calls += ended.unknown_calls;
        self.tally.repairs += ended.repairs;
        self.tally.saved += ended.saved;
        // Rejected answers were paid for, too.
        if ended.calls.iter().any(|call| call.usage.is_some()) {
            self.history.add_row(&total_usage(&ended.calls), ended.end.saturating_sub(ended.start));
        }
        let (usage, cost) = (total_usage(calls), total_cost(calls));
        let (number, error) = (ended.number, result.as_ref().err());
        self.observer.observe(&RunEvent::Ended { number, error, called, usage, cost });
    }
}
