//! Holds the items of a batch while rows stand for them in the engine.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::item::BatchItem;

/// The data of one item.
struct ItemSlot<T, A, U> {
    item: Arc<T>,
    /// The prompt, if it was already made.
    prompt: Option<String>,
    /// The answer of a function.
    answer: Option<A>,
    /// The result, and whether it counts as one.
    output: Option<(U, bool)>,
}

/// Slots by row number.
type ItemSlots<T, A, U> = HashMap<u64, ItemSlot<T, A, U>, BuildHasherDefault<NumberHasher>>;

/// The items that were read and have not ended, by row number.
pub(super) struct ItemTable<T, A, U> {
    slots: Mutex<ItemSlots<T, A, U>>,
}

impl<T, A, U> Default for ItemTable<T, A, U> {
    fn default() -> Self {
        Self { slots: Mutex::default() }
    }
}

impl<T, A, U> fmt::Debug for ItemTable<T, A, U> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ItemTable({} items)", self.locked().len())
    }
}

impl<T, A, U> ItemTable<T, A, U> {
    fn locked(&self) -> MutexGuard<'_, ItemSlots<T, A, U>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds items whose rows have consecutive numbers, starting with the first one.
    pub(super) fn add_items(&self, placed: impl Iterator<Item = (u64, Arc<T>, Option<String>)>) {
        let mut slots = self.locked();
        for (number, item, prompt) in placed {
            slots.insert(number, ItemSlot { item, prompt, answer: None, output: None });
        }
    }

    pub(super) fn item(&self, number: u64) -> Option<BatchItem<T>> {
        let slots = self.locked();
        let slot = slots.get(&number)?;
        Some(BatchItem::new(item_index(number), Arc::clone(&slot.item)))
    }

    pub(super) fn take_prompt(&self, number: u64) -> Option<String> {
        self.locked().get_mut(&number)?.prompt.take()
    }

    pub(super) fn put_answer(&self, number: u64, answer: A) {
        if let Some(slot) = self.locked().get_mut(&number) {
            slot.answer = Some(answer);
        }
    }

    /// Returns the item, and takes the answer of a function.
    pub(super) fn take_answer(&self, number: u64) -> Option<(BatchItem<T>, Option<A>)> {
        let mut slots = self.locked();
        let slot = slots.get_mut(&number)?;
        Some((BatchItem::new(item_index(number), Arc::clone(&slot.item)), slot.answer.take()))
    }

    pub(super) fn put_output(&self, number: u64, output: U, counts: bool) {
        if let Some(slot) = self.locked().get_mut(&number) {
            slot.output = Some((output, counts));
        }
    }

    /// Removes an item that has ended, and returns its result.
    pub(super) fn remove_item(&self, number: u64) -> Option<(U, bool)> {
        // The item itself is dropped without the lock, because its own code may run then.
        let slot = self.locked().remove(&number);
        slot.and_then(|slot| slot.output)
    }
}

/// The index of an item, from its row number.
pub(super) fn item_index(number: u64) -> usize {
    usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX)
}

/// A hasher for row numbers: they are consecutive, so a multiplication spreads them well enough.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
