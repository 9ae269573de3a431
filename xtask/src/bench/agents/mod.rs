//! The cost of a row that an agent works on, compared with agents written in Python.

mod files;
mod rival;
mod scenario;
mod trial;

use super::context::ScenarioFn;

/// All scenarios, in the order of the report.
pub(super) const ALL: &[(&str, ScenarioFn)] = &[("three tool turns", scenario::three_tool_turns)];
