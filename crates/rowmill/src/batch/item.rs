//! What the functions of a program get to see: an item, and what was made of it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rowmill_types::{Money, Usage};

/// An item that a function works on.
///
/// It can be used like a reference to the item: fields and methods are those of the item.
pub struct Item<T> {
    index: usize,
    value: Arc<T>,
}

impl<T> Item<T> {
    pub(super) fn new(index: usize, value: Arc<T>) -> Self {
        Self { index, value }
    }

    /// Its place among the items, counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The item itself. It is copied only if it is still in use elsewhere.
    #[must_use]
    pub fn into_inner(self) -> T
    where
        T: Clone,
    {
        Arc::unwrap_or_clone(self.value)
    }
}

impl<T> Clone for Item<T> {
    fn clone(&self) -> Self {
        Self { index: self.index, value: Arc::clone(&self.value) }
    }
}

impl<T> Deref for Item<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Item<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Item").field("index", &self.index).field("value", &self.value).finish()
    }
}

/// An item that was answered, as the function given to [`Batch::output`](super::Batch::output)
/// gets to see it.
#[non_exhaustive]
pub struct Done<T, A> {
    /// The place of the item, counted from 0.
    pub index: usize,
    /// The item.
    pub item: Item<T>,
    /// What the worker answered.
    pub answer: A,
    /// What the calls of the item used, as far as providers reported.
    pub usage: Usage,
    /// What they cost, as far as prices are known.
    pub cost: Money,
    /// How many model calls were made for it in this run, failed ones included.
    pub calls: usize,
}

impl<T, A: fmt::Debug> fmt::Debug for Done<T, A> {
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
