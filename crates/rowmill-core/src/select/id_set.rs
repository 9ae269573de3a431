//! A compact set of ids.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use rowmill_types::RowId;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::digest_set::{DigestSet, IdDigest};
use super::number_set::NumberSet;

/// Ids: numbers as a bitmap, text as digests of 56 bits, of which five bytes are stored.
///
/// Among ten million ids, two have the same digest in one of about 1,400 runs. That is detected: a duplicate is
/// verified before it is reported, and a resume compares the rows that it skips with those on record. Digests differ
/// from process to process, so that no input can be crafted to produce such ids, and the next resume does not meet them
/// again.
#[derive(Default)]
pub struct IdSet {
    numbers: NumberSet,
    texts: DigestSet,
    seed: DigestSeed,
}

/// The seed of the digests, the same for all sets of a process.
#[derive(Clone, Copy)]
pub(super) struct DigestSeed(u64);

impl Default for DigestSeed {
    fn default() -> Self {
        static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
        Self(*SEED.get_or_init(|| RandomState::new().hash_one(0)))
    }
}

impl DigestSeed {
    pub(super) fn digest(self, text: &str) -> u128 {
        xxh3_128_with_seed(text.as_bytes(), self.0)
    }
}

impl IdSet {
    /// Adds an id; returns `false` if it was there already.
    pub fn insert(&mut self, id: &RowId) -> bool {
        match id {
            RowId::Number(number) => self.numbers.insert(*number),
            RowId::Text(text) => self.texts.insert(self.digest(text)),
        }
    }

    /// Whether the set contains the id.
    #[must_use]
    pub fn contains(&self, id: &RowId) -> bool {
        match id {
            RowId::Number(number) => self.numbers.contains(*number),
            RowId::Text(_) if self.texts.len() == 0 => false,
            RowId::Text(text) => self.texts.contains(self.digest(text)),
        }
    }

    /// Removes an id.
    pub fn remove(&mut self, id: &RowId) {
        match id {
            RowId::Number(number) => self.numbers.remove(*number),
            RowId::Text(_) if self.texts.len() == 0 => {}
            RowId::Text(text) => self.texts.remove(self.digest(text)),
        }
    }

    /// The number of ids.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.numbers.len() + self.texts.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn digest(&self, text: &str) -> IdDigest {
        IdDigest::new(self.seed.digest(text))
    }
}

impl fmt::Debug for IdSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("IdSet").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: u32) -> RowId {
        RowId::Text(format!("id-{number}").into())
    }

    #[test]
    fn the_set_tells_ids_apart_and_counts_them() {
        let mut set = IdSet::default();
        assert!(set.is_empty());
        let ids =
            [RowId::Number(1), RowId::Text("1".into()), RowId::Text("a".into()), RowId::Text("b".into())];
        for id in &ids {
            assert!(!set.contains(id));
            set.remove(id);
            assert!(set.insert(id));
            assert!(set.contains(id));
            assert!(!set.insert(id));
        }
        assert_eq!(set.len(), 4);
        assert!(!set.contains(&RowId::Number(2)));
        for id in &ids {
            set.remove(id);
            assert!(!set.contains(id));
        }
        assert!(set.is_empty());
    }

    #[test]
    fn many_ids_are_kept_apart_in_little_more_than_five_bytes_each() {
        let mut set = IdSet::default();
        let fresh = (0..1_000_000).filter(|number| set.insert(&text(*number))).count();
        assert_eq!((fresh, set.len()), (1_000_000, 1_000_000));
        assert!((0..1_000_000).step_by(997).all(|number| set.contains(&text(number))));
        assert!(!set.contains(&text(1_000_000)));
        let held = set.texts.bytes();
        assert!(held < 1_000_000 * 6, "{held} bytes");
    }

    #[test]
    fn a_set_that_grows_never_holds_much_more_than_its_ids_need() {
        // Where buckets end, changes that wait, and a block that is not full yet, in each of 64 segments.
        const BESIDE: usize = 1 << 20;
        let mut set = IdSet::default();
        for number in 0..1_000_000 {
            set.insert(&text(number));
            let ids = number as usize + 1;
            if ids.is_multiple_of(10_000) {
                let held = set.texts.bytes();
                assert!(held < ids * 6 + BESIDE, "{held} bytes for {ids} ids");
            }
        }
    }
}
