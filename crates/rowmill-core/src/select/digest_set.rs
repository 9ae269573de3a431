//! A set of digests that takes little more memory than the digests themselves.

use std::cmp::Ordering;
use std::mem;
use std::ops::Range;

/// Digests are distributed over segments by this many of their first bits. Only one segment at a time is rewritten,
/// which needs hardly any extra memory.
const SEGMENT_BITS: u32 = 6;

/// The digests of a segment are distributed over buckets by the following bits. The bits that a bucket implies need not
/// be stored with its digests.
const BUCKET_BITS: u32 = 10;
const BUCKETS: usize = 1 << BUCKET_BITS;

/// A segment is rewritten when this many changes are pending: few compared with its digests, but not too few.
const fn most_changes(digests: usize) -> usize {
    digests / 128 + 256
}

/// The stored part of a digest.
type Remainder = [u8; 5];

/// This many remainders are allocated at once: 8 KiB. Blocks of one size are reused by whichever segment is rewritten
/// next; segments of varying sizes in one piece would leave gaps as they grow.
const BLOCK: usize = 1_638;

/// A digest of 56 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdDigest {
    segment: usize,
    bucket: usize,
    remainder: Remainder,
}

impl IdDigest {
    /// The first bits of a larger digest.
    pub(super) fn new(whole: u128) -> Self {
        let [first, second, third, fourth, fifth, sixth, seventh, ..] = whole.to_be_bytes();
        let head = usize::from(u16::from_be_bytes([first, second]));
        Self {
            segment: head >> BUCKET_BITS,
            bucket: head % BUCKETS,
            remainder: [third, fourth, fifth, sixth, seventh],
        }
    }
}

/// A set of digests: stores five bytes of each, plus about one byte for every ten of them.
#[derive(Debug, Default)]
pub(super) struct DigestSet {
    /// Either all segments or none.
    segments: Vec<DigestSegment>,
    len: u64,
}

impl DigestSet {
    /// Adds a digest; returns `false` if it was there already.
    pub(super) fn insert(&mut self, digest: IdDigest) -> bool {
        if self.segments.is_empty() {
            self.segments.resize_with(1 << SEGMENT_BITS, DigestSegment::default);
        }
        let is_new = self.segments.get_mut(digest.segment).is_some_and(|segment| segment.set(digest, true));
        self.len += u64::from(is_new);
        is_new
    }

    /// Removes a digest.
    pub(super) fn remove(&mut self, digest: IdDigest) {
        let was_there =
            self.segments.get_mut(digest.segment).is_some_and(|segment| segment.set(digest, false));
        self.len -= u64::from(was_there);
    }

    pub(super) fn contains(&self, digest: IdDigest) -> bool {
        self.segments.get(digest.segment).is_some_and(|segment| segment.contains(digest))
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }
}

/// The digests that start with the same bits.
#[derive(Debug, Default)]
struct DigestSegment {
    /// Sorted, bucket by bucket.
    remainders: RemainderList,
    /// The end of each bucket in them.
    ends: Vec<u32>,
    /// Additions and removals since the last rewrite, sorted.
    changes: Vec<SegmentChange>,
}

#[derive(Debug, Clone, Copy)]
struct SegmentChange {
    bucket: u16,
    remainder: Remainder,
    is_there: bool,
}

impl DigestSegment {
    fn contains(&self, digest: IdDigest) -> bool {
        match self.change(digest) {
            Ok(at) => self.changes.get(at).is_some_and(|change| change.is_there),
            Err(_) => self.was_written(digest),
        }
    }

    /// Adds or removes a digest; returns `false` if nothing changes.
    fn set(&mut self, digest: IdDigest, is_there: bool) -> bool {
        let at = match self.change(digest) {
            Ok(at) => {
                let change = self.changes.get_mut(at).filter(|change| change.is_there != is_there);
                return change.map(|change| change.is_there = is_there).is_some();
            }
            Err(at) => at,
        };
        if self.was_written(digest) == is_there {
            return false;
        }
        let IdDigest { bucket, remainder, .. } = digest;
        self.changes.insert(at, SegmentChange { bucket: bucket as u16, remainder, is_there });
        if self.changes.len() > most_changes(self.remainders.len) {
            self.write_changes();
        }
        true
    }

