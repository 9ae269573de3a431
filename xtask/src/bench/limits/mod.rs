//! How well a provider's limits are used, and the outcome of rows whose calls fail.

mod faults;
mod quota;
mod scenario;
mod sizes;
mod stray_refusals;
mod usage;

use super::context::ScenarioFn;

/// All scenarios, in the order of the report.
pub(super) const ALL: &[(&str, ScenarioFn)] =
    &[("quota", quota::quota), ("faults", faults::faults), ("strays", stray_refusals::strays)];
