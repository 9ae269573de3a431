//! Tools that a host does not have.

use rowmill_core::ports::ToolFailure;

/// The failure of a call of a tool that its host does not have.
pub(crate) fn unknown_tool_failure(tool: &str) -> ToolFailure {
    ToolFailure { message: format!("there is no tool `{tool}`"), may_have_run: false }
}
