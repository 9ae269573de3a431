//! Offset, then sample, then limit, decided row by row in input order.

use rowmill_types::{Problem, ProblemCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sample_indexes;

/// Which rows are processed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RowSelection {
    /// Number of rows to skip.
    pub offset: u64,
    /// Random sample of the rest.
    pub sample: Option<RowSampleSettings>,
    /// At most this many rows of those.
    pub limit: Option<u64>,
}

/// Size and seed of a random sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RowSample")]
pub struct RowSampleSettings {
    /// Number of rows; all if there are fewer.
    pub count: u64,
    /// Random seed; the same seed selects the same rows.
    #[serde(default)]
    pub seed: u64,
}

impl RowSelection {
    /// The number of rows selected out of `candidates`.
    #[must_use]
    pub fn selected_count(&self, candidates: u64) -> u64 {
        let after_offset = candidates.saturating_sub(self.offset);
        let drawn = self.sample.map_or(after_offset, |sample| sample.count.min(after_offset));
        self.limit.map_or(drawn, |limit| limit.min(drawn))
    }

    /// A sample that represents the selection: drawn at random if all rows are selected, otherwise the first selected
    /// rows.
    #[must_use]
    pub fn representative_part(&self, rows: u64) -> Self {
        match (self.sample, self.limit) {
            (None, None) => Self { sample: Some(RowSampleSettings { count: rows, seed: 0 }), ..*self },
            (_, limit) => Self { limit: Some(limit.map_or(rows, |limit| limit.min(rows))), ..*self },
        }
    }
}

/// The decision about one candidate row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowChoice {
    /// It is selected.
    Take,
    /// It is not selected; a later one may be.
    Skip,
    /// Neither it nor any later row is selected.
    End,
}

/// Decides for every candidate in input order whether it is selected.
///
/// Candidates are rows and bad rows alike. Memory is constant, except for the indexes of a sample.
///
/// ```
/// # use rowmill_core::select::{RowChoice, RowSelection, RowSelector};
/// let selection = RowSelection { offset: 1, limit: Some(1), ..RowSelection::default() };
/// let mut selector = RowSelector::new(&selection, None).unwrap();
/// let choices = [selector.decide(), selector.decide(), selector.decide()];
/// assert_eq!(choices, [RowChoice::Skip, RowChoice::Take, RowChoice::End]);
/// ```
#[derive(Debug)]
pub struct RowSelector {
    /// Candidates still to be skipped at the start.
    to_pass: u64,
    /// Rows that may still be selected; `None` without a limit.
    to_take: Option<u64>,
    /// The sampled indexes after the offset; `None` if all are selected.
    drawn: Option<std::vec::IntoIter<u64>>,
    /// The number of candidates after the offset that were decided.
    decided: u64,
}

