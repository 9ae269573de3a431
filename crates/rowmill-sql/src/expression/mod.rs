//! Typed expressions: their representation, their evaluation, and their translation to SQLite.

pub(crate) mod coerce;
pub(crate) mod emit;
pub(crate) mod evaluate;
pub(crate) mod refusal;
pub(crate) mod typed;
