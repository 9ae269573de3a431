//! What an earlier run left, and what that means for each row.

use std::collections::{HashMap, HashSet};

use rowmill_types::RowId;

use crate::ports::Span;
use crate::record::EnvelopeHead;
use crate::select::IdSet;

/// What is known of the rows of an earlier run: from its output, then from its ledger.
///
/// Compact: sets of ids, and a place in the ledger only for rows that are ok in
/// the ledger and not yet in the output.
#[derive(Debug, Default)]
pub struct Resume {
    ok: IdSet,
    failed: IdSet,
    kept: HashMap<RowId, Span>,
    in_flight: HashSet<u64>,
}

/// What a resume finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResumeCounts {
    /// Rows that are ok; they are passed over.
    pub done: u64,
    /// Rows that failed; they are tried again.
    pub failed: u64,
    /// Rows whose calls were cut; they are sent again.
    pub unknown: u64,
}

/// Where a row stands at the start of a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is known of it.
    New,
    /// It is ok in the output.
    Done,
    /// It is ok in the ledger and still has to be published.
    Kept(Span),
    /// It failed before and is tried again.
    Failed,
    /// Its call was cut; whether it was billed is unknown. It is sent again.
    Unknown,
}

impl Resume {
    /// Takes in one envelope of the output.
    pub fn saw_output(&mut self, head: &EnvelopeHead) {
        if head.ok {
            self.failed.remove(&head.id);
            self.in_flight.remove(&head.number);
            self.ok.insert(&head.id);
        } else {
            self.saw_failure(head);
        }
    }

    /// Takes in rows that the ledger says were about to be sent.
    pub fn saw_taken(&mut self, numbers: &[u64]) {
        self.in_flight.extend(numbers);
    }

    /// Takes in rows that the ledger says were given back unsent.
    pub fn saw_released(&mut self, numbers: &[u64]) {
        self.in_flight.retain(|number| !numbers.contains(number));
    }

    /// Takes in a row that the ledger says has ended, with its place there.
    pub fn saw_ended(&mut self, head: &EnvelopeHead, span: Span) {
        self.in_flight.remove(&head.number);
        if self.ok.contains(&head.id) {
            return;
        }
        if head.ok {
            self.failed.remove(&head.id);
            self.kept.insert(head.id.clone(), span);
        } else {
            self.saw_failure(head);
        }
    }

    fn saw_failure(&mut self, head: &EnvelopeHead) {
        if self.ok.contains(&head.id) {
            return;
        }
        if head.interrupted {
            self.failed.remove(&head.id);
            self.in_flight.insert(head.number);
        } else {
            self.failed.insert(&head.id);
        }
    }

    /// How many rows are ok, failed, and of unknown outcome.
    #[must_use]
    pub fn counts(&self) -> ResumeCounts {
        ResumeCounts {
            done: self.ok.len() + self.kept.len() as u64,
            failed: self.failed.len(),
            unknown: self.in_flight.len() as u64,
        }
    }

    /// Where a row stands.
    #[must_use]
    pub fn standing(&self, id: &RowId, number: u64) -> Standing {
        if self.ok.contains(id) {
            Standing::Done
        } else if let Some(span) = self.kept.get(id) {
            Standing::Kept(*span)
        } else if self.in_flight.contains(&number) {
            Standing::Unknown
        } else if self.failed.contains(id) {
            Standing::Failed
        } else {
            Standing::New
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(number: u64, ok: bool) -> EnvelopeHead {
        EnvelopeHead { id: RowId::Number(number), number, ok, interrupted: false, stands_in: false }
    }

    #[test]
    fn a_row_stands_where_output_and_ledger_left_it() {
        let span = Span { offset: 9, length: 4 };
        let mut resume = Resume::default();
        resume.saw_output(&head(1, true));
        resume.saw_output(&head(2, false));
        resume.saw_taken(&[1, 2, 3, 4, 5]);
        resume.saw_ended(&head(1, true), span);
        resume.saw_ended(&head(2, false), span);
        resume.saw_ended(&head(3, true), span);
        resume.saw_ended(&head(4, false), span);
        let standing = |number| resume.standing(&RowId::Number(number), number);
        assert_eq!(
            [1, 2, 3, 4, 5, 6].map(standing),
            [
                Standing::Done,
                Standing::Failed,
                Standing::Kept(span),
                Standing::Failed,
                Standing::Unknown,
                Standing::New
            ]
        );
    }

    #[test]
    fn a_row_that_was_aborted_is_unknown_until_it_ends_otherwise() {
        let span = Span { offset: 0, length: 1 };
        let mut resume = Resume::default();
        resume.saw_taken(&[7]);
        resume.saw_ended(&EnvelopeHead { interrupted: true, ..head(7, false) }, span);
        assert_eq!(resume.counts(), ResumeCounts { done: 0, failed: 0, unknown: 1 });
        resume.saw_taken(&[7]);
        resume.saw_ended(&head(7, false), span);
        assert_eq!(resume.counts(), ResumeCounts { done: 0, failed: 1, unknown: 0 });
        resume.saw_ended(&head(7, true), span);
        assert_eq!(resume.counts(), ResumeCounts { done: 1, failed: 0, unknown: 0 });
    }
}
