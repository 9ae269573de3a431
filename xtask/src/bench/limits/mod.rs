//! How well a provider's limits are used, and the outcome of rows whose calls fail.

mod faults;
mod quota;
mod scenario;
mod sizes;
mod strays;
mod usage;

use super::stage::Scenario;

/// All scenarios, in the order of the report.
pub(super) const ALL: &[(&str, Scenario)] =
    &[("quota", quota::quota), ("faults", faults::faults), ("strays", strays::strays)];
