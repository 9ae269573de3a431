//! `cargo xtask bench`: compares rowmill with its own targets and with competitors.

mod agents;
mod batch;
mod budget;
mod context;
mod data;
mod document;
mod library;
mod limits;
mod machine;
mod measure;
mod python_packages;
mod report;
mod server;
mod speed;
mod steps;
mod suite;
mod timings;

pub(crate) use suite::{SuiteName, run_bench};
pub(crate) use timings::{TimingsFlags, timings};
