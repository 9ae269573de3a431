//! Simulates the Hugging Face hub on a loopback port, with a second port for large files.
//!
//! It answers like the hub: paged lists, redirects, entity tags, ranges, errors. It injects faults on
//! request, and records the requests.

mod answer;
mod content;
mod hub_answer;
mod server;
mod simulator;

pub use content::{FileKind, PlainPage};
pub use server::{AnswerDamage, HubPort, HubRequest, ScriptedDamage};
pub use simulator::HubSimulator;
