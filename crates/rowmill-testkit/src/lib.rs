//! Test support: fakes for the ports, the conformance suites, sample rows, and re-exports of the provider
//! simulator.

pub mod conformance;
mod fake_model;
mod fake_source;
pub mod hub;
pub mod made_files;
pub mod made_rows;
mod mcp;
mod memory_store;
mod privileges;

pub use fake_model::{FakeModel, answer, busy, failure};
pub use fake_source::FakeDataset;
pub use mcp::mcp_server;
pub use memory_store::{MemoryRunStore, run_header};
pub use privileges::{permissions_count, tell_skipped};
pub use rowmill_simulator::*;
