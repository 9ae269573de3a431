//! Agents: loads cards, and sets up what a run needs from them.

mod check;
mod choose;
mod fast_agent_config;
mod hugging_face;
mod load;
mod load_digest;
mod load_hooks;
mod load_paths;
mod load_sources;
#[cfg(test)]
mod load_tests;
mod models;
mod offers;
mod routes;
mod server_entry;
mod server_files;
mod servers;
mod stage;

pub use check::{CardCheck, CardChecks, CheckSpec};
pub(crate) use check::{check_cards, notices};
pub(crate) use choose::{asks, model, of_cards};
pub(crate) use fast_agent_config::with_fast_agent_config;
pub(crate) use load::{CardFlags, LoadedCards, load};
pub(crate) use load_sources::cards_in;
pub(crate) use routes::{routes_text, with_routes};
pub(crate) use server_files::server_files;
pub(crate) use stage::{Stage, StageSettings, stage};
