//! The cost of an item of a program, compared with Langroid.

mod items;

use super::stage::Scenario;

/// All scenarios, in the order of the report.
pub(super) const ALL: &[(&str, Scenario)] = &[("items that cost nothing", items::nothing)];
