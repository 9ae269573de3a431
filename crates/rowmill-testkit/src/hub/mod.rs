//! The Hugging Face hub on a loopback port, with a second port that large files are on.
//!
//! It answers as the hub does: lists in pages, redirects, entity tags, ranges, refusals. It
//! does damage on purpose, and it remembers what it was asked.

mod answer;
mod bytes;
mod content;
mod server;
mod simulator;

pub use content::{FileKind, Page};
pub use server::{Damage, Host, HubRequest, Trouble};
pub use simulator::HubSimulator;
