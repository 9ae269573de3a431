//! Test support: fakes for the ports, the conformance suites, sample rows, and re-exports of the provider
//! simulator.

pub mod conformance;
mod fake_dataset;
mod fake_model;
#[cfg(feature = "hub")]
pub mod hub;
mod mcp;
mod memory_store;
mod privileges;
#[cfg(feature = "sample-files")]
pub mod sample_files;
#[cfg(feature = "sample-rows")]
pub mod sample_rows;

pub use fake_dataset::FakeDataset;
pub use fake_model::{FakeModel, busy_failure, fake_answer, fake_failure};
pub use mcp::mcp_server;
pub use memory_store::{MemoryRunStore, run_header};
pub use privileges::{permissions_are_enforced, report_skipped};
#[cfg(feature = "simulator")]
pub use rowmill_simulator::*;
