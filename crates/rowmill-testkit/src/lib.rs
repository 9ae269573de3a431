//! What tests stand on: a provider simulator that can do damage on purpose, and
//! fakes for the ports.
//!
//! The simulator is a true HTTP server on a loopback socket, so a test goes
//! through the whole client: connections, framing, streaming and failures.

pub mod conformance;
mod deliver;
mod exchange;
mod fake_model;
mod fake_source;
mod fault;
mod gate;
mod incoming;
mod instant;
mod marker;
mod outgoing;
mod protocol;
mod recorder;
mod reply;
mod script;
mod server;
mod simulator;
mod websocket;

pub use fake_model::{FakeModel, answer, busy, failure};
pub use fake_source::FakeDataset;
pub use fault::{Fault, When};
pub use recorder::{RequestSeen, Stats};
pub use script::{Answer, Script};
pub use simulator::Simulator;
