//! Agents: cards from where they are, to what a run is made of.

mod choose;
mod load;
mod load_digest;
mod load_sources;
#[cfg(test)]
mod load_tests;
mod models;
mod offers;
mod routes;
mod servers;
mod stage;

pub(crate) use choose::{asks, model, of_cards};
pub(crate) use load::{CardFlags, LoadedCards, load};
pub(crate) use routes::with_routes;
pub(crate) use stage::{Stage, stage};
