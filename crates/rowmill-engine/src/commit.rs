//! Writing down what happened, in one write, and only then telling anyone.

use rowmill_core::ports::{Event, Group, Span};
use rowmill_core::record::{Record, RowReport, total_cost, total_usage};

use crate::Worker;
use crate::drive::Driver;
use crate::policy::StopCause;
use crate::prepared::Ended;
use crate::publish::{Content, Parcel};
use crate::work::Shared;

impl Driver {
    /// Writes what happened since the last time, and sends it on.
    pub(crate) fn commit(&mut self, shared: &Shared) {
        let happened = std::mem::take(&mut self.now);
        let nothing = happened.taken.is_empty() && happened.ended.is_empty();
        if nothing && happened.kept.is_empty() && happened.released.is_empty() {
            self.now = happened;
            return;
        }
        let worker = &shared.worker;
        let mut ended = happened.ended;
        let again: Vec<Ended> = ended.extract_if(.., |ended| ended.again).collect();
        let unkept = ended.iter().filter(|ended| self.keeps_records && ended.kept_first.is_none());
        let records: Vec<Record> = unkept.map(|ended| ended.record(worker)).collect();
        let group = Group {
            taken: &happened.taken,
            records: &records,
            released: &happened.released,
            ..Group::default()
        };
        match shared.account.append(group) {
            Err(problem) => {
                self.end_early(StopCause::Problem(problem));
                // No answer could be kept any more, so none is waited for and none is asked for.
                self.stop.abort();
            }
            Ok(appended) => {
                if appended.trouble.is_some() {
                    self.held_back.get_or_insert_default();
                }
                self.publish(happened.kept, &mut ended, records, appended.records);
                for kept in &again {
                    let error = kept.result().as_ref().err();
                    self.observer.observe(&Event::Kept { number: kept.number, error });
                }
                ended.iter().for_each(|ended| self.settle(ended, worker));
                if !happened.released.is_empty() {
                    self.observer.observe(&Event::Released { rows: happened.released.len() });
                }
                // After those that ended, so that nobody sees more in flight than allowed.
                if !happened.taken.is_empty() {
                    self.observer.observe(&Event::Taken { rows: happened.taken.len() });
                }
                if let Some(problem) = appended.trouble {
                    self.end_early(StopCause::Problem(problem));
                }
            }
        }
    }

    /// Puts the answer to a row on record before anything is made of it.
    pub(crate) fn keep_first(&mut self, ended: &mut Ended, shared: &Shared) {
        if !self.keeps_records || ended.again || ended.outcome.is_err() {
            return;
        }
        let record = ended.record(&shared.worker);
        let group = Group { records: std::slice::from_ref(&record), ..Group::default() };
        // Where it fails, it fails again when everything is written, and is told there.
        let Ok(appended) = shared.account.append(group) else { return };
        let span = span(&record, appended.records);
        ended.kept_first = Some(Box::new((record, span)));
        if let Some(problem) = appended.trouble {
            self.held_back.get_or_insert_default();
            self.end_early(StopCause::Problem(problem));
        }
    }

    fn publish(&mut self, kept: Vec<Parcel>, ended: &mut [Ended], records: Vec<Record>, mut offset: u64) {
        let mut parcels = kept;
        let mut records = records.into_iter();
        for ended in ended {
            let (record, span) = match ended.kept_first.take() {
                Some(kept) => *kept,
                None => {
                    let Some(record) = records.next() else { break };
                    let span = span(&record, offset);
                    offset += u64::from(span.length);
                    (record, span)
                }
            };
            parcels.push(Parcel { ordinal: ended.ordinal, content: Content::Ended(record, span) });
        }
        match (&mut self.held_back, &self.publisher) {
            (Some(held), _) => held.append(&mut parcels),
            (None, Some(publisher)) => publisher.send(parcels),
            (None, None) => {}
        }
    }

    /// Counts a row that the ledger has.
    fn settle(&mut self, ended: &Ended, worker: &Worker) {
        let called = self.in_flight.remove(&ended.ordinal);
        let result = ended.result();
        // What an earlier part of the run paid for is told by the row's record, but is not of this part.
        let calls = ended.own_calls();
        self.tally.add(&RowReport { outcome: result, calls, ..ended.report(worker) });
        self.tally.unknown_calls += ended.unknown_calls;
        self.tally.repairs += ended.repairs;
        self.tally.saved += ended.saved;
        // Answers that are of no use were paid for, too.
        if ended.calls.iter().any(|call| call.usage.is_some()) {
            self.history.add(&total_usage(&ended.calls), ended.end.saturating_sub(ended.start));
        }
        let (usage, cost) = (total_usage(calls), total_cost(calls));
        let (number, error) = (ended.number, result.as_ref().err());
        self.observer.observe(&Event::Ended { number, error, called, usage, cost });
    }
}

/// Where a record stands that begins at `offset`.
fn span(record: &Record, offset: u64) -> Span {
    Span { offset, length: u32::try_from(record.line.len()).unwrap_or(u32::MAX) }
}
