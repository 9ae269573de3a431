//! Which ids were seen, kept small.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use roaring::RoaringTreemap;
use rowmill_types::RowId;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Text ids are spread over so many parts by the first bits of their digest, which thereby need
/// not be kept.
const PARTS: usize = 1 << 16;

/// The part of a digest that is kept of a text id.
type Remainder = [u8; 6];

/// Ids: numbers as a bitmap, text as digests of 64 bits, of which six bytes are kept.
///
/// Of ten million ids two have the same digest in one of some 400,000 runs. That is noticed: a duplicate is
/// looked up before anybody is told of one, and a resume compares the rows that it passes over with those
/// on record. Digests differ from process to process, so that no input can be made to hit upon such
/// ids, and the next resume does not.
#[derive(Default)]
pub struct IdSet {
    numbers: RoaringTreemap,
    /// Sorted parts, all of them or none. They grow by little, so that not much of them is unused.
    parts: Vec<Vec<Remainder>>,
    texts: u64,
    seed: Seed,
}

/// What digests of ids begin from, the same for all sets of a process.
#[derive(Clone, Copy)]
pub(super) struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
        Self(*SEED.get_or_init(|| RandomState::new().hash_one(PARTS)))
    }
}

impl Seed {
    /// The part that a text belongs to, and what is kept of it there.
    pub(super) fn digest(self, text: &str) -> (usize, Remainder) {
        let [first, second, kept @ ..] = xxh3_128_with_seed(text.as_bytes(), self.0).to_be_bytes();
        let [one, two, three, four, five, six, ..] = kept;
        (usize::from(u16::from_be_bytes([first, second])), [one, two, three, four, five, six])
    }
}

impl IdSet {
    /// Adds an id; `false` when it was there already.
    pub fn insert(&mut self, id: &RowId) -> bool {
        let text = match id {
            RowId::Number(number) => return self.numbers.insert(*number),
            RowId::Text(text) => text,
        };
        if self.parts.is_empty() {
            self.parts.resize_with(PARTS, Vec::new);
        }
        let (part, remainder) = self.seed.digest(text);
        let Some(part) = self.parts.get_mut(part) else { return false };
        let Err(at) = part.binary_search(&remainder) else { return false };
        if part.len() == part.capacity() {
            part.reserve_exact(part.len() / 16 + 2);
        }
        part.insert(at, remainder);
        self.texts += 1;
        true
    }

    /// Whether the id was added.
    #[must_use]
    pub fn contains(&self, id: &RowId) -> bool {
        let text = match id {
            RowId::Number(number) => return self.numbers.contains(*number),
            RowId::Text(_) if self.texts == 0 => return false,
            RowId::Text(text) => text,
        };
        let (part, remainder) = self.seed.digest(text);
        self.parts.get(part).is_some_and(|part| part.binary_search(&remainder).is_ok())
    }

    /// Takes an id out again.
    pub fn remove(&mut self, id: &RowId) {
        let text = match id {
            RowId::Number(number) => {
                self.numbers.remove(*number);
                return;
            }
            RowId::Text(_) if self.texts == 0 => return,
            RowId::Text(text) => text,
        };
        let (part, remainder) = self.seed.digest(text);
        if let Some(part) = self.parts.get_mut(part)
            && let Ok(at) = part.binary_search(&remainder)
        {
            part.remove(at);
            self.texts -= 1;
        }
    }

    /// Takes all ids out and keeps the room that they took, for ids of about the same number.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.parts.iter_mut().for_each(Vec::clear);
        self.texts = 0;
    }

    /// How many ids were added.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.numbers.len() + self.texts
    }

    /// Whether none was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
    fn many_ids_are_kept_apart_in_little_more_than_six_bytes_each() {
        let mut set = IdSet::default();
        let fresh = (0..1_000_000).filter(|number| set.insert(&text(*number))).count();
        assert_eq!((fresh, set.len()), (1_000_000, 1_000_000));
        assert!((0..1_000_000).step_by(997).all(|number| set.contains(&text(number))));
        assert!(!set.contains(&text(1_000_000)));
        let held: usize = set.parts.iter().map(|part| part.capacity() * size_of::<Remainder>()).sum();
        assert!(held < 1_000_000 * 7, "{held} bytes");
        set.clear();
        assert!(set.is_empty() && !set.contains(&text(1)));
        assert!((0..1_000_000).all(|number| set.insert(&text(number))));
        let again: usize = set.parts.iter().map(|part| part.capacity() * size_of::<Remainder>()).sum();
        assert_eq!(again, held, "the same ids need no further room");
    }
}
