//! The state that an earlier run left, and its consequences for each row.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use rowmill_types::RowId;

use crate::agent::StepEvent;
use crate::ports::{LedgerPosition, LedgerRecordId, NamedRow, ParkedRow, RunEpoch};
use crate::record::EnvelopeHead;
use crate::select::{ComparedRowRange, IdSet, InputRowRanges, OutputRowRanges, RecordMap, RowNumberDigest};

/// What is known about the rows of an earlier run: from its output, then from its ledger.
///
/// Compact: sets of ids, and a ledger position only for rows that are ok in the ledger and not yet in the output.
#[derive(Debug, Default)]
pub struct ResumeIndex {
    ok: IdSet,
    failed: IdSet,
    kept: RecordMap,
    /// Rows whose calls were interrupted; by number in ledgers of versions that wrote no ids.
    in_flight: HashSet<RowId>,
    /// Rows that wait for something outside of the process, which may be there now.
    parked: IdSet,
    /// Rows that wait for something that is certainly not there yet.
    waiting: IdSet,
    /// Parked rows that had failed before, with the part of the run in which they were started again.
    parked_after_failure: HashMap<RowId, RunEpoch>,
    /// Rows that failed in an earlier pass and are not retried in this one.
    given_up: IdSet,
    scope: ResumeExclusions,
    /// Rows whose tools may have run: they must not run again without confirmation.
    undecided: IdSet,
    /// Those of them whose records are not yet in the output.
    unpublished: RecordMap,
    retry_undecided: bool,
    /// The kept turns of rows in flight.
    turns: HashMap<RowId, StoredTurns>,
    /// The rows that are ok, with their numbers.
    places: RowNumberDigest,
    /// Those of them that are in the output.
    in_output: OutputRowRanges,
    /// The row ranges of the input that were compared with the output.
    stretches: VecDeque<ComparedRowRange>,
    /// Whether the ledger has records of rows.
    has_ledger_rows: bool,
    /// Up to this position the output has everything that is in the ledger.
    settled_to: LedgerPosition,
}

/// The kept turns of a row.
#[derive(Debug, Default)]
struct StoredTurns {
    spans: Vec<LedgerRecordId>,
    /// How many of them a record includes: one that states that the row was not finished.
    reported: usize,
    /// The running tool calls that must not be repeated, by node and index in the turn.
    running: Vec<(usize, usize)>,
}

/// The counts at the start of a resume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResumeCounts {
    /// Rows that are ok; they are skipped.
    pub done: u64,
    /// Rows that failed, or that a stop left unfinished after answers; they are retried.
    pub failed: u64,
    /// Rows whose calls were interrupted; they are sent again.
    pub unknown: u64,
    /// Those of the failed and unknown rows that continue from kept turns.
    pub with_turns: u64,
    /// Rows with a tool that must not run twice and was running at a crash; they end without a call.
    pub cut_tools: u64,
    /// Rows whose tools may have run; they are skipped.
    pub undecided: u64,
    /// Rows that wait for something outside of the process; they continue once it is there.
    pub parked: u64,
    /// Rows that failed in an earlier pass and are not retried in this one.
    pub given_up: u64,
}

/// Which rows a pass over the input leaves alone, if a run makes several passes.
#[derive(Debug, Clone, Default)]
pub struct ResumeExclusions {
    /// Rows that wait only for these are not worked on.
    pub not_there_yet: HashSet<String>,
    /// Rows whose failures are recorded from this position on are not retried.
    pub failures_final_from: Option<LedgerPosition>,
}

/// The status of a row at the start of a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeRowStatus {
    /// Nothing is known about it.
    New,
    /// It is ok in the output, or it must not be worked on again without confirmation.
    Done,
    /// Its record is in the ledger and still has to be published.
    Kept(LedgerRecordId),
    /// It failed before and is retried.
    Failed,
    /// Its call was interrupted, so whether it was billed is unknown, or turns of it were kept. It is sent again, or
    /// continues from its turns.
    Unknown,
    /// It waits for something outside of the process, and continues once that is there. Nothing is in flight for it.
    Parked,
    /// It waits for something that is certainly not there yet: nothing can be done about it now.
    Waiting,
}

