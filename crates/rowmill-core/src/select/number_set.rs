//! A set of numbers: a bit for each where many stand close together, two bytes where few do.

use std::collections::BTreeMap;

/// Numbers that differ only in their last sixteen bits are one group.
const LOW_BITS: u32 = 16;

/// Words with a bit for each number of a group.
const WORDS: usize = 1 << (LOW_BITS - u64::BITS.trailing_zeros());

/// So many numbers of a group are listed; more take less memory as bits.
const MOST_LISTED: usize = WORDS * size_of::<u64>() / size_of::<u16>();

/// Numbers, in groups of those that stand close together.
#[derive(Debug, Default)]
pub(super) struct NumberSet {
    groups: BTreeMap<u64, EventGroup>,
    len: u64,
}

impl NumberSet {
    /// Adds a number; `false` when it was there already.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        let is_new = self.groups.entry(number >> LOW_BITS).or_default().insert(number as u16);
        self.len += u64::from(is_new);
        is_new
    }

    /// Takes a number out again.
    pub(super) fn remove(&mut self, number: u64) {
        let high = number >> LOW_BITS;
        let Some(group) = self.groups.get_mut(&high) else { return };
        self.len -= u64::from(group.remove(number as u16));
        if group.is_empty() {
            self.groups.remove(&high);
        }
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        self.groups.get(&(number >> LOW_BITS)).is_some_and(|group| group.contains(number as u16))
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// All numbers, sorted.
    pub(super) fn sorted(&self) -> Vec<u64> {
        let mut all = Vec::with_capacity(usize::try_from(self.len).unwrap_or_default());
        for (high, group) in &self.groups {
            group.for_each(|low| all.push(high << LOW_BITS | u64::from(low)));
        }
        all
    }
}

/// The last bits of the numbers of a group.
#[derive(Debug)]
enum EventGroup {
    /// Sorted.
    List(Vec<u16>),
    Bits {
        words: Box<[u64; WORDS]>,
        len: u32,
    },
}

impl Default for EventGroup {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl EventGroup {
    fn insert(&mut self, low: u16) -> bool {
        match self {
            Self::Bits { words, len } => {
                let (word, bit) = place(low);
                let is_new = words[word] & bit == 0;
                words[word] |= bit;
                *len += u32::from(is_new);
                is_new
            }
            Self::List(list) => {
                // Most numbers come in their order.
                let follows = list.last().is_none_or(|last| *last < low);
                let found = if follows { Err(list.len()) } else { list.binary_search(&low) };
                match found {
                    Ok(_) => false,
                    Err(at) if list.len() < MOST_LISTED => {
                        list.insert(at, low);
                        true
                    }
                    Err(_) => {
                        *self = Self::bits(list);
                        self.insert(low)
                    }
                }
            }
        }
    }

    fn bits(list: &[u16]) -> Self {
        let mut bits = Self::Bits { words: Box::new([0; WORDS]), len: 0 };
        for low in list {
            bits.insert(*low);
        }
        bits
    }

    fn remove(&mut self, low: u16) -> bool {
        match self {
            Self::Bits { words, len } => {
                let (word, bit) = place(low);
                let was_there = words[word] & bit != 0;
                words[word] &= !bit;
                *len -= u32::from(was_there);
                was_there
            }
            Self::List(list) => list.binary_search(&low).map(|at| list.remove(at)).is_ok(),
        }
    }

    fn contains(&self, low: u16) -> bool {
        match self {
            Self::Bits { words, .. } => {
                let (word, bit) = place(low);
                words[word] & bit != 0
            }
            Self::List(list) => list.binary_search(&low).is_ok(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Bits { len, .. } => *len == 0,
            Self::List(list) => list.is_empty(),
        }
    }

    fn for_each(&self, mut each: impl FnMut(u16)) {
        match self {
            Self::Bits { .. } => (0..=u16::MAX).filter(|low| self.contains(*low)).for_each(each),
            Self::List(list) => list.iter().for_each(|low| each(*low)),
        }
    }
}

/// The word that a number's bit is in, and the bit.
fn place(low: u16) -> (usize, u64) {
    (usize::from(low) / 64, 1 << (low % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    impl NumberSet {
        fn bytes(&self) -> usize {
            let held = |group: &EventGroup| match group {
                EventGroup::Bits { .. } => WORDS * size_of::<u64>(),
                EventGroup::List(list) => list.capacity() * size_of::<u16>(),
            };
            self.groups.values().map(|group| held(group) + size_of::<(u64, EventGroup)>()).sum()
        }
    }

    fn set_of(numbers: impl Iterator<Item = u64>) -> NumberSet {
        let mut set = NumberSet::default();
        numbers.for_each(|number| assert!(set.insert(number)));
        set
    }

    #[test]
    fn rows_with_holes_take_a_bit_each() {
        let rows = || (0..2_000_000).filter(|number| number % 7 != 0 && number % 5_000 > 20);
        let set = set_of(rows());
        assert_eq!(set.len(), rows().count() as u64);
        assert!(rows().step_by(991).all(|number| set.contains(number) && !set.contains(number / 7 * 7)));
        let bytes = set.bytes();
        assert!(bytes < 2_000_000 / 8 + 16_000, "{bytes} bytes");
    }

    #[test]
    fn numbers_that_stand_far_apart_take_few_bytes_each() {
        let set = set_of((0..1_000_000).map(|number| number * 997));
        let bytes = set.bytes();
        assert!(bytes < 5_000_000, "{bytes} bytes");
        // As wide apart as they can be.
        let set = set_of((0..10_000).map(|number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let bytes = set.bytes();
        assert!(bytes < 10_000 * 64, "{bytes} bytes");
    }

    #[test]
    fn what_is_taken_out_leaves_nothing() {
        let mut set = set_of((0..200_000).rev());
        (0..200_000).for_each(|number| set.remove(number));
        assert_eq!((set.len(), set.bytes(), set.sorted()), (0, 0, vec![]));
    }

    /// Numbers in one group and in several, few and many.
    fn numbers() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..20_000, 60_000u64..70_000, Just(u64::MAX), any::<u64>()]
    }

    proptest! {
        #[test]
        fn it_holds_what_a_plain_set_holds(
            changes in prop::collection::vec((any::<bool>(), numbers()), 0..300),
            first in 0u64..10_000,
        ) {
            let (mut set, mut plain) = (set_of(0..first), (0..first).collect::<BTreeSet<u64>>());
            for (is_new, number) in changes {
                prop_assert_eq!(set.contains(number), plain.contains(&number));
                if is_new {
                    prop_assert_eq!(set.insert(number), plain.insert(number));
                } else {
                    set.remove(number);
                    plain.remove(&number);
                }
                prop_assert_eq!(set.len(), plain.len() as u64);
            }
            prop_assert_eq!(set.sorted(), plain.into_iter().collect::<Vec<_>>());
        }
    }
}
