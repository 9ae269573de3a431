//! Agents: cards from where they are, to what a run is made of.
#![cfg_attr(not(test), expect(dead_code, unused_imports, reason = "runs do not take cards yet"))]

mod load;
mod load_digest;
mod load_sources;
#[cfg(test)]
mod load_tests;

pub(crate) use load::{CardFlags, LoadedCards, load};
