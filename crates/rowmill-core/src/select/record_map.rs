//! A compact map from row ids to the positions of their records in the ledger.

use std::collections::BTreeMap;
use std::fmt;

use rowmill_types::RowId;

use super::id_set::DigestSeed;
use crate::ports::{LedgerPosition, LedgerRecordId};

/// This many consecutive numbers are stored together.
const NUMBERS_TOGETHER: u64 = 1 << 12;

/// The stored rest of an id within its part, and its record. Bytes, because numbers would be padded.
type RecordEntry = ([u8; 6], [u8; 12]);
/// Sorted entries. They grow in small steps, so that little memory is unused.
type RecordBuckets = BTreeMap<u64, Vec<RecordEntry>>;

/// Records by the ids of their rows, in about 20 bytes each: numbers as they are, text as digests of 64 bits, as in
/// [`IdSet`](super::IdSet).
#[derive(Default)]
pub(crate) struct RecordMap {
    numbers: RecordBuckets,
    texts: RecordBuckets,
    len: usize,
    seed: DigestSeed,
}

impl RecordMap {
    /// Adds a record or replaces the existing one; `true` if there was none.
    pub(crate) fn insert(&mut self, id: &RowId, record: LedgerRecordId) -> bool {
        let (key, remainder) = self.place(id);
        let part = self.parts_mut(id).entry(key).or_default();
        let entry = (remainder, packed(record));
        match find(part, &remainder) {
            Ok(at) => {
                part[at] = entry;
                false
            }
            Err(at) => {
                if part.len() == part.capacity() {
                    part.reserve_exact(part.len() / 16 + 2);
                }
                part.insert(at, entry);
                self.len += 1;
                true
            }
        }
    }

    pub(crate) fn get(&self, id: &RowId) -> Option<LedgerRecordId> {
        if self.len == 0 {
            return None;
        }
        let (key, remainder) = self.place(id);
        let parts = if matches!(id, RowId::Number(_)) { &self.numbers } else { &self.texts };
        let part = parts.get(&key)?;
        find(part, &remainder).ok().map(|at| unpacked(part[at].1))
    }

    /// Removes a record; `true` if there was one.
    pub(crate) fn remove(&mut self, id: &RowId) -> bool {
        let (key, remainder) = self.place(id);
        let Some(part) = self.parts_mut(id).get_mut(&key) else { return false };
        let Ok(at) = find(part, &remainder) else { return false };
        part.remove(at);
        self.len -= 1;
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn parts_mut(&mut self, id: &RowId) -> &mut RecordBuckets {
        if matches!(id, RowId::Number(_)) { &mut self.numbers } else { &mut self.texts }
    }

    /// The part that an id belongs to, and the stored rest of the id.
    fn place(&self, id: &RowId) -> (u64, [u8; 6]) {
        match id {
            RowId::Number(number) => {
                let [.., high, low] = (number % NUMBERS_TOGETHER).to_be_bytes();
                (number / NUMBERS_TOGETHER, [0, 0, 0, 0, high, low])
            }
            RowId::Text(text) => {
                let [first, second, remainder @ ..] = self.seed.digest(text).to_be_bytes();
                let [one, two, three, four, five, six, ..] = remainder;
                (u64::from(u16::from_be_bytes([first, second])), [one, two, three, four, five, six])
            }
        }
    }
}

impl fmt::Debug for RecordMap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RecordMap").field("len", &self.len).finish_non_exhaustive()
    }
}

fn find(part: &[RecordEntry], remainder: &[u8; 6]) -> Result<usize, usize> {
    part.binary_search_by(|(kept, _)| kept.cmp(remainder))
}

fn packed(record: LedgerRecordId) -> [u8; 12] {
    let mut bytes = [0; 12];
    let (position, length) = bytes.split_at_mut(8);
    position.copy_from_slice(&record.position().key().to_le_bytes());
    length.copy_from_slice(&(record.event_length() as u32).to_le_bytes());
    bytes
}

fn unpacked(bytes: [u8; 12]) -> LedgerRecordId {
    let [a, b, c, d, e, f, g, h, length @ ..] = bytes;
    let position = LedgerPosition::from_key(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    LedgerRecordId::new(position, u32::from_le_bytes(length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: u64) -> LedgerRecordId {
        LedgerRecordId::new(LedgerPosition::from_key(key), 1_000 + key as usize)
    }

    fn text(number: u64) -> RowId {
        RowId::Text(format!("id-{number}").into())
    }

    #[test]
    fn the_map_tells_ids_apart_and_keeps_the_last_record_of_each() {
        let mut map = RecordMap::default();
        let ids = [
            RowId::Number(1),
            RowId::Number(1 + NUMBERS_TOGETHER),
            RowId::Number(u64::MAX),
            RowId::Text("1".into()),
            RowId::Text("a".into()),
        ];
        for (id, key) in ids.iter().zip(1..) {
            assert_eq!((map.get(id), map.remove(id)), (None, false));
            assert!(map.insert(id, record(key)));
            assert!(!map.insert(id, record(key << 40)));
            assert_eq!(map.get(id), Some(record(key << 40)));
        }
        assert_eq!(map.len(), ids.len());
        assert!(ids.iter().all(|id| map.remove(id)));
        assert!(ids.iter().all(|id| map.get(id).is_none()) && map.len() == 0);
    }

    impl RecordMap {
        /// The memory that it holds.
        pub(crate) fn bytes(&self) -> usize {
            let parts = self.numbers.values().chain(self.texts.values());
            let parts = parts
                .map(|part| size_of::<Vec<RecordEntry>>() + 8 + part.capacity() * size_of::<RecordEntry>());
            parts.sum()
        }
    }

    #[test]
    fn many_records_take_some_twenty_bytes_each_whatever_names_their_rows() {
        for id in [RowId::Number, text] {
            let mut map = RecordMap::default();
            // Rows end in an order different from the input's.
            assert!((0..1_000_000).all(|number| map.insert(&id(number ^ 0x5555), record(number))));
            assert!((0..1_000_000).step_by(997).all(|n| map.get(&id(n ^ 0x5555)) == Some(record(n))));
            let bytes = map.bytes();
            assert!(bytes < 1_000_000 * 22, "{bytes} bytes");
        }
    }
}
