//! Simulates the Hugging Face hub on a loopback port, with a second port for large files.
//!
//! It answers like the hub: paged lists, redirects, entity tags, ranges, errors. It injects faults on
//! request, and records the requests.

mod answer;
mod bytes;
mod content;
mod server;
mod simulator;

pub use content::{FileKind, Page};
pub use server::{Damage, Host, HubRequest, Trouble};
pub use simulator::HubSimulator;
