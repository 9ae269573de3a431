//! MCP servers, real ones and one of our own with faults on demand.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod calls;
mod contract;
mod ends;
mod faults;
mod kit;
mod network;
mod offers;
mod real;
