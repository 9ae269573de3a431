//! `cargo xtask bench`: rowmill against `wrk` and against its own targets.

mod capture;
mod machine;
mod measure;
mod report;
mod rows;
mod scenarios;
mod suite;
mod wrk;

pub(crate) use suite::bench;
