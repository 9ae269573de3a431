//! A digest of rows and their numbers, which can be compared without storing the rows.

use rowmill_types::RowId;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Rows with ids of their own and their numbers, in any order. Two of these are equal only if they contain the same
/// rows with the same numbers.
///
/// A row whose number is its id cannot move, and is not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowNumberDigest {
    sum: u128,
    rows: u64,
}

impl RowNumberDigest {
    /// Adds a row.
    pub fn add(&mut self, id: &RowId, number: u64) {
        if let RowId::Text(id) = id {
            // The number is the seed, so that the sum changes when two rows swap positions.
            self.sum = self.sum.wrapping_add(xxh3_128_with_seed(id.as_bytes(), number));
            self.rows += 1;
        }
    }

    /// The number of rows with ids of their own.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds the rows of another digest.
    pub fn merge(&mut self, other: Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.rows += other.rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[(&str, u64)]) -> RowNumberDigest {
        let mut places = RowNumberDigest::default();
        rows.iter().for_each(|(id, number)| places.add(&RowId::Text((*id).into()), *number));
        places
    }

    #[test]
    fn only_the_same_rows_with_the_same_numbers_are_equal() {
        let rows = of(&[("a", 1), ("b", 2), ("c", 3)]);
        let mut joined = of(&[("c", 3)]);
        joined.merge(of(&[("b", 2), ("a", 1)]));
        assert_eq!(rows, joined);
        for other in [
            of(&[("a", 2), ("b", 1), ("c", 3)]),
            of(&[("a", 1), ("b", 2)]),
            of(&[("a", 1), ("b", 2), ("c", 4)]),
            of(&[("a", 1), ("b", 2), ("d", 3)]),
        ] {
            assert_ne!(rows, other);
        }
        let mut numbered = RowNumberDigest::default();
        numbered.add(&RowId::Number(4), 4);
        assert_eq!(numbered, RowNumberDigest::default());
    }
}
