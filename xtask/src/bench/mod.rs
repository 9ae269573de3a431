//! `cargo xtask bench`: compares rowmill with its own targets and with competitors.

mod agents;
mod budget;
mod data;
mod document;
mod environment;
mod library;
mod limits;
mod machine;
mod measure;
mod report;
mod server;
mod speed;
mod stage;
mod steps;
mod suite;
mod timings;

pub(crate) use suite::{SuiteName, bench};
pub(crate) use timings::{TimingsFlags, timings};
