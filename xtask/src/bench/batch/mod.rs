//! The cost of a row in the batch lane, compared with Agent Actions, and the memory that a million rows need.

mod compared;
mod files;
mod million;
mod rival;
mod trial;

use super::context::ScenarioFn;

/// All scenarios, in the order of the report.
pub(super) const ALL: &[(&str, ScenarioFn)] =
    &[("beside agent actions", compared::beside_agent_actions), ("a million rows", million::million_rows)];
