//! Stubs that answer in place of tools: with fixed or recorded answers.

mod answers;
mod lines;
mod recorder;

pub use answers::{StubTool, Stubs};
pub use recorder::Recorder;
