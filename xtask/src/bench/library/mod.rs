//! The cost of an item of a program, compared with Langroid.

mod items;

use super::context::ScenarioFn;

/// All scenarios, in the order of the report.
pub(super) const ALL: &[(&str, ScenarioFn)] = &[("items that cost nothing", items::nothing)];
