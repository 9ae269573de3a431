//! Backpressure: admits items group by group, and only so far ahead of the caller who takes the results
//! that memory stays bounded.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// How many items may be between the reader and the caller who takes the results.
const AHEAD: u64 = 4_096;

#[derive(Debug, Default)]
struct ItemCounts {
    /// The numbers of items that were admitted, that have ended, and whose results were taken.
    taken: u64,
    ended: u64,
    received: u64,
    closed: bool,
    /// Wakes the reader, if it waits.
    waiting: Option<Waker>,
}

/// Where the reader waits until it may read further items.
#[derive(Debug)]
pub(super) struct ItemBackpressure {
    passed: Mutex<ItemCounts>,
    /// The number of items per group; the next group starts when all items of the last one have ended.
    slice: Option<u64>,
    /// Whether results are taken one by one.
    streams: bool,
}

impl ItemBackpressure {
    pub(super) fn new(slice: Option<u64>, streams: bool) -> Self {
        Self { passed: Mutex::default(), slice, streams }
    }

    /// Whether the reader never has to wait.
    fn is_open(&self) -> bool {
        self.slice.is_none() && !self.streams
    }

    fn locked(&self) -> MutexGuard<'_, ItemCounts> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many items may be admitted now, up to `most`; none once it is closed.
    pub(super) fn wait_for_room(&self, most: usize) -> usize {
        let passed = self.locked();
        let room = if passed.closed { 0 } else { self.room(&passed) };
        usize::try_from(room).unwrap_or(usize::MAX).min(most)
    }

    /// Ready once items may be admitted, or if none ever will be.
    pub(super) fn poll_open(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut passed = self.locked();
        let has_room = match passed.waiting {
            Some(_) => self.is_worth_waking_for(&passed),
            None => self.room(&passed) > 0,
        };
        let is_open = has_room || passed.closed;
        passed.waiting = (!is_open).then(|| context.waker().clone());
        if is_open { Poll::Ready(()) } else { Poll::Pending }
    }

    fn room(&self, passed: &ItemCounts) -> u64 {
        let in_slice = self.slice.map_or(u64::MAX, |slice| {
            // Everything before the current group has ended.
            let end = (passed.ended / slice).saturating_add(1).saturating_mul(slice);
            end.saturating_sub(passed.taken)
        });
        let ahead = match self.streams {
            true => AHEAD.saturating_sub(passed.taken.saturating_sub(passed.received)),
            false => u64::MAX,
        };
        in_slice.min(ahead)
    }

    /// Counts items that were admitted.
    pub(super) fn add_taken(&self, items: usize) {
        self.locked().taken += items as u64;
    }

    pub(super) fn taken_items(&self) -> u64 {
        self.locked().taken
    }

    /// Counts an item that has ended.
    pub(super) fn item_ended(&self) {
        if !self.is_open() {
            self.note(|passed| passed.ended += 1);
        }
    }

    /// Counts a result that was taken.
    pub(super) fn result_taken(&self) {
        if self.streams {
            self.note(|passed| passed.received += 1);
        }
    }

    /// Admits no more items.
    pub(super) fn close(&self) {
        self.note(|passed| passed.closed = true);
    }

    fn note(&self, change: impl FnOnce(&mut ItemCounts)) {
        let mut passed = self.locked();
        change(&mut passed);
        if passed.waiting.is_some() && (passed.closed || self.is_worth_waking_for(&passed)) {
            let waker = passed.waiting.take();
            drop(passed);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether the reader has enough to do if it is woken: waking it for every item that ends would
    /// cost more than the items.
    fn is_worth_waking_for(&self, passed: &ItemCounts) -> bool {
        let has_half = !self.streams || passed.taken.saturating_sub(passed.received) <= AHEAD / 2;
        has_half && self.room(passed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_batch_comes_in_when_all_items_of_the_one_before_have_ended() {
        let backpressure = ItemBackpressure::new(Some(3), false);
        assert_eq!(backpressure.wait_for_room(10), 3);
        backpressure.add_taken(3);
        backpressure.item_ended();
        backpressure.item_ended();
        assert_eq!(backpressure.room(&backpressure.locked()), 0);
        backpressure.item_ended();
        assert_eq!(backpressure.wait_for_room(2), 2);
    }

    #[test]
    fn no_more_items_come_in_than_results_are_taken() {
        let backpressure = ItemBackpressure::new(None, true);
        assert_eq!(backpressure.wait_for_room(usize::MAX) as u64, AHEAD);
        backpressure.add_taken(AHEAD as usize);
        assert_eq!(backpressure.room(&backpressure.locked()), 0);
        backpressure.result_taken();
        assert_eq!(backpressure.wait_for_room(10), 1);
        backpressure.close();
        assert_eq!(backpressure.wait_for_room(10), 0);
    }

    #[test]
    fn the_reader_is_woken_for_many_items_and_for_the_last() {
        let backpressure = ItemBackpressure::new(Some(10), true);
        backpressure.add_taken(10);
        let is_worth = || backpressure.is_worth_waking_for(&backpressure.locked());
        (0..10).for_each(|_| backpressure.item_ended());
        assert!(is_worth(), "the batch has ended, and few results wait");
        let backpressure = ItemBackpressure::new(None, true);
        backpressure.add_taken(AHEAD as usize);
        for received in 1..=AHEAD {
            backpressure.result_taken();
            assert_eq!(backpressure.is_worth_waking_for(&backpressure.locked()), received >= AHEAD / 2);
        }
    }
}