impl ResumeIndex {
    /// An empty state. `retry_undecided` sets whether rows with tools of unknown outcome are worked on again.
    #[must_use]
    pub fn new(retry_undecided: bool) -> Self {
        Self { retry_undecided, ..Self::default() }
    }

    /// Sets which rows are left alone. To be called before anything is added.
    #[must_use]
    pub fn with_exclusions(self, scope: ResumeExclusions) -> Self {
        Self { scope, ..self }
    }

    /// Notes that the output has everything in the ledger up to this position, and that unreadable rows are at the
    /// positions in the output. The ledger may have recorded them before they were repaired or moved.
    pub fn mark_settled_to(&mut self, position: LedgerPosition) {
        self.settled_to = position;
    }

    /// Adds one envelope of the output.
    pub fn add_output_row(&mut self, head: &EnvelopeHead) {
        self.forget_stand_in(head);
        if head.ok {
            self.failed.remove(&head.id);
            self.undecided.remove(&head.id);
            self.remove_in_flight(&head.id, head.number);
            if self.ok.insert(&head.id) {
                self.places.add(&head.id, head.number);
                self.in_output.add_row(&head.id, head.number);
            }
        } else {
            self.saw_failure(head, None);
        }
    }

    /// Adds rows that were about to be sent according to the ledger.
    pub fn add_taken_rows(&mut self, rows: Vec<NamedRow>) {
        self.in_flight.extend(rows.into_iter().map(|row| row.id));
    }

    /// Adds rows that were released unsent according to the ledger.
    pub fn add_released_rows(&mut self, rows: &[NamedRow]) {
        // Ledgers of versions that wrote no ids identify rows by number.
        let names = rows.iter().flat_map(|row| [row.id.clone(), RowId::Number(row.number)]);
        remove_all(&mut self.in_flight, names);
    }

    /// Adds a row that waits for something outside of the process according to the ledger.
    pub fn add_parked_row(&mut self, row: &ParkedRow) {
        self.remove_in_flight(&row.id, row.row);
        let not_there_yet = &self.scope.not_there_yet;
        let is_waiting =
            !not_there_yet.is_empty() && row.waits_for.iter().all(|awaited| not_there_yet.contains(awaited));
        let (now, before) = match is_waiting {
            true => (&mut self.waiting, &mut self.parked),
            false => (&mut self.parked, &mut self.waiting),
        };
        before.remove(&row.id);
        now.insert(&row.id);
        if let Some(epoch) = row.failed_before {
            self.parked_after_failure.insert(row.id.clone(), epoch);
        }
    }

    /// If the row failed before it was parked: the part of the run in which it was started again.
    #[must_use]
    pub fn parked_row_retry_epoch(&self, id: &RowId) -> Option<RunEpoch> {
        self.parked_after_failure.get(id).copied()
    }

    /// Adds a step event that the ledger has for a row that was still being worked on.
    pub fn add_step_event_record(&mut self, id: &RowId, span: LedgerRecordId) {
        self.turns.entry(id.clone()).or_default().spans.push(span);
    }

    /// Adds the content of that step event.
    pub fn add_step_event(&mut self, id: &RowId, step_event: &StepEvent) {
        let Some(turns) = self.turns.get_mut(id) else { return };
        match step_event {
            StepEvent::ToolStarted { node, index, .. } => turns.running.push((*node, *index)),
            StepEvent::ToolEnded { node, index, .. } => {
                turns.running.retain(|running| *running != (*node, *index));
            }
            StepEvent::ModelAnswered { .. }
            | StepEvent::ModelFailed { .. }
            | StepEvent::NodeTimedOut { .. } => {}
        }
    }

    /// Drops all turns: they belong to agents that have changed since.
    pub fn forget_all_step_events(&mut self) {
        self.turns.clear();
    }

    /// Notes that the record of an unfinished row includes the usage of its turns.
    pub fn mark_turns_reported(&mut self, id: &RowId) {
        if let Some(turns) = self.turns.get_mut(id) {
            turns.reported = turns.spans.len();
        }
    }

