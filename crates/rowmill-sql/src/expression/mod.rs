//! Expressions with types: what they are, how they are computed, and how SQLite is told of them.

pub(crate) mod coerce;
pub(crate) mod emit;
pub(crate) mod evaluate;
pub(crate) mod refusal;
pub(crate) mod typed;
