//! Stubs that answer in place of tools: with fixed or recorded answers.

mod host;
mod lines;
mod recorder;

pub use host::{StubHost, StubTool};
pub use recorder::ToolRecorder;
