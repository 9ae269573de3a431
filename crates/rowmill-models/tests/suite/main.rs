//! All integration tests of this crate in one binary, which is linked only once.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod batches;
mod calls;
mod conformance;
mod connections;
mod limits;
mod model_strings;
mod server;
mod sockets;
mod uploads;