impl RowSelector {
    /// Prepares the decisions. To draw a sample, all candidates must have been counted before.
    ///
    /// # Errors
    ///
    /// A sample is requested and `candidates` is unknown.
    pub fn new(selection: &RowSelection, candidates: Option<u64>) -> Result<Self, Problem> {
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
    pub fn decide(&mut self) -> RowChoice {
        if self.is_finished() {
            return RowChoice::End;
        }
        if self.to_pass > 0 {
            self.to_pass -= 1;
            return RowChoice::Skip;
        }
        let index = self.decided;
        self.decided += 1;
        if let Some(drawn) = &mut self.drawn {
            if drawn.as_slice().first() != Some(&index) {
                return RowChoice::Skip;
            }
            drawn.next();
        }
        if let Some(to_take) = &mut self.to_take {
            *to_take -= 1;
        }
        RowChoice::Take
    }

    /// The number of next candidates that are certain to be skipped, so that they need not be read.
    #[must_use]
    pub fn certain_skips(&self) -> u64 {
        let next = self.drawn.as_ref().and_then(|drawn| drawn.as_slice().first());
        self.to_pass + next.map_or(0, |next| next - self.decided)
    }

    /// Counts candidates as skipped; at most [`RowSelector::certain_skips`].
    pub fn skip_candidates(&mut self, candidates: u64) {
        let of_offset = candidates.min(self.to_pass);
        self.to_pass -= of_offset;
        self.decided += candidates - of_offset;
    }

    /// The number of next candidates that are certain to be selected, if there are that many.
    #[must_use]
    pub fn certain_takes(&self) -> u64 {
        if self.to_pass > 0 || self.drawn.is_some() { 0 } else { self.to_take.unwrap_or(u64::MAX) }
    }

    /// Counts candidates as selected; at most [`RowSelector::certain_takes`].
    pub fn record_taken_candidates(&mut self, candidates: u64) {
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
    fn taken(selection: &RowSelection, candidates: u64) -> Vec<u64> {
        let mut selector = RowSelector::new(selection, Some(candidates)).unwrap();
        (0..candidates).filter(|_| selector.decide() == RowChoice::Take).collect()
    }

    fn sample(count: u64, seed: u64) -> Option<RowSampleSettings> {
        Some(RowSampleSettings { count, seed })
    }

    #[test]
    fn offset_comes_before_sample_and_sample_before_limit() {
        for (selection, expected) in [
            (RowSelection::default(), (0..20).collect::<Vec<_>>()),
            (RowSelection { offset: 17, ..RowSelection::default() }, vec![17, 18, 19]),
            (RowSelection { offset: 25, ..RowSelection::default() }, vec![]),
            (RowSelection { limit: Some(2), ..RowSelection::default() }, vec![0, 1]),
            (RowSelection { limit: Some(0), ..RowSelection::default() }, vec![]),
            (RowSelection { offset: 3, limit: Some(2), sample: None }, vec![3, 4]),
            (RowSelection { offset: 0, sample: sample(5, 7), limit: None }, vec![1, 2, 4, 10, 12]),
            (RowSelection { offset: 0, sample: sample(5, 7), limit: Some(2) }, vec![1, 2]),
            (RowSelection { offset: 0, sample: sample(0, 7), limit: None }, vec![]),
            (RowSelection { offset: 18, sample: sample(5, 7), limit: None }, vec![18, 19]),
            (RowSelection { offset: 18, sample: sample(5, 7), limit: Some(1) }, vec![18]),
        ] {
            assert_eq!(taken(&selection, 20), expected, "{selection:?}");
            assert_eq!(selection.selected_count(20), expected.len() as u64, "{selection:?}");
        }
    }

    #[test]
    fn a_sample_after_an_offset_is_drawn_from_the_rows_after_it() {
        let selection = RowSelection { offset: 100, sample: sample(5, 0), limit: None };
        assert_eq!(taken(&selection, 120), [101, 108, 112, 113, 115]);
    }

    #[test]
    fn the_end_is_reported_as_soon_as_nothing_more_is_taken() {
        let selection = RowSelection { offset: 0, sample: None, limit: Some(1) };
        let mut selector = RowSelector::new(&selection, None).unwrap();
        assert!(!selector.is_finished());
        assert_eq!(selector.decide(), RowChoice::Take);
        assert!(selector.is_finished());
        assert_eq!(selector.decide(), RowChoice::End);
    }

    #[test]
    fn what_is_passed_at_once_leaves_the_same_rows() {
        for selection in [
            RowSelection { offset: 3, limit: Some(4), sample: None },
            RowSelection { offset: 2, sample: sample(5, 7), limit: None },
            RowSelection { offset: 0, sample: sample(3, 1), limit: Some(2) },
        ] {
            let mut selector = RowSelector::new(&selection, Some(20)).unwrap();
            let mut found = Vec::new();
            let mut at = 0;
            while at < 20 && !selector.is_finished() {
                let pass = selector.certain_skips();
                selector.skip_candidates(pass);
                at += pass;
                assert_eq!(selector.decide(), RowChoice::Take, "{selection:?}");
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
        let selection = RowSelection { offset: 2, limit: Some(5), sample: None };
        let mut selector = RowSelector::new(&selection, None).unwrap();
        assert_eq!(selector.certain_takes(), 0);
        selector.skip_candidates(2);
        assert_eq!(selector.certain_takes(), 5);
        selector.record_taken_candidates(4);
        assert_eq!((selector.decide(), selector.decide()), (RowChoice::Take, RowChoice::End));
        assert_eq!(RowSelector::new(&RowSelection::default(), None).unwrap().certain_takes(), u64::MAX);
        let drawn = RowSelection { sample: sample(5, 7), ..RowSelection::default() };
        assert_eq!(RowSelector::new(&drawn, Some(20)).unwrap().certain_takes(), 0);
    }

    #[test]
    fn a_sample_needs_the_number_of_candidates() {
        let selection = RowSelection { offset: 0, sample: sample(5, 0), limit: None };
        assert_eq!(RowSelector::new(&selection, None).unwrap_err().code, ProblemCode::Internal);
    }

    proptest! {
        #[test]
        fn the_number_taken_is_the_size_reported_before(
            offset in 0u64..40,
            count in prop::option::of(0u64..40),
            limit in prop::option::of(0u64..40),
            candidates in 0u64..60,
            seed: u64,
        ) {
            let selection = RowSelection { offset, sample: count.map(|count| RowSampleSettings { count, seed }), limit };
            prop_assert_eq!(taken(&selection, candidates).len() as u64, selection.selected_count(candidates));
        }
    }
}