    /// The step events of a row that was in flight, in order, and how many of them a record includes.
    #[must_use]
    pub fn step_event_records(&self, id: &RowId) -> (&[LedgerRecordId], usize) {
        self.turns.get(id).map(|turns| (turns.spans.as_slice(), turns.reported)).unwrap_or_default()
    }

    /// Adds a row that has ended according to the ledger, with its position there.
    pub fn add_ended_row(&mut self, head: &EnvelopeHead, span: LedgerRecordId) {
        self.remove_in_flight(&head.id, head.number);
        self.parked.remove(&head.id);
        self.waiting.remove(&head.id);
        self.parked_after_failure.remove(&head.id);
        if !head.resumes_from_turns() {
            self.turns.remove(&head.id);
        }
        let is_settled = span.position() < self.settled_to;
        if !is_settled {
            self.forget_stand_in(head);
        }
        if self.ok.contains(&head.id) {
            return;
        }
        self.has_ledger_rows = true;
        if head.ok {
            self.failed.remove(&head.id);
            self.undecided.remove(&head.id);
            self.given_up.remove(&head.id);
            if self.kept.insert(&head.id, span) {
                self.places.add(&head.id, head.number);
            }
        } else if !(head.number_stands_in && is_settled) {
            self.saw_failure(head, Some(span));
        }
    }

    /// An id was found for a row that was unreadable before, and whose number stood in for its id.
    fn forget_stand_in(&mut self, head: &EnvelopeHead) {
        if matches!(head.id, RowId::Text(_)) {
            self.failed.remove(&RowId::Number(head.number));
        }
    }

    fn remove_in_flight(&mut self, id: &RowId, number: u64) {
        self.in_flight.remove(id);
        self.in_flight.remove(&RowId::Number(number));
    }

    /// Whether the row failed for good, and was not taken again since.
    fn is_given_up(&self, id: &RowId, number: u64) -> bool {
        self.given_up.contains(id) && !self.is_in_flight(id, number)
    }

    fn is_in_flight(&self, id: &RowId, number: u64) -> bool {
        self.in_flight.contains(id) || self.in_flight.contains(&RowId::Number(number))
    }

    /// Adds a failure, with its position in the ledger if it was found there.
    fn saw_failure(&mut self, head: &EnvelopeHead, span: Option<LedgerRecordId>) {
        if self.ok.contains(&head.id) {
            return;
        }
        let unpublished = self.unpublished.remove(&head.id);
        let published = self.undecided.contains(&head.id) && !unpublished;
        self.undecided.remove(&head.id);
        if head.interrupted {
            self.failed.remove(&head.id);
            self.in_flight.insert(head.id.clone());
        } else if head.outcome_unknown && !self.retry_undecided {
            self.failed.remove(&head.id);
            self.undecided.insert(&head.id);
            // The row is not worked on again, so this envelope is final.
            if let Some(span) = span.filter(|_| !published) {
                self.unpublished.insert(&head.id, span);
            }
        } else if let Some(span) = span.filter(|span| self.is_final_failure(*span)) {
            self.failed.remove(&head.id);
            self.given_up.insert(&head.id);
            if span.position() >= self.settled_to {
                self.unpublished.insert(&head.id, span);
            }
        } else {
            self.failed.insert(&head.id);
        }
    }

    /// Whether a failure that is recorded here is not retried.
    fn is_final_failure(&self, span: LedgerRecordId) -> bool {
        self.scope.failures_final_from.is_some_and(|from| span.position() >= from)
    }

    /// The rows that are ok, with their numbers.
    #[must_use]
    pub fn ok_row_digest(&self) -> RowNumberDigest {
        self.places
    }

    /// Determines which rows of an input need not be examined again, because they are ok in the output under the same
    /// numbers as in the input.
    pub fn skip_unchanged_ranges(&mut self, input: &InputRowRanges) {
        self.stretches = input.compare_with_output(&self.in_output);
    }

    /// The row ranges of the input that were compared, in order.
    pub fn take_compared_ranges(&mut self) -> VecDeque<ComparedRowRange> {
        std::mem::take(&mut self.stretches)
    }

