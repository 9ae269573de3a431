//! Compares rows and their numbers range by range, so that an input whose finished rows have not moved need not be read
//! again for them.

use std::collections::{HashMap, VecDeque};

use rowmill_types::RowId;

use super::RowNumberDigest;

/// Rows whose numbers differ only in their last ten bits belong to one range.
const STRETCH_BITS: u32 = 10;

/// The rows with ids of their own in an output, by ranges of their numbers.
#[derive(Debug, Default)]
pub struct OutputRowRanges {
    earlier: HashMap<u64, RowNumberDigest>,
    /// The range of the last row: outputs are mostly in order, so most rows need no look-up.
    last: (u64, RowNumberDigest),
}

impl OutputRowRanges {
    /// Adds a row.
    pub fn add_row(&mut self, id: &RowId, number: u64) {
        let stretch = number >> STRETCH_BITS;
        if stretch != self.last.0 {
            let (left, places) = std::mem::replace(&mut self.last, (stretch, RowNumberDigest::default()));
            self.earlier.entry(left).or_default().merge(places);
        }
        self.last.1.add(id, number);
    }

    fn of(&self, stretch: u64) -> RowNumberDigest {
        let mut places = self.earlier.get(&stretch).copied().unwrap_or_default();
        if self.last.0 == stretch {
            places.merge(self.last.1);
        }
        places
    }
}

/// The selected rows of an input, in order, by ranges of their numbers.
#[derive(Debug, Default)]
pub struct InputRowRanges(Vec<InputRowRange>);

#[derive(Debug)]
struct InputRowRange {
    number: u64,
    rows: u64,
    places: RowNumberDigest,
}

impl InputRowRanges {
    /// Adds the next row, with its id if it has one of its own.
    pub fn add_row(&mut self, id: Option<&RowId>, number: u64) {
        let stretch = number >> STRETCH_BITS;
        if self.0.last().is_none_or(|last| last.number != stretch) {
            self.0.push(InputRowRange { number: stretch, rows: 0, places: RowNumberDigest::default() });
        }
        if let Some(last) = self.0.last_mut() {
            last.rows += 1;
            if let Some(id) = id {
                last.places.add(id, number);
            }
        }
    }

    /// The work on the rows, in order: a range is finished if the output has all of its rows under the same numbers.
    #[must_use]
    pub fn compare_with_output(&self, output: &OutputRowRanges) -> VecDeque<ComparedRowRange> {
        let mut found: VecDeque<ComparedRowRange> = VecDeque::new();
        for stretch in &self.0 {
            let InputRowRange { number, rows, places } = *stretch;
            let is_finished = places.rows() == rows && places == output.of(number);
            let finished = is_finished.then_some(places);
            match (found.back_mut(), finished) {
                (Some(ComparedRowRange { rows: before, finished: Some(known) }), Some(places)) => {
                    *before += rows;
                    known.merge(places);
                }
                (Some(ComparedRowRange { rows: before, finished: None }), None) => *before += rows,
                _ => found.push_back(ComparedRowRange { rows, finished }),
            }
        }
        found
    }
}

/// Consecutive rows of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedRowRange {
    /// The number of rows.
    pub rows: u64,
    /// The rows with their numbers, if all of them are finished.
    pub finished: Option<RowNumberDigest>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << STRETCH_BITS;

    fn id(number: u64) -> RowId {
        RowId::Text(format!("r{number}").into())
    }

    fn input(numbers: impl Iterator<Item = u64>) -> InputRowRanges {
        let mut input = InputRowRanges::default();
        numbers.for_each(|number| input.add_row(Some(&id(number)), number));
        input
    }

    fn output(rows: impl Iterator<Item = (u64, u64)>) -> OutputRowRanges {
        let mut output = OutputRowRanges::default();
        rows.for_each(|(row, number)| output.add_row(&id(row), number));
        output
    }

    fn shape(found: &VecDeque<ComparedRowRange>) -> Vec<(u64, bool)> {
        found.iter().map(|stretch| (stretch.rows, stretch.finished.is_some())).collect()
    }

    #[test]
    fn stretches_are_finished_whose_rows_all_stand_where_they_stood() {
        let numbers = || (1..4 * SIZE).filter(|number| number % 7 != 0);
        let rows = |stretch: u64| numbers().filter(|number| number / SIZE == stretch).count() as u64;
        let whole = output(numbers().map(|number| (number, number)));
        let all = input(numbers()).compare_with_output(&whole);
        assert_eq!(shape(&all), [(numbers().count() as u64, true)]);
        let mut places = RowNumberDigest::default();
        numbers().for_each(|number| places.add(&id(number), number));
        assert_eq!(all.front().and_then(|stretch| stretch.finished), Some(places));

        let lacking = output(numbers().filter(|number| *number != SIZE + 6).map(|number| (number, number)));
        let expected = [(rows(0), true), (rows(1), false), (rows(2) + rows(3), true)];
        assert_eq!(shape(&input(numbers()).compare_with_output(&lacking)), expected);
    }

    #[test]
    fn rows_that_changed_places_or_have_no_id_are_looked_at_again() {
        let swapped = |number: u64| match number {
            3 => 4,
            4 => 3,
            other => other,
        };
        let moved = output((1..2 * SIZE).map(|number| (swapped(number), number)));
        assert_eq!(shape(&input(1..2 * SIZE).compare_with_output(&moved)), [(SIZE - 1, false), (SIZE, true)]);

        let mut nameless = input(1..10);
        nameless.add_row(None, 10);
        assert_eq!(shape(&nameless.compare_with_output(&output((1..10).map(|n| (n, n))))), [(10, false)]);
        assert_eq!(shape(&InputRowRanges::default().compare_with_output(&OutputRowRanges::default())), []);
    }

    #[test]
    fn an_output_may_have_its_rows_in_any_order() {
        let backwards = output((1..3 * SIZE).rev().map(|number| (number, number)));
        assert_eq!(shape(&input(1..3 * SIZE).compare_with_output(&backwards)), [(3 * SIZE - 1, true)]);
        let mixed = (1..SIZE).flat_map(|number| [number, number + SIZE]);
        let mixed = output(mixed.map(|number| (number, number)));
        let numbers = (1..SIZE).chain(SIZE + 1..2 * SIZE);
        assert_eq!(shape(&input(numbers).compare_with_output(&mixed)), [(2 * SIZE - 2, true)]);
    }
}
