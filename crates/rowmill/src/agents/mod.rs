//! Agents: loads cards, and sets up what a run needs from them.

mod check;
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
mod select_worker;
mod server_entry;
mod server_files;
mod servers;
mod setup;
mod tool_offers;
mod tool_routes;

pub use check::{CardCheck, CardCheckSpec, CardChecks};
pub(crate) use check::{card_notices, check_cards};
pub(crate) use fast_agent_config::with_fast_agent_config;
pub(crate) use load::{CardFlags, LoadedCards, load_card_set};
pub(crate) use load_sources::card_files_in;
pub(crate) use select_worker::{plain_model_request, set_up_card_agents, set_up_plain_model};
pub(crate) use server_files::server_files;
pub(crate) use setup::{AgentSetup, AgentSetupSettings, set_up_agents};
pub(crate) use tool_routes::{digest_with_routes, routes_text};