    /// Whether the ledger has records of rows that are not ok in the output.
    #[must_use]
    pub fn has_ledger_rows(&self) -> bool {
        self.has_ledger_rows
    }

    /// How many rows are ok, failed, and of unknown outcome.
    #[must_use]
    pub fn counts(&self) -> ResumeCounts {
        // The record of a row that failed, or that a stop left unfinished, includes how its calls ended.
        let is_untold = |id: &&RowId| {
            let sets = [&self.failed, &self.parked, &self.waiting, &self.given_up];
            !self.in_flight.contains(id) && !sets.iter().any(|set| set.contains(id))
        };
        let only_turns = self.turns.keys().filter(is_untold).count();
        let cut_tools = self.turns.values().filter(|turns| !turns.running.is_empty()).count();
        // A row is counted once, by the latest information about it.
        let taken_again = |from: &IdSet| self.in_flight.iter().filter(|id| from.contains(id)).count() as u64;
        ResumeCounts {
            done: self.ok.len() + self.kept.len() as u64,
            failed: self.failed.len() - taken_again(&self.failed),
            unknown: (self.in_flight.len() + only_turns).saturating_sub(cut_tools) as u64,
            with_turns: (self.turns.len() - cut_tools) as u64,
            cut_tools: cut_tools as u64,
            undecided: self.undecided.len(),
            parked: self.parked.len() - taken_again(&self.parked) + self.waiting.len()
                - taken_again(&self.waiting),
            given_up: self.given_up.len() - taken_again(&self.given_up),
        }
    }

    /// Adds a row to the counts of a subset of the rows.
    pub fn add_row_to_counts(&self, id: &RowId, number: u64, counts: &mut ResumeCounts) {
        match self.row_status(id, number) {
            ResumeRowStatus::New => {}
            ResumeRowStatus::Done | ResumeRowStatus::Kept(_) if self.undecided.contains(id) => {
                counts.undecided += 1
            }
            ResumeRowStatus::Done | ResumeRowStatus::Kept(_) if self.given_up.contains(id) => {
                counts.given_up += 1
            }
            ResumeRowStatus::Done | ResumeRowStatus::Kept(_) => counts.done += 1,
            ResumeRowStatus::Failed => counts.failed += 1,
            ResumeRowStatus::Parked | ResumeRowStatus::Waiting => counts.parked += 1,
            ResumeRowStatus::Unknown => {
                let turns = self.turns.get(id);
                if turns.is_some_and(|turns| !turns.running.is_empty()) {
                    counts.cut_tools += 1;
                } else {
                    counts.unknown += 1;
                    counts.with_turns += u64::from(turns.is_some());
                }
            }
        }
    }

    /// The status of a row.
    #[must_use]
    pub fn row_status(&self, id: &RowId, number: u64) -> ResumeRowStatus {
        if self.ok.contains(id) {
            ResumeRowStatus::Done
        } else if self.undecided.contains(id) || self.is_given_up(id, number) {
            self.unpublished.get(id).map_or(ResumeRowStatus::Done, ResumeRowStatus::Kept)
        } else if let Some(span) = self.kept.get(id) {
            ResumeRowStatus::Kept(span)
        } else if self.parked.contains(id) && !self.is_in_flight(id, number) {
            ResumeRowStatus::Parked
        } else if self.waiting.contains(id) && !self.is_in_flight(id, number) {
            ResumeRowStatus::Waiting
        } else if self.is_in_flight(id, number) || self.turns.contains_key(id) {
            // A row with turns was paid for, even if a later part of the run released it.
            ResumeRowStatus::Unknown
        } else if self.failed.contains(id) {
            ResumeRowStatus::Failed
        } else {
            ResumeRowStatus::New
        }
    }
}

/// Removes rows from those in flight with one look-up each: a run that stops may release all of them.
fn remove_all<T: Eq + Hash>(in_flight: &mut HashSet<T>, rows: impl Iterator<Item = T>) {
    for row in rows {
        in_flight.remove(&row);
    }
}

#[cfg(test)]
#[path = "resume_tests.rs"]
mod tests;
