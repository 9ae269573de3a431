//! Offset, then sample, then limit, decided row by row in input order.

use rowmill_types::{Problem, ProblemCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sample_indexes;

/// Which rows are processed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// Number of rows to skip.
    pub offset: u64,
    /// Random sample of the rest.
    pub sample: Option<Sample>,
    /// At most this many rows of those.
    pub limit: Option<u64>,
}

/// Size and seed of a random sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Number of rows; all if there are fewer.
    pub count: u64,
    /// Random seed; the same seed selects the same rows.
    #[serde(default)]
    pub seed: u64,
}

impl Selection {
    /// The number of rows selected out of `candidates`.
    #[must_use]
    pub fn size(&self, candidates: u64) -> u64 {
        let after_offset = candidates.saturating_sub(self.offset);
        let drawn = self.sample.map_or(after_offset, |sample| sample.count.min(after_offset));
        self.limit.map_or(drawn, |limit| limit.min(drawn))
    }

    /// A sample that represents the selection: drawn at random if all rows are selected, otherwise the first selected
    /// rows.
    #[must_use]
    pub fn part_of(&self, rows: u64) -> Self {
        match (self.sample, self.limit) {
            (None, None) => Self { sample: Some(Sample { count: rows, seed: 0 }), ..*self },
            (_, limit) => Self { limit: Some(limit.map_or(rows, |limit| limit.min(rows))), ..*self },
        }
    }
}

/// The decision about one candidate row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// It is selected.
    Take,
    /// It is not selected; a later one may be.
    Pass,
    /// Neither it nor any later row is selected.
    End,
}

/// Decides for every candidate in input order whether it is selected.
///
/// Candidates are rows and bad rows alike. Memory is constant, except for the indexes of a sample.
///
/// ```
/// # use rowmill_core::select::{Choice, Selection, Selector};
/// let selection = Selection { offset: 1, limit: Some(1), ..Selection::default() };
/// let mut selector = Selector::new(&selection, None).unwrap();
/// let choices = [selector.decide(), selector.decide(), selector.decide()];
/// assert_eq!(choices, [Choice::Pass, Choice::Take, Choice::End]);
/// ```
#[derive(Debug)]
pub struct Selector {
    /// Candidates still to be skipped at the start.
    to_pass: u64,
    /// Rows that may still be selected; `None` without a limit.
    to_take: Option<u64>,
    /// The sampled indexes after the offset; `None` if all are selected.
    drawn: Option<std::vec::IntoIter<u64>>,
    /// The number of candidates after the offset that were decided.
    decided: u64,
}

impl Selector {
    /// Prepares the decisions. To draw a sample, all candidates must have been counted before.
    ///
    /// # Errors
    ///
    /// A sample is requested and `candidates` is unknown.
    pub fn new(selection: &Selection, candidates: Option<u64>) -> Result<Self, Problem> {
        let mut to_take = selection.limit;
        let mut drawn = None;
        if let Some(sample) = selection.sample {
            let Some(candidates) = candidates else {
                return Err(Problem::new(
                    ProblemCode::Internal,
                    "a sample was to be drawn before the rows were counted",
                ));
            };
            let population = candidates.saturating_sub(selection.offset);
            if sample.count < population {
                let mut indexes = sample_indexes(population, sample.count, sample.seed);
                let limit = selection.limit.and_then(|limit| usize::try_from(limit).ok());
                indexes.truncate(limit.unwrap_or(usize::MAX));
                to_take = Some(indexes.len() as u64);
                drawn = Some(indexes.into_iter());
            }
        }
        Ok(Self { to_pass: selection.offset, to_take, drawn, decided: 0 })
    }

    /// Decides about the next candidate.
    pub fn decide(&mut self) -> Choice {
        if self.is_finished() {
            return Choice::End;
        }
        if self.to_pass > 0 {
            self.to_pass -= 1;
            return Choice::Pass;
        }
        let index = self.decided;
        self.decided += 1;
        if let Some(drawn) = &mut self.drawn {
            if drawn.as_slice().first() != Some(&index) {
                return Choice::Pass;
            }
            drawn.next();
        }
        if let Some(to_take) = &mut self.to_take {
            *to_take -= 1;
        }
        Choice::Take
    }

    /// The number of next candidates that are certain to be skipped, so that they need not be read.
    #[must_use]
    pub fn to_pass(&self) -> u64 {
        let next = self.drawn.as_ref().and_then(|drawn| drawn.as_slice().first());
        self.to_pass + next.map_or(0, |next| next - self.decided)
    }

    /// Counts candidates as skipped; at most [`Selector::to_pass`].
    pub fn pass(&mut self, candidates: u64) {
        let of_offset = candidates.min(self.to_pass);
        self.to_pass -= of_offset;
        self.decided += candidates - of_offset;
    }

    /// The number of next candidates that are certain to be selected, if there are that many.
    #[must_use]
    pub fn to_take(&self) -> u64 {
        if self.to_pass > 0 || self.drawn.is_some() { 0 } else { self.to_take.unwrap_or(u64::MAX) }
    }

