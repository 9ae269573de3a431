//! A provider with real limits, faults and bills, drawn from a seed.

mod chance;
mod judge;
mod scene;
mod server;

pub(crate) use judge::utilisation;
pub(crate) use scene::{HANGS, MAX_OUTPUT, Scene};
pub(crate) use server::Server;
