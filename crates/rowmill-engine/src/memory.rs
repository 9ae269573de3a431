//! The memory of rows that are worked on: their texts, their prompts, and their requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The default limit on the memory of all rows together.
pub const ROW_MEMORY: usize = 256 * 1024 * 1024;

/// Rows smaller than this are not counted: all that can be in flight take little memory.
const SMALL: usize = 16 * 1024;

/// Counts the bytes of rows that are worked on.
#[derive(Debug, Clone)]
pub(crate) struct RowMemory {
    held: Arc<AtomicUsize>,
    most: usize,
}

impl RowMemory {
    pub(crate) fn new(most: usize) -> Self {
        Self { held: Arc::default(), most }
    }

    /// A share of this many bytes, if there is room. A row that is larger than the total gets its share when no other
    /// row holds one.
    pub(crate) fn try_reserve(&self, bytes: usize) -> Option<MemoryReservation> {
        if bytes < SMALL.min(self.most) {
            return Some(MemoryReservation(None));
        }
        let held = self.held.load(Ordering::Relaxed);
        if held > 0 && held.saturating_add(bytes) > self.most {
            return None;
        }
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Some(MemoryReservation(Some((Arc::clone(&self.held), bytes))))
    }
}

/// The memory share of one row; dropping it returns it.
#[derive(Debug, Default)]
pub(crate) struct MemoryReservation(Option<(Arc<AtomicUsize>, usize)>);

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        if let Some((held, bytes)) = self.0.take() {
            held.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_pass_the_bound_and_a_row_that_is_larger_goes_alone() {
        let memory = RowMemory::new(100_000);
        let small = memory.try_reserve(1_000).unwrap();
        let first = memory.try_reserve(60_000).unwrap();
        assert!(memory.try_reserve(60_000).is_none());
        let second = memory.try_reserve(40_000).unwrap();
        assert!(memory.try_reserve(1_000).is_some(), "what is small is not counted");
        drop((first, small));
        assert!(memory.try_reserve(200_000).is_none());
        drop(second);
        let large = memory.try_reserve(200_000).unwrap();
        assert!(memory.try_reserve(20_000).is_none());
        drop(large);
        assert!(memory.try_reserve(20_000).is_some());
    }
}