    /// Counts candidates as selected; at most [`Selector::to_take`].
    pub fn take(&mut self, candidates: u64) {
        self.decided += candidates;
        if let Some(to_take) = &mut self.to_take {
            *to_take = to_take.saturating_sub(candidates);
        }
    }

    /// Whether no further candidate can be selected, so that none need be read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.to_take == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The 0-based indexes of the rows selected out of `candidates`.
    fn taken(selection: &Selection, candidates: u64) -> Vec<u64> {
        let mut selector = Selector::new(selection, Some(candidates)).unwrap();
        (0..candidates).filter(|_| selector.decide() == Choice::Take).collect()
    }

    fn sample(count: u64, seed: u64) -> Option<Sample> {
        Some(Sample { count, seed })
    }

    #[test]
    fn offset_comes_before_sample_and_sample_before_limit() {
        for (selection, expected) in [
            (Selection::default(), (0..20).collect::<Vec<_>>()),
            (Selection { offset: 17, ..Selection::default() }, vec![17, 18, 19]),
            (Selection { offset: 25, ..Selection::default() }, vec![]),
            (Selection { limit: Some(2), ..Selection::default() }, vec![0, 1]),
            (Selection { limit: Some(0), ..Selection::default() }, vec![]),
            (Selection { offset: 3, limit: Some(2), sample: None }, vec![3, 4]),
            (Selection { offset: 0, sample: sample(5, 7), limit: None }, vec![1, 2, 4, 10, 12]),
            (Selection { offset: 0, sample: sample(5, 7), limit: Some(2) }, vec![1, 2]),
            (Selection { offset: 0, sample: sample(0, 7), limit: None }, vec![]),
            (Selection { offset: 18, sample: sample(5, 7), limit: None }, vec![18, 19]),
            (Selection { offset: 18, sample: sample(5, 7), limit: Some(1) }, vec![18]),
        ] {
            assert_eq!(taken(&selection, 20), expected, "{selection:?}");
            assert_eq!(selection.size(20), expected.len() as u64, "{selection:?}");
        }
    }

    #[test]
    fn a_sample_after_an_offset_is_drawn_from_the_rows_after_it() {
        let selection = Selection { offset: 100, sample: sample(5, 0), limit: None };
        assert_eq!(taken(&selection, 120), [101, 108, 112, 113, 115]);
    }

    #[test]
    fn the_end_is_told_as_soon_as_nothing_more_is_taken() {
        let selection = Selection { offset: 0, sample: None, limit: Some(1) };
        let mut selector = Selector::new(&selection, None).unwrap();
        assert!(!selector.is_finished());
        assert_eq!(selector.decide(), Choice::Take);
        assert!(selector.is_finished());
        assert_eq!(selector.decide(), Choice::End);
    }

    #[test]
    fn what_is_passed_at_once_leaves_the_same_rows() {
        for selection in [
            Selection { offset: 3, limit: Some(4), sample: None },
            Selection { offset: 2, sample: sample(5, 7), limit: None },
            Selection { offset: 0, sample: sample(3, 1), limit: Some(2) },
        ] {
            let mut selector = Selector::new(&selection, Some(20)).unwrap();
            let mut found = Vec::new();
            let mut at = 0;
            while at < 20 && !selector.is_finished() {
                let pass = selector.to_pass();
                selector.pass(pass);
                at += pass;
                assert_eq!(selector.decide(), Choice::Take, "{selection:?}");
                found.push(at);
                at += 1;
                if selection.sample.is_none() && found.len() == 4 {
                    break;
                }
            }
            assert_eq!(found, taken(&selection, 20), "{selection:?}");
        }
    }

    #[test]
    fn what_is_taken_at_once_uses_up_the_limit_and_never_stands_in_for_a_sample() {
        let selection = Selection { offset: 2, limit: Some(5), sample: None };
        let mut selector = Selector::new(&selection, None).unwrap();
        assert_eq!(selector.to_take(), 0);
        selector.pass(2);
        assert_eq!(selector.to_take(), 5);
        selector.take(4);
        assert_eq!((selector.decide(), selector.decide()), (Choice::Take, Choice::End));
        assert_eq!(Selector::new(&Selection::default(), None).unwrap().to_take(), u64::MAX);
        let drawn = Selection { sample: sample(5, 7), ..Selection::default() };
        assert_eq!(Selector::new(&drawn, Some(20)).unwrap().to_take(), 0);
    }

    #[test]
    fn a_sample_needs_the_number_of_candidates() {
        let selection = Selection { offset: 0, sample: sample(5, 0), limit: None };
        assert_eq!(Selector::new(&selection, None).unwrap_err().code, ProblemCode::Internal);
    }

    proptest! {
        #[test]
        fn the_number_taken_is_the_size_told_before(
            offset in 0u64..40,
            count in prop::option::of(0u64..40),
            limit in prop::option::of(0u64..40),
            candidates in 0u64..60,
            seed: u64,
        ) {
            let selection = Selection { offset, sample: count.map(|count| Sample { count, seed }), limit };
            prop_assert_eq!(taken(&selection, candidates).len() as u64, selection.size(candidates));
        }
    }
}
