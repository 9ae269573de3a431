//! A provider with real limits, faults and bills, drawn from a seed.

mod chance;
mod judge;
mod server;
mod test_run;

pub(crate) use judge::utilisation;
pub(crate) use server::Server;
pub(crate) use test_run::{HANGS, MAX_OUTPUT, ProviderTestRun};