    /// The index of the change for a digest, or where it would be inserted.
    fn change(&self, digest: IdDigest) -> Result<usize, usize> {
        let sought = (digest.bucket as u16, digest.remainder);
        self.changes.binary_search_by(|change| (change.bucket, change.remainder).cmp(&sought))
    }

    /// Whether a digest is among those written, regardless of the changes since.
    fn was_written(&self, digest: IdDigest) -> bool {
        let bucket = self.bucket(digest.bucket);
        let (mut low, mut high) = (bucket.start, bucket.end);
        while low < high {
            let middle = low.midpoint(high);
            match self.remainders.get(middle).cmp(&digest.remainder) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return true,
                Ordering::Greater => high = middle,
            }
        }
        false
    }

    /// The range of the digests of a bucket.
    fn bucket(&self, bucket: usize) -> Range<usize> {
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        bucket.checked_sub(1).map_or(0, end)..end(bucket)
    }

    /// Rewrites the digests with all changes. Blocks are freed as soon as they have been read.
    fn write_changes(&mut self) {
        let mut written = mem::take(&mut self.remainders).into_remainders();
        let mut remainders = RemainderList::default();
        let mut ends = Vec::with_capacity(BUCKETS);
        let mut changes = self.changes.iter().peekable();
        for bucket in 0..BUCKETS {
            let mut known = written.by_ref().take(self.bucket(bucket).len()).peekable();
            while let Some(change) = changes.next_if(|change| usize::from(change.bucket) == bucket) {
                while let Some(smaller) = known.next_if(|known| *known < change.remainder) {
                    remainders.push(smaller);
                }
                known.next_if_eq(&change.remainder);
                if change.is_there {
                    remainders.push(change.remainder);
                }
            }
            known.for_each(|known| remainders.push(known));
            ends.push(remainders.len as u32);
        }
        self.remainders = remainders;
        self.ends = ends;
        // The list of pending changes may become a little larger than before.
        self.changes = Vec::with_capacity(most_changes(self.remainders.len) + 1);
    }
}

/// Remainders in blocks.
#[derive(Debug, Default)]
struct RemainderList {
    /// All of them are full except the last.
    blocks: Vec<Box<[Remainder]>>,
    len: usize,
}

impl RemainderList {
    fn push(&mut self, remainder: Remainder) {
        let within = self.len % BLOCK;
        if within == 0 {
            self.blocks.push(vec![Remainder::default(); BLOCK].into_boxed_slice());
        }
        if let Some(place) = self.blocks.last_mut().and_then(|block| block.get_mut(within)) {
            *place = remainder;
            self.len += 1;
        }
    }

    fn get(&self, at: usize) -> Remainder {
        let block = self.blocks.get(at / BLOCK);
        block.and_then(|block| block.get(at % BLOCK)).copied().unwrap_or_default()
    }

    /// Returns them in order; each block is freed after its last one.
    fn into_remainders(self) -> impl Iterator<Item = Remainder> {
        self.blocks.into_iter().flat_map(|block| block.into_iter()).take(self.len)
    }
}

#[cfg(test)]
impl DigestSet {
    /// The number of bytes held.
    pub(super) fn bytes(&self) -> usize {
        let of_segment = |segment: &DigestSegment| {
            segment.remainders.blocks.len() * BLOCK * size_of::<Remainder>()
                + segment.ends.capacity() * size_of::<u32>()
                + segment.changes.capacity() * size_of::<SegmentChange>()
                + size_of::<DigestSegment>()
        };
        self.segments.iter().map(of_segment).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Few enough that digests repeat, and many in one segment.
    fn digest(number: u16) -> IdDigest {
        IdDigest::new(u128::from(number) << 108)
    }

    proptest! {
        #[test]
        fn the_set_has_what_was_added_and_not_taken_out_since(
            steps in proptest::collection::vec((0_u16..3000, any::<bool>()), 0..6000),
        ) {
            let (mut set, mut expected) = (DigestSet::default(), BTreeSet::new());
            for (number, is_added) in steps {
                if is_added {
                    prop_assert_eq!(set.insert(digest(number)), expected.insert(number));
                } else {
                    set.remove(digest(number));
                    expected.remove(&number);
                }
                prop_assert_eq!(set.contains(digest(number)), is_added);
                prop_assert_eq!(set.len(), expected.len() as u64);
            }
            for number in 0..3000 {
                prop_assert_eq!(set.contains(digest(number)), expected.contains(&number));
            }
        }
    }
}
