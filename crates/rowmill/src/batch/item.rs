//! The arguments of the program's functions: an item, and its answer.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rowmill_types::{Money, TokenUsage};

/// An item that a function works on.
///
/// It dereferences to the item, so fields and methods of the item can be used directly.
pub struct BatchItem<T> {
    index: usize,
    value: Arc<T>,
}

impl<T> BatchItem<T> {
    pub(super) fn new(index: usize, value: Arc<T>) -> Self {
        Self { index, value }
    }

    /// The index of the item, counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the item itself. It is cloned only if it is still in use somewhere else.
    #[must_use]
    pub fn into_inner(self) -> T
    where
        T: Clone,
    {
        Arc::unwrap_or_clone(self.value)
    }
}

impl<T> Clone for BatchItem<T> {
    fn clone(&self) -> Self {
        Self { index: self.index, value: Arc::clone(&self.value) }
    }
}

impl<T> Deref for BatchItem<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for BatchItem<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Item").field("index", &self.index).field("value", &self.value).finish()
    }
}

/// An item with its answer, the argument of the function given to
/// [`Batch::map_answers`](super::Batch::map_answers).
#[non_exhaustive]
pub struct AnsweredItem<T, A> {
    /// The index of the item, counted from 0.
    pub index: usize,
    /// The item.
    pub item: BatchItem<T>,
    /// The worker's answer.
    pub answer: A,
    /// The tokens that the calls of the item used, as far as providers reported them.
    pub usage: TokenUsage,
    /// The cost of the calls, as far as prices are known.
    pub cost: Money,
    /// The number of model calls for the item in this run, including failed ones.
    pub calls: usize,
}

impl<T, A: fmt::Debug> fmt::Debug for AnsweredItem<T, A> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Done")
            .field("index", &self.index)
            .field("answer", &self.answer)
            .field("usage", &self.usage)
            .field("cost", &self.cost)
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}
