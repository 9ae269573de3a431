//! A set of digests in little more memory than what is kept of them.

use std::cmp::Ordering;
use std::mem;
use std::ops::Range;

/// Digests are spread over so many segments by their first bits. One segment at a time is written anew, so hardly
/// any memory is needed for that.
const SEGMENT_BITS: u32 = 6;

/// Those of a segment are spread over so many buckets by the bits that follow. What a bucket stands for need not
/// be kept with its digests.
const BUCKET_BITS: u32 = 10;
const BUCKETS: usize = 1 << BUCKET_BITS;

/// A segment is written anew when so many changes wait: few beside the digests in it, and not too few.
const fn most_changes(digests: usize) -> usize {
    digests / 128 + 256
}

/// What is kept of a digest.
type Remainder = [u8; 5];

/// So many remainders are allocated at once: 8 KiB. Blocks of one size are used again by whichever segment is
/// written next; segments in one piece, each of another size, would leave gaps as they grow.
const BLOCK: usize = 1_638;

/// A digest of 56 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digest {
    segment: usize,
    bucket: usize,
    remainder: Remainder,
}

impl Digest {
    /// The first bits of a larger one.
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

/// Digests: five bytes are kept of each, and about one more for ten of them.
#[derive(Debug, Default)]
pub(super) struct DigestSet {
    /// All of them or none.
    segments: Vec<Segment>,
    len: u64,
}

impl DigestSet {
    /// Adds a digest; `false` when it was there already.
    pub(super) fn insert(&mut self, digest: Digest) -> bool {
        if self.segments.is_empty() {
            self.segments.resize_with(1 << SEGMENT_BITS, Segment::default);
        }
        let is_new = self.segments.get_mut(digest.segment).is_some_and(|segment| segment.set(digest, true));
        self.len += u64::from(is_new);
        is_new
    }

    /// Takes a digest out again.
    pub(super) fn remove(&mut self, digest: Digest) {
        let was_there =
            self.segments.get_mut(digest.segment).is_some_and(|segment| segment.set(digest, false));
        self.len -= u64::from(was_there);
    }

    pub(super) fn contains(&self, digest: Digest) -> bool {
        self.segments.get(digest.segment).is_some_and(|segment| segment.contains(digest))
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }
}

/// The digests that begin with the same bits.
#[derive(Debug, Default)]
struct Segment {
    /// Sorted, bucket by bucket.
    remainders: RemainderList,
    /// Where each bucket ends in them.
    ends: Vec<u32>,
    /// What was added and taken out since they were written, sorted.
    changes: Vec<Change>,
}

#[derive(Debug, Clone, Copy)]
struct Change {
    bucket: u16,
    remainder: Remainder,
    is_there: bool,
}

impl Segment {
    fn contains(&self, digest: Digest) -> bool {
        match self.change(digest) {
            Ok(at) => self.changes.get(at).is_some_and(|change| change.is_there),
            Err(_) => self.was_written(digest),
        }
    }

    /// Adds a digest or takes it out; `false` when nothing changes by that.
    fn set(&mut self, digest: Digest, is_there: bool) -> bool {
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
        let Digest { bucket, remainder, .. } = digest;
        self.changes.insert(at, Change { bucket: bucket as u16, remainder, is_there });
        if self.changes.len() > most_changes(self.remainders.len) {
            self.write_changes();
        }
        true
    }

    /// Where the change of a digest is, or would be.
    fn change(&self, digest: Digest) -> Result<usize, usize> {
        let sought = (digest.bucket as u16, digest.remainder);
        self.changes.binary_search_by(|change| (change.bucket, change.remainder).cmp(&sought))
    }

    /// Whether a digest is among those that were written, whatever changed since.
    fn was_written(&self, digest: Digest) -> bool {
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

    /// Where the digests of a bucket are.
    fn bucket(&self, bucket: usize) -> Range<usize> {
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        bucket.checked_sub(1).map_or(0, end)..end(bucket)
    }

    /// Writes the digests anew, with all changes. Blocks that were read are free again at once.
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
        // What waits may become a little more than it was.
        self.changes = Vec::with_capacity(most_changes(self.remainders.len) + 1);
    }
}

/// Remainders in blocks.
#[derive(Debug, Default)]
struct RemainderList {
    /// All full but the last.
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

    /// Gives them in order; each block is freed behind its last.
    fn into_remainders(self) -> impl Iterator<Item = Remainder> {
        self.blocks.into_iter().flat_map(|block| block.into_iter()).take(self.len)
    }
}

#[cfg(test)]
impl DigestSet {
    /// How many bytes are held.
    pub(super) fn bytes(&self) -> usize {
        let of_segment = |segment: &Segment| {
            segment.remainders.blocks.len() * BLOCK * size_of::<Remainder>()
                + segment.ends.capacity() * size_of::<u32>()
                + segment.changes.capacity() * size_of::<Change>()
                + size_of::<Segment>()
        };
        self.segments.iter().map(of_segment).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Few enough that digests come again, and many in one segment.
    fn digest(number: u16) -> Digest {
        Digest::new(u128::from(number) << 108)
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
